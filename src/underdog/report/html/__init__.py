"""Reports and pages as HTML: ``page`` makes one file that is complete in itself.

The partial templates (``_answer.html``, ``_utility.html``, ``_study.html``, ``_trial.html`` …)
and ``static_files`` serve the pages of ``underdog serve`` as well. Needs the extra ``report``.
"""

from underdog.report.html.assets import static_files
from underdog.report.html.environment import environment
from underdog.report.html.report import page, themes

__all__ = ["environment", "page", "static_files", "themes"]
