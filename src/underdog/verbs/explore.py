"""Explore: decide what to test next, test it, stop the losers, and stop when it is enough."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from underdog import runners
from underdog.core.attempts import Attempt
from underdog.core.exploration import Exploration, Why
from underdog.core.study import Study
from underdog.errors import StoreError
from underdog.model import Trial
from underdog.runners import Runner, Setup
from underdog.store import open_store
from underdog.store.lock import only_one
from underdog.verbs import carrying, studies, supplying
from underdog.verbs.exploring import Exploring, Tell
from underdog.verbs.studies import Field


def explore(
    study: str | os.PathLike[str] | None = None,
    *,
    store: str | None = None,
    tell: Tell | None = None,
    **given: Any,
) -> Exploration:
    """Find the offer on which a workload does best, in few and cheap tests.

    Args:
        study: a TOML file, ``docs/reference/study.md``; or None where all is given.
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder. A replay is
            kept only where a store is given.
        tell: is called with what happens.
        given: fields of ``underdog.core.study.Study`` that stand over those of the file.

    Raises:
        UsageError: a study with problems, all of which are told; or nothing to test.
        CatalogError, TrialsError, StoreError: a file or a store that cannot be used.
    """
    given = {name: value for name, value in given.items() if value is not None}
    found = studies.read(_path(study), given, os.environ)
    return run(found, store, tell or (lambda event: None))


def _path(study: str | os.PathLike[str] | None) -> str | None:
    return None if study is None else os.fspath(study)


def run(study: Study, url: str | None, tell: Tell) -> Exploration:
    """Carry out a study that was read; see ``explore``."""
    with ExitStack() as stack:
        store = stack.enter_context(open_store(url)) if _kept(study, url) else None
        stored = store.trials() if store else []
        attempts = supplying.on_record(store) if store else []
        laid_out = studies.lay_out(study, stored, attempts)
        if store is not None:
            stack.enter_context(only_one(laid_out.id, url))
            now = store.trials()
            # another process was at it while we looked at the files
            if _ended(now) != _ended(stored):
                laid_out = studies.lay_out(study, now, attempts)
            _refuse_others(laid_out)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="underdog-")))
        return Exploring(laid_out, _runner(laid_out, folder), store, tell).go()


def plan(study: Study, url: str | None) -> tuple[list[dict[str, Any]], Why | None]:
    """The next tests, as many as run at once, with what they would cost; nothing is run.

    Where there is none, why.
    """
    stored: list[Trial] = []
    attempts: list[Attempt] = []
    if _kept(study, url):
        with open_store(url) as store:
            stored, attempts = store.trials(), supplying.on_record(store)
    laid_out = studies.lay_out(study, stored, attempts)
    with tempfile.TemporaryDirectory(prefix="underdog-") as folder:
        going = Exploring(laid_out, _runner(laid_out, Path(folder)), None, lambda event: None)
        tests, ended = going.next()
        requests = carrying.render_all(going.jobs(tests), study.runner, going.runner)
        planned = [
            {
                "offer": laid_out.names[test.index],
                "knobs": test.setting,
                "reason": test.reason,
                "dollars": None if np.isnan(test.dollars) else test.dollars,
                "seconds": study.test,
                "would_run": list(request.lines),
            }
            for test, request in zip(tests, requests, strict=True)
        ]
    return planned, ended


def _ended(trials: list[Trial]) -> list[Trial | str]:
    """The trials, of those that run the ids: their figures change all the time."""
    return [trial.id if trial.status == "running" else trial for trial in trials]


def _kept(study: Study, url: str | None) -> bool:
    return study.runner != "replay" or url is not None


def _refuse_others(laid_out: Field) -> None:
    for trial in laid_out.trials:
        flies = trial.study == laid_out.id and trial.status == "running"
        if flies and trial not in laid_out.in_flight():
            host = trial.owner.get("host", "another host")
            raise StoreError(
                f"The study '{laid_out.id}' is being explored already, by process "
                f"{trial.owner.get('pid', '?')} on {host}.",
                "Wait for it or end it; what it measured is kept, and a rerun goes on from there.",
            )


def _runner(laid_out: Field, folder: Path) -> Runner:
    recorded = laid_out.recorded.trial if laid_out.recorded else None
    return runners.make(laid_out.study.runner, Setup(folder=folder, recorded=recorded))
