"""What a report gathers, and the files that it writes whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from offers_and_trials import c1_offers, c1_trials, trial, write_offers

from underdog.core.views.page import Page
from underdog.errors import UsageError
from underdog.model import Decision, Timeline
from underdog.store import open_store
from underdog.verbs import report
from underdog.verbs.choose import choose

CURVE = Timeline(
    steps={"seconds": [1.0, 2.0, 3.0], "step": [1.0, 2.0, 3.0], "samples_per_second": [5, 6, 7]}
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A store with a decision about 'gpt', a study of 'resnet' and a trial of 'vit'."""
    folder = tmp_path_factory.mktemp("stored")
    store = str(folder / "store.sqlite3")
    own = [
        trial("g5.xlarge", 5.0 + i, id=f"gpt-{i}", started_at=f"2026-07-{i + 1:02}T00:00:00Z")
        for i in range(20)
    ]
    with open_store(store) as opened:
        opened.save(*c1_trials(), *own)
        opened.save(
            trial(id="r1", workload="resnet", study="study-r", timeline=CURVE),
            trial(id="r2", rate=None, workload="resnet", study="study-r", status="failed"),
            trial(id="v1", workload="vit", timeline=CURVE),
        )
    decision = choose("gpt", store=store, offers=write_offers(folder / "o.csv", c1_offers()))
    return {"store": store, "decision": decision.id}


@pytest.fixture(scope="module")
def page(stored: dict[str, str]) -> Page:
    return report.gather(stored["decision"], stored["store"])


def test_a_decision_comes_with_its_trials_and_history(stored: dict[str, str], page: Page) -> None:
    assert page.decision is not None
    assert page.decision.whole
    assert page.study is None
    assert page.history is not None
    assert len(page.history.points) == 24
    assert len(page.trials) == report.MOST_TRIALS
    assert page.more_trials == 24 - report.MOST_TRIALS
    # the machine that leads first, the latest of it before others
    assert page.trials[0].id == "gpt-19"
    assert page.title == "Where to run gpt"
    by_workload = report.gather("gpt", stored["store"])
    assert by_workload.decision == page.decision


def test_a_study_a_trial_and_a_workload(stored: dict[str, str]) -> None:
    study = report.gather("study-r", stored["store"])
    assert study.study is not None
    assert [test.trial for test in study.study.tests] == ["r1", "r2"]
    assert study.decision is None
    assert [(view.id, view.timeline) for view in study.trials] == [("r1", CURVE), ("r2", None)]
    single = report.gather("v1", stored["store"])
    assert [view.timeline for view in single.trials] == [CURVE]
    workload = report.gather("resnet", stored["store"])
    assert workload.history is None  # one measurement is no history
    assert [view.id for view in workload.trials] == ["r1", "r2"]


def test_a_study_that_ended_has_its_decision(tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite3")
    made = Decision(id="d1", workload="gpt", created_at="2026-08-01", utility="samples_per_second",
                    better="higher", study="study-1", candidates=3)  # fmt: skip
    with open_store(store) as opened:
        opened.save(trial(id="t", study="study-1"), made)
    for name in ("study-1", "d1", "gpt", None):
        page = report.gather(name, store)
        assert page.decision is not None
        assert page.study is not None
        assert [view.id for view in page.trials] == ["t"]


def test_json_has_the_whole_page(page: Page) -> None:
    told = json.loads(report.render(page, "json"))
    assert told["decision"]["answer"] == page.decision.answer  # type: ignore[union-attr]
    assert len(told["decision"]["ledger"]) == 4
    assert len(told["history"]["points"]) == 24


def test_markdown_has_its_sections(page: Page) -> None:
    text = report.render(page, "markdown").decode()
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert heads == [
        "# Where to run gpt",
        "## The ranking",
        "## The 4 candidates",
        "## The trials",
        "## History",
        "## What this rests on",
    ]
    assert "| 1 | aws/us-east-1/g5.xlarge/on-demand | measured |" in text
    assert "**Run gpt on aws g5.xlarge in us-east-1: " in text


def test_html_and_charts(stored: dict[str, str]) -> None:
    pytest.importorskip("vl_convert")
    pytest.importorskip("jinja2")
    page = report.gather("v1", stored["store"])
    assert report.render(page, "html").startswith(b"<!doctype html>")
    assert report.chart(page, "throughput", "svg").startswith(b"<svg")
    assert report.chart(page, "throughput", "png").startswith(b"\x89PNG")
    assert json.loads(report.chart(page, "throughput", "json"))["$schema"]


def test_one_trial_of_several_is_drawn(stored: dict[str, str]) -> None:
    page = report.gather("study-r", stored["store"])
    several = Page(title="t", created_at="", trials=[*page.trials, *page.trials[:1]])
    assert report.chart(several, "throughput", "json") == report.chart(
        several, "throughput:r1", "json"
    )


def test_charts_that_are_not_there(stored: dict[str, str]) -> None:
    page = report.gather("v1", stored["store"])
    with pytest.raises(UsageError, match=r"no chart 'frnt'(.|\n)*Did you mean 'front'"):
        report.chart(page, "frnt", "json")
    with pytest.raises(UsageError, match=r"nothing to draw for the chart 'front'(.|\n)*It has: t"):
        report.chart(page, "front", "json")


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "er" / "page.md"
    report.write(target, b"one")
    assert target.read_bytes() == b"one"
    target.chmod(0o600)
    link = tmp_path / "link.md"
    link.symlink_to(target)
    report.write(link, b"two")
    assert link.is_symlink()
    assert target.read_bytes() == b"two"
    assert target.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in target.parent.iterdir()] == ["page.md"]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "page.md"
    target.write_bytes(b"old")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(report.os, "replace", full)
    with pytest.raises(UsageError, match=r"page\.md' cannot be written: No space left"):
        report.write(target, b"new")
    assert target.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"]


@pytest.mark.parametrize("name", ["folder", "file/page.md", "x" * 300, "a\0b"])
def test_places_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="cannot be written: "):
        report.write(tmp_path / name, b"new")


def test_a_device_is_written_to() -> None:
    report.write(Path("/dev/null"), b"new")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(UsageError, match="'/dev/full' cannot be written: No space left"):
        report.write(Path("/dev/full"), b"new")


def test_the_ending_says_the_format() -> None:
    assert report.ending(Path("a.HTML"), report.PAGES, "report") == "html"
    with pytest.raises(UsageError, match=r"'a.txt' does not say what report(.|\n)*\.html, \.htm"):
        report.ending(Path("a.txt"), report.PAGES, "report")
