"""Choose: rank the offers of the catalog for a measured workload."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from underdog.catalog import archive, offers_file, quality
from underdog.catalog import facts as known_facts
from underdog.catalog.hardware import fact_columns
from underdog.catalog.snapshot import Snapshot
from underdog.core import choosing, footing, origin, remarks, spot_plans, story
from underdog.core.choosing import Choice, Request
from underdog.core.columns import BY_NAME
from underdog.core.evidence import Evidence, Shape, gather
from underdog.core.expression import parse
from underdog.core.fallback import fallback
from underdog.core.problems import LARGEST, SMALLEST
from underdog.core.supply import Supply
from underdog.core.table import Table
from underdog.core.transfer_evidence import Carried, carried
from underdog.core.utility import parse_utility
from underdog.errors import UsageError, did_you_mean
from underdog.model import Decision, Trial
from underdog.progress import say
from underdog.store import Store, open_store
from underdog.units import parse_duration
from underdog.verbs import comparing, needs, supplying

PURCHASES = ("on-demand", "spot", "reserved")
# prices of a catalog move within weeks, and so do drivers and frameworks
VALID_DAYS = 30
VALID_DAYS_SPOT = 1
# the latest trials of other workloads that predictions may rest on
REFERENCES = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Options(comparing.Further):
    """What ``choose`` is asked; ``comparing.Further`` has the rest.

    Args:
        workload: its name; without it the most recently measured one.
        by: the utility: a metric, an expression, or several with commas between them.
        better: overrides the direction of the utility.
        tolerance: of a rule of several terms, a fraction.
        where: a condition over offer columns.
        deadline: the longest time for the whole job, seconds or text such as ``48h``.
        samples: of the whole job.
        budget: the most that the whole job may cost, USD.
        purchase: options to consider; on-demand and spot without it.
        nodes: numbers of machines that may share the job.
        software: stacks that the workload can run on, else what its framework reaches unchanged.
        all_regions: list every region, not only the best one of each machine.
        limit: the most offers in the ranking.
        offers: a file of offers instead of the catalog.
        as_of: the catalog of a day, of the first letters of a hash, or ``bundled``; without it the
            newest.
        store: a URL or a path.
        save: keep the decision in the store.
    """

    workload: str | None = None
    by: str = "samples_per_dollar"
    better: Literal["higher", "lower"] | None = None
    tolerance: float = 0.0
    where: str | None = None
    deadline: float | str | None = None
    samples: float | None = None
    budget: float | None = None
    purchase: Sequence[str] = ()
    nodes: Sequence[int] = (1,)
    software: Sequence[str] | None = None
    all_regions: bool = False
    limit: int = 20
    offers: str | Path | None = None
    as_of: str | None = None
    store: str | None = None
    save: bool = True


@dataclass(slots=True)
class Answer:
    """A decision without its ledger, and the choice that the ledger is read from."""

    decision: Decision
    choice: Choice

    def full(self) -> Decision:
        """The decision with the ledger of every candidate."""
        rows = [
            {"offer": r["offer"], "verdict": r["verdict"], "reason": r["reason"]}
            for r in self.choice.ledger()
        ]
        return replace(self.decision, ledger=rows)

    def near_misses(self) -> list[str]:
        """Of a deadline and a budget that no offer keeps, what comes closest."""
        return self.choice.near_misses()

    def explain(self, offer: str) -> str:
        """The story of one offer in prose.

        Args:
            offer: an offer's name, or an instance type.

        Raises:
            UsageError: no candidate is called so; the message names the nearest.
        """
        return story.tell(self.choice, offer)


def choose(workload: str | None = None, **options: Any) -> Decision:
    """Rank the offers for a workload; see ``Options`` for what may be given.

    Returns:
        The decision with the complete ledger. Its ranking is empty where no offer meets the
        constraints.

    Raises:
        UsageError: an option that cannot be taken, or a workload that was never measured.
        ExpressionError: an expression that cannot be read or computed.
        CatalogError: offers that cannot be read.
        StoreError: a store that cannot be opened, read or written.
    """
    return decide(Options(workload=workload, **options)).full()


def decide(options: Options) -> Answer:
    """Like ``choose``; the ledger is made only when it is asked for."""
    request, services = request_of(options), comparing.question(options, options.samples)
    with open_store(options.store) as store:
        name, trials = _trials(store, options.workload)
        catalog = _catalog(options)
        _check_stacks(catalog.table, request.stacks or ())
        others = store.trials(status="ok", limit=REFERENCES)
        known = supplying.supply(options, store, trials, others)
        found = answer(catalog, name, trials, request, others, known)
        kept = footing.rests_on(asked(options), found.decision, trials)
        layers = comparing.compared(found.choice, services)
        found.decision = replace(found.decision, rests_on=kept, services=layers)
        if options.save:
            # the ledger is made anew from the trials and the snapshot: a store keeps its counts
            store.save(found.decision)
    return found


def asked(options: Options) -> dict[str, Any]:
    """The question as it can be asked again, from any folder."""
    files = {
        name: str(Path(file).absolute())
        for name in ("offers", "availability", "apis")
        if (file := getattr(options, name)) is not None
    }
    return {**footing.asked(options), **files}


def answer(
    catalog: Snapshot,
    workload: str,
    trials: Sequence[Trial],
    request: Request,
    others: Sequence[Trial] = (),
    known: Supply | None = None,
) -> Answer:
    """The decision that these trials of a workload lead to among these offers.

    Args:
        others: trials of other workloads, which tell how machines compare.
        known: of getting machines and keeping them.

    Raises:
        ExpressionError: the utility or the condition has no value for some candidate.
    """
    evidence = gather(trials)
    say(f"ranking {catalog.rows:,} offers")
    choice = _choice(catalog.table, evidence, request, carried(evidence, others), known)
    decision = _decision(choice, workload, trials)
    decision = replace(decision, snapshot=catalog.hash, snapshot_date=catalog.date)
    return Answer(decision, choice)


def _catalog(options: Options) -> Snapshot:
    if not options.offers:
        return archive.load(options.as_of)
    if options.as_of is not None:
        raise UsageError("A file of offers has no earlier days.", "Give --offers or --as-of.")
    return offers_file.load(options.offers)


def request_of(options: Options) -> Request:
    """The question, every option checked; the expensive parts come after.

    Raises:
        UsageError: all that is wrong, together.
    """
    problems = [
        f"--{name} must be positive, not {value}."
        for name, value in (("samples", options.samples), ("budget", options.budget))
        if value is not None and not SMALLEST < value < LARGEST
    ]
    problems += [
        f"There is no purchase option '{option}'. {did_you_mean(option, PURCHASES)}"
        for option in options.purchase
        if option not in PURCHASES
    ]
    if not options.nodes or any(count < 1 for count in options.nodes):
        problems.append(f"The numbers of nodes must be 1 or more, not {list(options.nodes)}.")
    if options.limit < 1:
        problems.append(f"--limit must be 1 or more, not {options.limit}.")
    if not 0 <= options.tolerance < 1:
        problems.append(f"--tolerance must be a share such as 10%, not {options.tolerance}.")
    if options.samples is None:
        for name, value in (("deadline", options.deadline), ("budget", options.budget)):
            if value is not None:
                problems.append(f"--{name} needs --samples: how many samples the whole job has.")
    if problems:
        raise UsageError("\n".join(problems))
    seconds = parse_duration(d) if isinstance(d := options.deadline, str) else d
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UsageError(f"--deadline must be positive, not {seconds}.")
    utility = parse_utility(
        options.by,
        direction=options.better,
        tolerance=options.tolerance,
        has_samples=options.samples is not None,
    )
    return Request(
        utility=utility,
        where=None if options.where is None else parse(options.where, BY_NAME),
        purchase=tuple(options.purchase),
        samples=options.samples,
        deadline_hours=None if seconds is None else seconds / 3600,
        budget=options.budget,
        machines=tuple(sorted(set(options.nodes))),
        stacks=tuple(options.software) if options.software else None,
        all_regions=options.all_regions,
        limit=options.limit,
        **needs.asked(options.needs),
    )


def _check_stacks(table: Table, stacks: Sequence[str]) -> None:
    """A mistyped stack would rule out every accelerator without a word."""
    if not stacks:
        return
    listed = table.run(
        "SELECT DISTINCT unnest(string_split(replace(software, ' ', ''), ',')) FROM offers"
    ).fetchall()
    known = {name for facts in known_facts.accelerators().values() for name in facts.software}
    known |= {name for (name,) in listed if name}
    wrong = [stack for stack in stacks if stack not in known]
    if wrong:
        said = [f"There is no software stack '{s}'. {did_you_mean(s, known)}" for s in wrong]
        raise UsageError("\n".join(said))


def _trials(store: Store, workload: str | None) -> tuple[str, list[Trial]]:
    if workload is not None:
        found = store.trials(workload=workload)
        if found:
            return workload, found
    measured = store.trials(status="ok") if workload is None else store.trials()
    if not measured:
        raise UsageError(
            "No workload has been measured yet, so there is nothing to choose for.",
            "Measure one: underdog measure -- python train.py\n"
            "or bring in trials measured elsewhere: underdog trials import FILE",
        )
    if workload is not None:
        names = {trial.workload for trial in measured}
        raise UsageError(
            f"No trial of the workload '{workload}' is in the store.", did_you_mean(workload, names)
        )
    latest = max(measured, key=lambda trial: (trial.started_at, trial.id)).workload
    return latest, store.trials(workload=latest)


def _choice(
    table: Table,
    evidence: Sequence[Evidence],
    request: Request,
    told: Mapping[Shape, Carried],
    known: Supply | None,
) -> Choice:
    """Choose among the catalog's offers and the measured machines that it does not list."""
    unlisted = not_listed(table, evidence)
    extra = [row for row in unlisted.values() if row["price_per_hour"] is not None]
    return choosing.choose(table, evidence, request, extra, unlisted, told, known=known)


