"""Watch: what has changed since the stored decisions were made, and whether they still stand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from underdog.catalog import offers_file
from underdog.core import footing
from underdog.core.constraints import text
from underdog.core.ledger import OFFER_ID
from underdog.core.watched import Judged, Machine, Settled, Sold, Test, mark
from underdog.core.watching import cheapest_set, priced, settled, wanted
from underdog.errors import UnderdogError, UsageError, did_you_mean
from underdog.report.notices import Notices
from underdog.report.watch import notice
from underdog.store import open_store
from underdog.store.seen import seen
from underdog.verbs import catalog, places, settling, supplying
from underdog.verbs.rejudging import Kept, rejudge
from underdog.verbs.settling import Done, Planned

OLDEST_DAYS = 90.0  # frameworks and drivers move within a quarter

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Watch:
    """What to watch; see ``watch``.

    Attributes:
        act: run the tests that would settle what is open, for ``budget`` USD at most.
        dry_run: only say what ``act`` would submit.
        offers: a file of offers that says how to get at machines, before that of a decision.
        folder: what the tests run in and what is carried to other machines; None: nothing is.

    Raises:
        UsageError: options that do not go together.
        CatalogError: the file of offers cannot be read.
    """

    workloads: Sequence[str] = ()
    refresh: bool = True
    oldest_seconds: float = OLDEST_DAYS * 86400
    act: bool = False
    budget: float | None = None
    dry_run: bool = False
    offers: str | None = None
    folder: Path | None = None
    store: str | None = None

    def __post_init__(self) -> None:
        if self.act and self.budget is None:
            raise UsageError(
                "--act runs tests that cost money, and no --budget limits them.",
                "Give the most that they may cost in USD: --act --budget 5",
            )
        if self.budget is not None and not self.act:
            raise UsageError("--budget limits the tests of --act, which is not given.", "Add --act")
        if self.dry_run and not self.act:
            raise UsageError("--dry-run shows the tests of --act, which is not given.", "Add --act")
        if self.offers is not None:
            offers_file.entries(self.offers)


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One look at all decisions.

    ``tests`` are the cheapest that would settle what is open; ``dollars`` is what they would cost,
    those of unknown price apart. With ``--act`` ``done`` is what came of each, and ``settled`` what
    that did to the decisions; with ``--dry-run`` ``planned`` is what would be submitted.
    """

    at: str
    catalog: str
    catalog_date: str
    judged: Sequence[Judged]
    tests: Sequence[Test]
    dollars: float
    done: Sequence[Done] = ()
    settled: Sequence[Settled] = ()
    planned: Sequence[Planned] = ()

    @property
    def spent(self) -> float:
        """What the tests cost, USD."""
        return sum(one.dollars for one in self.done)

    @property
    def status(self) -> int:
        """0 all stand or only a test can tell, 1 one does not stand, 2 one cannot be judged."""
        verdicts = {one.verdict for one in self.judged}
        return 1 if "falls" in verdicts else 2 if "unknown" in verdicts else 0


def watch(
    workloads: Sequence[str] = (),
    *,
    refresh: bool = True,
    oldest_days: float = OLDEST_DAYS,
    store: str | None = None,
) -> Round:
    """Judge the latest stored decision of each question by the catalog and the trials of now.

    Args:
        workloads: those to look at; all without.
        refresh: ask the providers for their offers first. A provider that fails keeps those that it
            had.
        oldest_days: a measurement that is older asks for another one.
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder.

    Raises:
        UsageError: a workload without a decision.
        CatalogError, StoreError: there are no offers, or the store cannot be read.
    """
    asked = Watch(
        workloads=workloads, refresh=refresh, oldest_seconds=oldest_days * 86400, store=store
    )
    return look(asked, lambda line: None)


def look(
    asked: Watch, tell: Tell, progress: Any = None, told: settling.Told | None = None
) -> Round:
    """One round; ``tell`` is called with lines for people. See ``watch`` for what is raised.

    ``told`` is called with how a test on another machine stands.
    """
    return act(judge(asked, tell, progress), asked, tell, told)


def judge(asked: Watch, tell: Tell, progress: Any = None) -> Round:
    """What a round finds, before any test is run."""
    # what is asked is looked at first: without a decision no provider has to be
    if asked.refresh and _stored(asked, datetime.now(UTC)).decisions:
        _refresh(tell, progress)
    return _judge(asked)


def act(found: Round, asked: Watch, tell: Tell, told: settling.Told | None = None) -> Round:
    """Run the tests of a round where that is asked for, and judge anew."""
    if not asked.act or not found.tests:
        return found
    assert asked.budget is not None
    means = settling.Means(budget=asked.budget, folder=asked.folder, store=asked.store)
    if asked.dry_run:
        return replace(found, planned=settling.plan(found.tests, means))
    done = settling.settle(found.tests, means, tell, told)
    run = [one.test for one in done if one.trial is not None]
    before = found.judged
    if run:
        found = _judge(asked)
    return replace(found, done=done, settled=settled(before, found.judged, run))


