"""Report: all there is to see of a decision, a search, a trial or a workload, as one file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from underdog.core.evidence import shape_of
from underdog.core.tested import rate_of
from underdog.core.views import history, study
from underdog.core.views.page import Page
from underdog.core.views.records import HistoryView
from underdog.core.views.trial import trial_view
from underdog.core.views.words import brief
from underdog.errors import UsageError, did_you_mean
from underdog.model import Decision, Trial
from underdog.progress import say
from underdog.store import Store, open_store
from underdog.verbs import viewing
from underdog.verbs.viewing import Found

Format = Literal["html", "json", "markdown"]
Picture = Literal["svg", "png", "json"]

PAGES: Mapping[str, Format] = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
}
PICTURES: Mapping[str, Picture] = {".svg": "svg", ".png": "png", ".json": "json"}
MOST_TRIALS = 12  # that a page shows
MOST_POINTS = 1000  # of its history
_WIDTH = 800


def gather(name: str | None = None, store: str | None = None) -> Page:
    """Everything that a report about something shows.

    Args:
        name: a decision, study, trial or workload, or the first letters of an id; without it the
            study that runs, else the latest study or decision.
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder.

    Raises:
        UsageError: nothing is called so, or the store is empty.
        StoreError: the store cannot be opened or read.
    """
    say("reading the store")
    with open_store(store) as opened:
        meant = viewing.latest(opened) if name is None else viewing.found(opened, name)
        return page_of(opened, meant)


def page_of(store: Store, meant: Found) -> Page:
    """The page of a thing that was found in the store.

    Raises:
        UsageError, StoreError: it is gone meanwhile, or the store cannot be read.
    """
    if meant.kind == "trial":
        return _of_trial(store, meant.id)
    if meant.kind == "study":
        return _of_study(store, meant.id)
    if meant.kind == "decision":
        decision = next(iter(store.decisions(id=meant.id)), None)
        if decision is None:
            raise UsageError(f"No decision '{meant.id}' is in the store.")
        return _of_decision(store, decision)
    return _of_workload(store, meant.id)


def _of_trial(store: Store, id: str) -> Page:
    view = viewing.trial_view(store, id)
    return _page(f"{brief(view.workload)} on {brief(view.offer)}", trials=[view])


def _of_study(store: Store, id: str) -> Page:
    trials = store.trials(study=id)
    decision = viewing.decision_of(store, id, trials)
    if decision is not None:
        return _of_decision(store, decision, trials)
    view = study.study_view(id, trials)
    if view is None:
        raise UsageError(f"No study '{id}' is in the store.")
    title = f"{brief(view.workload)}: a search"
    return _page(title, study=view, **_shown(store, trials))


def _of_decision(store: Store, decision: Decision, own: Sequence[Trial] | None = None) -> Page:
    """The page of a decision, with the search that it ended."""
    search = None
    if decision.study is not None:
        own = store.trials(study=decision.study) if own is None else own
        search = study.study_view(decision.study, own, decision)
    workload = store.trials(workload=decision.workload)
    rests_on = set(decision.trials)
    used = [trial for trial in workload if trial.id in rests_on]
    return _page(
        f"Where to run {brief(decision.workload)}",
        decision=viewing.decision_view(store, decision),
        study=search,
        history=_history(decision.workload, workload),
        **_shown(store, own or used, decision),
    )


def _of_workload(store: Store, workload: str) -> Page:
    """The latest decision about a workload and all that was measured of it."""
    decisions = store.decisions(workload=workload, limit=1)
    if decisions:
        return _of_decision(store, decisions[0])
    trials = store.trials(workload=workload)
    return _page(brief(workload), history=_history(workload, trials), **_shown(store, trials))


def _page(title: str, **parts: Any) -> Page:
    return Page(title=title, created_at=datetime.now(UTC).isoformat(timespec="seconds"), **parts)


def _history(workload: str, trials: Sequence[Trial]) -> HistoryView | None:
    """None where nothing can be compared with anything."""
    view = history.thinned(history.history_view(workload, trials), MOST_POINTS)
    return view if len(view.points) > 1 else None


def _shown(
    store: Store, trials: Sequence[Trial], decision: Decision | None = None
) -> dict[str, Any]:
    """The few trials that matter most, with their timelines, and how many more there are."""
    first = decision.ranking[0].get("offer") if decision and decision.ranking else None
    leads = (first.get("provider"), first.get("instance_type")) if isinstance(first, dict) else None

    def weight(trial: Trial) -> tuple[bool, bool, bool, str]:
        return (
            trial.status == "running",
            rate_of(trial) is not None,
            shape_of(trial)[:2] == leads,
            trial.started_at,
        )

    chosen = sorted(trials, key=weight, reverse=True)[:MOST_TRIALS]
    whole = {trial.id: trial for trial in store.trials(id=[t.id for t in chosen], timeline=True)}
    views = [trial_view(whole.get(trial.id, trial)) for trial in chosen]
    return {"trials": views, "more_trials": len(trials) - len(chosen)}


def render(page: Page, format: Format) -> bytes:
    """The page as a file's content, UTF-8.

    Raises:
        MissingPackageError: HTML needs the extra ``report``.
    """
    say(f"writing the page as {format}")
    if format == "html":
        from underdog.report import charts, html

        text = html.page(page, charts.applicable(page))
    elif format == "json":
        from underdog.report.page_json import to_json

        text = to_json(page) + "\n"
    else:
        from underdog.report.page_markdown import to_markdown

        text = to_markdown(page)
    return text.encode("utf-8", "backslashreplace")


def chart(page: Page, name: str, format: Picture) -> bytes:
    """One chart of a page as a picture, or as its Vega-Lite specification.

    Args:
        name: as ``underdog.report.charts.CHARTS`` has it; of a trial's chart with ``:ID`` behind
            it, else it is of the first trial.

    Raises:
        UsageError: there is no such chart, or nothing to draw for it here.
        MissingPackageError: a picture needs the extra ``report``.
    """
    say(f"drawing {name}")
    from underdog.report import charts

    specs = charts.applicable(page)
    found = next((one for one in specs if one == name or one.partition(":")[0] == name), None)
    if found is None:
        if name.partition(":")[0] not in charts.CHARTS:
            hint = did_you_mean(name, charts.CHARTS)
            raise UsageError(f"There is no chart '{name}'.", hint)
        few = " A history takes two measurements." if name == "history" else ""
        raise UsageError(
            f"There is nothing to draw for the chart '{name}' of '{page.title}'.{few}",
            f"It has: {', '.join(specs)}." if specs else None,
        )
    if format == "json":
        from underdog.report.page_json import to_json

        return (to_json(specs[found]) + "\n").encode()
    from underdog.report.images import image

    return image(specs[found], format, width=_WIDTH)


def ending(path: Path, known: Mapping[str, Any], what: str) -> Any:
    """What the ending of a file's name says that it is to be.

    Raises:
        UsageError: it has another ending.
    """
    found = known.get(path.suffix.lower())
    if found is None:
        listed = ", ".join(known)
        raise UsageError(f"'{path}' does not say what {what} it is to be.", f"End it in {listed}.")
    return found


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; one that is there is replaced, a link stays a link.

    Raises:
        UsageError: it cannot be written; the message says why.
    """
    try:
        target = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # a pipe or a device cannot be replaced
            path.write_bytes(content)
            return
        handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(beside, _mode(target))
            os.replace(beside, target)
        except BaseException:
            os.unlink(beside)
            raise
    except (OSError, RuntimeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"'{path}' cannot be written: {why}.") from error


def _mode(target: Path) -> int:
    """Of the file that is replaced, else what the user gives new files."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


assert set(PAGES.values()) == set(get_args(Format))