def not_listed(table: Table, evidence: Sequence[Evidence]) -> dict[Shape, Mapping[str, Any]]:
    """The measured machines that are no offer of the table, as dicts of offer columns."""
    listed = {
        Shape(provider, kind, int(nodes))
        for provider, kind, nodes in table.run(
            "SELECT DISTINCT provider, instance_type, nodes FROM offers"
        ).fetchall()
    }
    return {
        found.shape: origin.row_of(_priced(found.trials), accelerator_columns)
        for found in evidence
        if found.trials and found.shape not in listed
    }


def _priced(trials: Sequence[Trial]) -> Trial:
    """The latest trial, of those with a known price where there are any."""
    known = [trial for trial in trials if origin.price_of(trial) is not None]
    return (known or trials)[-1]


def accelerator_columns(name: str, memory_gib: float | None) -> Mapping[str, Any]:
    """The offer columns of an accelerator by what its driver calls it; empty where unknown."""
    named = known_facts.accelerator_named(name, memory_gib)
    if named is None:
        return {}
    return {"accelerator": named.key, **fact_columns(known_facts.accelerators()[named.key])}


def _decision(choice: Choice, workload: str, trials: Sequence[Trial]) -> Decision:
    utility, now = choice.request.utility, datetime.now(UTC)
    ranking = choice.ranking()
    for entry in ranking:
        entry["offer"]["caveats"] = quality.with_age(entry["offer"], now.date())
    spot = any(entry["offer"]["purchase"] == "spot" for entry in ranking)
    funnel, plans = choice.funnel(), spot_plans.plans(choice)
    return Decision(
        id=f"decision-{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}",
        workload=workload,
        created_at=now.isoformat(timespec="seconds"),
        utility=utility.text,
        better=utility.first.better,
        constraints=[f"{c.name}: {c.met}" for c in choice.constraints],
        trials=[trial.id for trial in trials],
        assumptions=[
            *remarks.assumptions(choice),
            *supplying.assumptions(choice.supply, ranking),
        ],
        candidates=sum(line["offers"] for line in funnel),
        ranking=ranking,
        test_next=choice.test_next(),
        caveats=[
            *(*remarks.caveats(choice), *needs.caveats(choice, trials, ranking)),
            *supplying.caveats(choice.supply, ranking),
            *spot_plans.caveats(plans, ranking),
            *quality.doubts(entry["offer"] for entry in ranking),
        ],
        best_measured=choice.winner.name if choice.winner else None,
        funnel=funnel,
        fallback=fallback(choice),
        plans=plans,
        expires_at=(now + timedelta(days=VALID_DAYS_SPOT if spot else VALID_DAYS)).isoformat(
            timespec="seconds"
        ),
    )
