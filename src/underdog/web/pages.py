"""The pages: what each finds for its address. They read; nothing here writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from underdog.core.columns import BY_NAME
from underdog.core.views.facts import STATUS_WORDS
from underdog.errors import UsageError
from underdog.verbs.serving import NotFoundError, Reader
from underdog.verbs.shelf import Shelf
from underdog.web.asking import STATUSES, Asked
from underdog.web.charts import DECISION, HISTORY, STUDY, TRIAL, specs
from underdog.web.rendering import Answer

LATEST = 6  # of each kind on the first page
COLUMNS = (  # of the catalog; what a narrow screen shows comes first
    "instance_type",
    "price_per_hour",
    "accelerator",
    "accelerator_count",
    "accelerator_memory_gib",
    "vcpus",
    "memory_gib",
    "provider",
    "region",
    "purchase",
)


@dataclass(frozen=True, slots=True)
class Site:
    """What the pages are made from."""

    reader: Reader
    shelf: Shelf = field(default_factory=Shelf)


Page = Callable[[Site, Asked], Answer]


def overview(site: Site, asked: Asked) -> Answer:
    """What runs now, the latest studies and decisions, the workloads."""
    reader = site.reader
    workloads = reader.workloads()
    data = {
        "running": [_brief(trial) for trial in reader.now().trials],
        "studies": reader.studies()[:LATEST],
        "decisions": reader.decisions(limit=LATEST)[:LATEST],
        "workloads": workloads,
        "trials": sum(line.trials for line in workloads),
    }
    return Answer(data=data, template="overview.html", title="Overview")


def studies(site: Site, asked: Asked) -> Answer:
    """All searches, the newest first."""
    size, before = asked.part()
    found = site.reader.studies()
    data = {"studies": found[before : before + size], **_part(len(found), size, before)}
    return Answer(data=data, template="studies.html", title="Studies")


def study(site: Site, asked: Asked) -> Answer:
    """One search: what was tested in which order and why."""
    view = site.reader.study(asked.name)
    return Answer(
        data=view,
        template="study.html",
        title=f"Study of {view.workload}",
        charts=lambda: specs(STUDY, view),
    )


def decisions(site: Site, asked: Asked) -> Answer:
    """The decisions, the newest first."""
    size, before = asked.part()
    workload = asked.text("workload")
    found = site.reader.decisions(workload=workload, limit=size, offset=before)
    data = {
        "decisions": found[:size],
        "page": before // size + 1,
        "size": size,
        "more": len(found) > size,
    }
    more = {"workload": workload}
    return Answer(data=data, template="decisions.html", title="Decisions", more=more)


def decision(site: Site, asked: Asked) -> Answer:
    """One decision; with ``whole=1`` all candidates are drawn. ``…/ledger`` has its lines."""
    if asked.more == "ledger":
        return ledger(site, asked)
    _no_more(asked)
    whole = asked.one_of("whole", ("0", "1")) == "1"
    view = site.reader.decision(asked.name, whole=whole)
    # 80,000 lines are asked for by parts: the ledger has an address of its own
    view = dataclasses.replace(view, ledger=[])
    return Answer(
        data=view,
        template="decision.html",
        title=f"Decision for {view.workload}",
        charts=lambda: specs(DECISION, view),
        more={"whole": whole},
        lasting=asked.address(),
    )


def ledger(site: Site, asked: Asked) -> Answer:
    """Why every candidate of a decision is where it is; searched, by parts."""
    size, before = asked.part()
    found = site.reader.ledger(
        asked.name,
        find=asked.text("find") or "",
        verdict=asked.text("verdict"),
        limit=size,
        offset=before,
    )
    data = {
        "decision": asked.name,
        "whole": found.whole,
        "verdicts": found.verdicts,
        "lines": found.lines,
        **_part(found.total, size, before),
    }
    return Answer(data=data, template="ledger.html", title="Ledger")


def trials(site: Site, asked: Asked) -> Answer:
    """The trials that match, the newest first."""
    size, before = asked.part()
    workload, study = asked.text("workload"), asked.text("study")
    status = asked.one_of("status", STATUSES)
    found = site.reader.trials(
        workload=workload, status=status, study=study, limit=size, offset=before
    )
    data = {"trials": found.lines, **_part(found.total, size, before)}
    more = {
        "workloads": [line.workload for line in site.reader.workloads()],
        "statuses": {name: STATUS_WORDS.get(name, name) for name in STATUSES},
        "filter": {"workload": workload, "status": status, "study": study},
    }
    return Answer(data=data, template="trials.html", title="Trials", more=more)


def trial(site: Site, asked: Asked) -> Answer:
    """One trial, as measured or while it runs."""
    _no_more(asked)
    view = site.reader.trial(asked.name)
    return Answer(
        data=view,
        template="trial.html",
        title=f"Trial of {view.workload}",
        charts=lambda: specs(TRIAL, view),
    )


def workload(site: Site, asked: Asked) -> Answer:
    """A workload over time, with its latest trials and decisions."""
    _no_more(asked)
    reader, name = site.reader, asked.name
    state, view = reader.state(name), reader.history(name)
    points = sorted(view.points, key=lambda point: point.at)
    shown = dataclasses.replace(view, points=points[-asked.part()[0] :])
    latest = reader.trials(workload=name, limit=LATEST)
    data: dict[str, Any] = {
        "history": shown,
        "points": len(points),
        "trials": latest.lines,
        "trials_total": latest.total,
        "decisions": reader.decisions(workload=name, limit=LATEST)[:LATEST],
    }
    listed = [
        (line.id, getattr(line, "status", "")) for line in (*latest.lines, *data["decisions"])
    ]
    return Answer(
        data=data,
        template="workload.html",
        title=f"Workload {name}",
        charts=lambda: specs(HISTORY, view),
        lasting=(asked.address(), state, tuple(listed)),
    )


def catalog(site: Site, asked: Asked) -> Answer:
    """The newest offers that satisfy a condition; a fault of it is told beside its field."""
    size, before = asked.part()
    where, sort = asked.text("where"), asked.text("sort") or "price_per_hour"
    error, status = None, 200
    try:
        found = site.shelf.show(where, sort, limit=size, offset=before)
    except UsageError as fault:
        error, status = fault, 400
        found = site.shelf.show(None, "price_per_hour", limit=0)
        found = dataclasses.replace(found, total=0)
    data: dict[str, Any] = {
        "offers": found.rows,
        "where": where,
        "sort": sort,
        "catalog": {"date": found.date, "hash": found.hash, "offers": found.offers},
        **_part(found.total, size, before),
    }
    if error is not None:
        data = {"error": {"message": error.message, "hint": error.hint}}
    more = {"columns": COLUMNS, "known": BY_NAME, "error": error, "found": found}
    return Answer(data=data, template="catalog.html", title="Catalog", more=more, status=status)


def live(site: Site, asked: Asked) -> Answer:
    """What runs now; the page follows it once a second."""
    now = site.reader.now()
    return Answer(data=now, template="live.html", title="Live", more=live_parts(now))


def live_parts(now: Any) -> dict[str, Any]:
    """What the moving part of the page is made from."""
    return {
        "running": [(trial, specs(TRIAL, trial)) for trial in now.trials],
        "searching": [(study, specs(STUDY, study)) for study in now.studies],
    }


def _no_more(asked: Asked) -> None:
    if asked.more:
        raise NotFoundError(f"There is no page '{asked.path[:200]}'.", "Begin at /")


def _brief(trial: Any) -> dict[str, Any]:
    names = ("id", "workload", "offer", "headline", "rate", "dollars", "started_at", "study")
    return {name: getattr(trial, name) for name in names}


def _part(total: int, size: int, before: int) -> dict[str, int]:
    pages = max(1, -(-total // size))
    page = before // size + 1
    if page > pages:
        raise UsageError(f"'{page}' is no page of a list that has {pages:,}.")
    return {"total": total, "page": page, "pages": pages, "size": size}
