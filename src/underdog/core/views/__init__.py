"""What people look at: a record with all that a page, a file or a terminal shows of it.

One view, many renderings: ``show`` prints it as text, ``report`` as a page, Markdown and JSON,
``serve`` as a page with a twin in JSON. The charts are made of it. Views are made of stored
records by pure functions, one file for each kind.
"""

from underdog.core.views.records import (
    DecisionView,
    FunnelLine,
    HistoryPoint,
    HistoryView,
    LedgerLine,
    Marker,
    Point,
    Range,
    StudyView,
    TestLine,
    TrialView,
)

__all__ = [
    "DecisionView",
    "FunnelLine",
    "HistoryPoint",
    "HistoryView",
    "LedgerLine",
    "Marker",
    "Point",
    "Range",
    "StudyView",
    "TestLine",
    "TrialView",
]