def _refresh(tell: Tell, progress: Any) -> None:
    """New offers; what fails is told, and the last good snapshot counts."""
    try:
        given = {} if progress is None else {"progress": progress}
        found = catalog.refresh(**given)
    except UnderdogError as error:
        tell(f"the catalog was not refreshed, the last good one counts: {error.message}")
        return
    for one in found.outcomes:
        if one.state == "kept":
            tell(f"{one.provider}: its offers of before stay: {one.reason}")
    if found.entry is None:
        tell("no provider gave new offers; the last good catalog counts")


def _judge(asked: Watch) -> Round:
    now = datetime.now(UTC)
    kept = _stored(asked, now)
    newest = catalog.pick()
    judged = rejudge(kept, newest, now, asked.oldest_seconds)
    here = settling.this_machine() if asked.act else ("", "")
    sold = _Sold(newest.table, judged, asked.offers)
    judged = [replace(one, tests=priced(one, sold.of(one), here)) for one in judged]
    tests = cheapest_set(judged)
    return Round(
        at=now.isoformat(timespec="seconds"),
        catalog=newest.hash,
        catalog_date=newest.date,
        judged=judged,
        tests=tests,
        dollars=sum(test.dollars or 0.0 for test in tests),
    )


def _stored(asked: Watch, now: datetime) -> Kept:
    with open_store(asked.store) as store:
        decisions, trials = store.decisions(), store.trials()
        attempts = store.attempts(since=now.timestamp() - supplying.OLDEST)
    names = {decision.workload for decision in decisions}
    unknown = [name for name in asked.workloads if name not in names]
    if unknown:
        said = [f"No decision about '{n}' is stored. {did_you_mean(n, names)}" for n in unknown]
        raise UsageError("\n".join(said))
    wanted_ = set(asked.workloads) or names
    latest = footing.latest([d for d in decisions if d.workload in wanted_])
    return Kept(decisions=latest, trials=trials, attempts=attempts)


class _Sold:
    """Where the machines to test are to be had: by the catalog, or by files of offers."""

    def __init__(self, table: Any, judged: Sequence[Judged], offers: str | None) -> None:
        self._offers = offers
        self._catalog = _cheapest(table, judged)
        self._entries: dict[str, list[Any]] = {}

    def of(self, one: Judged) -> dict[Machine, Sold]:
        """Of each machine to test the cheapest; a file that says how to get at it goes before."""
        found = {}
        for machine in wanted(one):
            price = self._catalog.get(machine[:2])
            places = [self._in(machine, f) for f in (self._offers, one.asked.get("offers")) if f]
            known = [place for place in places if place is not None]
            if known:
                found[machine] = min(known, key=lambda place: place.runner is None)
            elif price is not None:
                found[machine] = Sold(price[0], price[1] * machine.nodes)
        return found

    def _in(self, machine: Machine, offers: str) -> Sold | None:
        if offers not in self._entries:
            self._entries[offers] = offers_file.entries(offers)
        try:
            place = places.of_machine(machine, self._entries[offers])
        except UsageError:  # a table that is no runner's; what is judged needs none
            place = None
        if place is None:
            return None
        runner = place.runner if places.says_how(place) else None
        return Sold(place.name, place.offer.price.per_hour, offers, runner)


def _cheapest(table: Any, judged: Sequence[Judged]) -> dict[tuple[str, str], tuple[str, float]]:
    """Of the machines to test, the cheapest offer and its USD per hour."""
    machines = {machine[:2] for one in judged for machine in wanted(one)}
    if not machines:
        return {}
    listed = ", ".join(f"({text(provider)}, {text(kind)})" for provider, kind in sorted(machines))
    rows = table.run(
        f"SELECT provider, instance_type, arg_min({OFFER_ID}, price_per_hour), "
        "min(price_per_hour) FROM offers WHERE price_per_hour > 0 AND nodes = 1 "
        "AND purchase IN ('on-demand', 'spot') AND service IS NULL "
        f"AND (provider, instance_type) IN ({listed}) GROUP BY ALL"
    ).fetchall()
    return {(provider, kind): (offer, price) for provider, kind, offer, price in rows}


def repeat(
    one: Callable[[], object], every: float, tell: Tell, sleep: Callable[[float], None] = time.sleep
) -> NoReturn:
    """Rounds without end, each so many seconds after the begin of the one before.

    A round that fails is told, and the next one goes on.

    Raises:
        BrokenPipeError: nobody reads the output any more.
    """
    while True:
        began = time.monotonic()
        try:
            one()
        except BrokenPipeError:
            raise
        except Exception as error:  # whatever it was, the next round may go well
            tell(f"this round failed: {str(error) or type(error).__name__}")
        sleep(max(0.0, every - (time.monotonic() - began)))


def notify(found: Round, asked: Watch, notices: Notices) -> list[str]:
    """Send what is new since the last watch of this store; nothing where nothing is.

    Returns the services that did not take it. What none of them took is sent again next time.

    Raises:
        StoreError: what was told cannot be remembered.
    """
    marks = {one.question: mark(one) for one in found.judged}
    with seen(asked.store) as memory:
        changed = [
            one
            for one in found.judged
            # one that was never told of, and stands, is no news
            if memory.marks.get(one.question, "stands") != marks[one.question]
        ]
        failed = notices.send(*notice(found.judged, changed)) if changed else []
        if not changed or len(failed) < len(notices):
            others = memory.marks if asked.workloads else {}
            memory.keep({**others, **marks})
    return failed
