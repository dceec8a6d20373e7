"""Reports in files, as people open them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sample_views
from underdog.core.views.page import Page
from underdog.report import html
from underdog.report.charts import applicable

LINES = 80_000


def written(folder: Path, page: Page) -> Path:
    """A report in a file, with all charts that it has something for."""
    path = folder / "report.html"
    path.write_text(html.page(page, applicable(page)), "utf-8")
    return path


@pytest.fixture
def opened(page: Any, tmp_path: Path) -> Callable[[Page], Any]:
    """Opens the report of a page in the browser, with the network off."""

    def open_(shown: Page) -> Any:
        page.context.set_offline(True)
        page.goto(written(tmp_path, shown).as_uri())
        return page

    return open_


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that a report may show, with a short ledger."""
    trials = [sample_views.trial_view(1), sample_views.failed_trial(4)]
    return written(tmp_path_factory.mktemp("report"), sample_views.page(trials=trials))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a ledger of every offer there is."""
    decision = sample_views.decision_view(ledger=sample_views.ledger(LINES))
    return written(tmp_path_factory.mktemp("large"), sample_views.page(decision=decision))


@pytest.fixture
def report(page: Any, file: Path) -> Any:
    """All that a report may show, open in the browser with the network off."""
    page.context.set_offline(True)
    page.goto(file.as_uri())
    return page
