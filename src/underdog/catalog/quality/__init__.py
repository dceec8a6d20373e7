"""The quality of the catalog: named rules that every refresh and the bundled snapshot pass through.

A fault takes an offer out, with the reason, or doubts it, in the column ``caveats``; nothing is
dropped in silence. ``docs/reference/quality.md`` lists the rules.
"""

from __future__ import annotations

from underdog.catalog.quality.checking import (
    RULES,
    apply,
    check,
    explain,
    impossible,
    rejected,
)
from underdog.catalog.quality.doubts import doubts, with_age
from underdog.catalog.quality.rules import Finding, Rule
from underdog.catalog.quality.table import Offers

__all__ = [
    "RULES",
    "Finding",
    "Offers",
    "Rule",
    "apply",
    "check",
    "doubts",
    "explain",
    "impossible",
    "rejected",
    "with_age",
]
