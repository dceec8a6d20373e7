"""From a study's file to what is searched: candidates, what is known of them, and the runner."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underdog import runners
from underdog.catalog import archive, offers_file
from underdog.catalog.snapshot import Snapshot
from underdog.core import candidates as offered
from underdog.core import origin
from underdog.core.choosing import COST_COLUMNS, Choice, Request
from underdog.core.evidence import Shape, gather, shape_of
from underdog.core.ledger import OFFER_ID
from underdog.core.search import Candidates, Prediction, Reference
from underdog.core.study import Study, read_study
from underdog.errors import UnderdogError, UsageError
from underdog.measuring.command import check_knobs, workload_name
from underdog.measuring.launch import check_command
from underdog.measuring.machine import describe
from underdog.measuring.nvml import Nvml
from underdog.model import Offer, Software, Trial
from underdog.verbs import choose
from underdog.verbs.measure import offer_of
from underdog.verbs.recorded import Recorded, read_recorded

_TWO_SIDED = 1.96  # standard deviations between a mean and the end of its 95 % interval
_HERE = "local"  # the runner of this machine


def read(
    path: str | Path | None, given: Mapping[str, Any], environment: Mapping[str, str]
) -> Study:
    """The study of a file, checked whole.

    Args:
        path: a TOML file; its own paths start from its folder. None: all is given.
        given: fields of ``Study`` that stand over those of the file.
        environment: where the program of the command is looked for.

    Raises:
        UsageError: it cannot be read, or has problems, all of which are told.
    """
    text, folder = "", Path()
    if path is not None:
        folder = Path(path).parent
        try:
            text = Path(path).read_bytes().decode("utf-8")
        except OSError as error:
            raise UsageError(f"The study '{path}' cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise UsageError(f"The study '{path}' is not UTF-8: {error}.") from None
    study, problems = read_study(text, given, runners.names())
    if study.offers is not None and "offers" not in given:
        study = replace(study, offers=str(folder / study.offers))
    if study.trials is not None and "trials" not in given:
        study = replace(study, trials=str(folder / study.trials))
    problems += _outside(study, environment)
    if problems:
        what = "This study" if path is None else f"The study '{path}'"
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise UsageError(f"{what} cannot be used:\n{lines}", "docs/reference/study.md explains it.")
    if study.workload is None and study.command:
        study = replace(study, workload=workload_name(study.command))
    return study


def _outside(study: Study, environment: Mapping[str, str]) -> list[str]:
    """Problems that only a look at files and programs shows."""
    problems = [
        f"There is no file '{value}' ({name})."
        for name in ("offers", "trials")
        if (value := getattr(study, name)) is not None and not Path(value).is_file()
    ]
    checks: list[Any] = []
    if study.command:
        checks.append(lambda: check_knobs(study.command, study.knobs))
    if study.command and study.runner == _HERE:
        checks.append(lambda: check_command(study.command, environment))
    for check in checks:
        try:
            check()
        except UnderdogError as error:
            problems.append(str(error).replace("\n", " "))
    return problems


@dataclass(frozen=True)
class Field:
    """All that a search starts from.

    Attributes:
        study, id: what is asked, and its name.
        workload: its name.
        catalog, request: what the decision at the end is made from.
        rows, names: of the candidates: dicts of offer columns, and distinct names.
        more: of the candidates, what the user's file says in other columns.
        trials: of this workload from before, this study's included.
        references: what other workloads did on the candidates.
        prediction: of the roofline, where the earlier trials allow one.
        recorded: for a replay.
    """

    study: Study
    id: str
    workload: str
    catalog: Snapshot
    request: Request
    rows: Sequence[Mapping[str, Any]]
    names: Sequence[str]
    more: Sequence[Mapping[str, Any]]
    trials: Sequence[Trial]
    references: Sequence[Reference]
    prediction: Prediction | None
    recorded: Recorded | None

    @cached_property
    def candidates(self) -> Candidates:
        """As the search takes them."""
        numbers, texts = offered.facts_of(self.rows, self.more)
        price = np.array([row.get("price_per_hour") for row in self.rows], dtype=float)
        return Candidates(list(self.names), price, numbers, texts)

    @cached_property
    def offers(self) -> list[Offer]:
        """As trials keep them."""
        return [offered.as_offer(row) for row in self.rows]

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[Shape, int]]:
        shapes = [Shape(o.provider, o.instance_type, o.nodes) for o in self.offers]
        times = Counter(shapes)
        by_shape = {shape: i for i, shape in enumerate(shapes) if times[shape] == 1}
        return {name: i for i, name in enumerate(self.names)}, by_shape

    def index_of(self, trial: Trial) -> int | None:
        """The candidate that a trial ran on; None where it is none of them."""
        by_name, by_shape = self._places
        named = by_name.get(trial.knobs.get("offer", ""))
        return by_shape.get(shape_of(trial)) if named is None else named

    def ambiguous(self, index: int) -> bool:
        """Whether other candidates are machines of the same kind."""
        offer = self.offers[index]
        return Shape(offer.provider, offer.instance_type, offer.nodes) not in self._places[1]


def lay_out(study: Study, stored: Sequence[Trial]) -> Field:
    """Everything that a study is about.

    Args:
        stored: all trials of the store.

    Raises:
        UsageError: there is no candidate, or this machine is not among them.
        CatalogError, TrialsError: a file that cannot be read.
    """
    recorded = None
    if study.trials is not None and study.runner == "replay":
        offers = None if study.offers is None else Path(study.offers)
        recorded = read_recorded(Path(study.trials), offers, study.workload)
    workload = recorded.workload if recorded else study.workload or ""
    catalog, more = _catalog(study)
    contents = {n: _hash(v) for n in ("offers", "trials") if (v := getattr(study, n)) is not None}
    id = replace(study, workload=workload).id(contents)
    mine = [trial for trial in stored if trial.workload == workload]
    request = _request(study)
    # what this study itself found out must not change what it searches when it goes on
    earlier = [trial for trial in mine if trial.study != id]
    choice = choose.answer(catalog, workload, earlier, request).choice
    kept: list[int] = []
    if study.runner == _HERE:
        rows, names = _this_machine(study, choice)
    else:
        kept, rows, names = _candidates(study, choice, more, recorded)
    laid_out = Field(
        study=replace(study, workload=workload),
        id=id,
        workload=workload,
        catalog=catalog,
        request=request,
        rows=rows,
        names=names,
        more=[more[row] for row in kept if row < len(more)],
        trials=mine,
        references=(),
        prediction=_prediction(choice, kept) if kept else None,
        recorded=recorded,
    )
    rates = recorded.others if recorded else _rates_of_others(laid_out, stored)
    return replace(laid_out, references=_references(laid_out, rates))


def _catalog(study: Study) -> tuple[Snapshot, list[dict[str, Any]]]:
    """The offers to search among, and what a file of the user's says of them beyond our columns."""
    described = study.trials if study.runner == "replay" and study.offers is None else study.offers
    if described is None:
        return archive.load(), []
    own = study.offers is None
    return offers_file.load(described, own), offers_file.other_columns(described, own)


def _request(study: Study) -> Request:
    """What the decision is asked."""
    return Request(
        utility=study.utility(),
        where=study.condition(),
        purchase=study.purchase,
        samples=study.samples,
        deadline_hours=None if study.job_deadline is None else study.job_deadline / 3600,
        budget=study.job_budget,
    )


def _hash(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror}.") from error


def _candidates(
    study: Study, choice: Choice, more: Sequence[Mapping[str, Any]], recorded: Recorded | None
) -> tuple[list[int], list[dict[str, Any]], list[str]]:
    """Rows of the table, the offers, and their names: what nothing rules out."""
    found = choice.table.run(
        f"SELECT c.row, provider, instance_type, nodes, price_per_hour, {OFFER_ID} FROM candidates "
        "AS c WHERE c.row IN (SELECT row FROM scored WHERE excluded IS NULL) ORDER BY c.row"
    ).fetchall()
    named = {row: str(more[row].get("offer") or id) if more else id for row, *_, id in found}
    if recorded is not None:
        kept = [row for row in named if named[row] in recorded.candidates]
    else:
        machines = [
            (row, (*machine, *_facts(more, row)), price) for row, *machine, price, _ in found
        ]
        kept = offered.one_of_each(machines)
    if study.limit is not None and study.limit < len(kept):
        price = {row: price for row, *_, price, _ in found}
        kept = sorted(sorted(kept, key=lambda r: price[r] or float("inf"))[: study.limit])
    if not kept:
        reasons = [f"{x['offers']:,} are out by {x['cause']}" for x in choice.funnel()]
        raise UsageError(
            "There is no candidate to test.", "\n".join(reasons) or "The offers are empty."
        )
    rows = _rows(choice, kept)
    names = _distinct([named[row] for row in kept])
    return kept, rows, names


def _facts(more: Sequence[Mapping[str, Any]], row: int) -> tuple[str, ...]:
    """What the user's file says of an offer beyond our columns: other disks are other machines."""
    if not more:
        return ()
    return tuple(f"{k}={v}" for k, v in sorted(more[row].items()) if k != "offer")


def _distinct(names: Sequence[str]) -> list[str]:
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return found


def _rows(choice: Choice, kept: Sequence[int]) -> list[dict[str, Any]]:
    listed = ", ".join(map(str, kept))
    found = choice.table.run(f"SELECT * FROM candidates WHERE row IN ({listed}) ORDER BY row")
    names = [part[0] for part in found.description or ()]
    rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    by_row = {row.pop("row"): row for row in rows}
    return [by_row[row] for row in kept]


def _prediction(choice: Choice, kept: Sequence[int]) -> Prediction | None:
    """What the roofline makes of the earlier trials."""
    found = choice.table.run(
        "SELECT s.row, r.rate, r.rate_low, r.rate_high FROM scored AS s "
        "JOIN rates AS r USING (shape, machines) WHERE r.source = 'predicted'"
    ).fetchall()
    by_row = {row: ends for row, *ends in found}
    ends = np.array([by_row.get(row, [np.nan] * 3) for row in kept], dtype=float)
    if not np.isfinite(ends).all(axis=1).any():
        return None
    rate, low, high = np.log(ends.T)
    return Prediction(rate, (high - low) / 2 / _TWO_SIDED)


def _rates_of_others(
    laid_out: Field, stored: Sequence[Trial]
) -> dict[str, dict[str, float | None]]:
    """What other workloads of the store did on the candidates: samples per second, None: failed."""
    by_workload: dict[str, list[Trial]] = {}
    for trial in stored:
        if trial.workload != laid_out.workload and laid_out.index_of(trial) is not None:
            by_workload.setdefault(trial.workload, []).append(trial)
    found: dict[str, dict[str, float | None]] = {}
    for workload, trials in by_workload.items():
        rates = found.setdefault(workload, {})
        for evidence in gather(trials):
            tried = next(t for t in trials if shape_of(t) == evidence.shape)
            index = laid_out.index_of(tried)
            if index is not None:
                estimate = evidence.estimate
                rates[laid_out.names[index]] = None if estimate is None else estimate.value
    return found


def _references(
    laid_out: Field, rates: Mapping[str, Mapping[str, float | None]]
) -> list[Reference]:
    made = []
    for workload, by_name in rates.items():
        given = [by_name.get(name) for name in laid_out.names]
        throughput: NDArray[np.float64] = np.array(given, dtype=float)
        failed = np.array(
            [name in by_name and by_name[name] is None for name in laid_out.names], dtype=bool
        )
        if failed.any() or np.isfinite(throughput).any():
            made.append(Reference(workload, throughput, failed))
    return made


def _this_machine(study: Study, choice: Choice) -> tuple[list[dict[str, Any]], list[str]]:
    """The offer that this machine is, by the user's file, else by what it tells of itself.

    Raises:
        UsageError: it is none of the user's offers, or its price is unknown and needed.
    """
    nvml = Nvml()
    machine = describe(nvml)
    nvml.close()
    offer, price = offer_of(machine, study.price)
    begun = Trial(
        id="",
        workload="",
        status="running",
        offer=offer,
        price=price,
        machine=machine,
        software=Software(),
    )
    row: dict[str, Any] = origin.row_of(begun, choose.accelerator_columns)
    if study.offers is not None:
        row = _listed(study, choice, shape_of(begun))
        if study.price is not None:
            row |= {"price_per_hour": study.price, "price_unknown_reason": None}
    if row.get("price_per_hour") is None and choice.request.utility.uses(*COST_COLUMNS):
        raise UsageError(
            f"The price of this machine is unknown, and '{study.by}' needs it.",
            "Give it as [runner] price, or search --by samples_per_second.",
        )
    return [row], [offered.as_offer(row).id]


def _listed(study: Study, choice: Choice, shape: Shape) -> dict[str, Any]:
    """The user's offer that is this machine: the only one of the file, or that of its type."""
    found = choice.table.run("SELECT * EXCLUDE (row) FROM candidates ORDER BY row")
    names = [part[0] for part in found.description or ()]
    rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    mine = [
        row
        for row in rows
        if (row["provider"], row["instance_type"], int(row["nodes"])) == tuple(shape)
    ]
    if not mine and len(rows) > 1:
        raise UsageError(
            f"None of the {len(rows):,} offers of '{study.offers}' is this machine, "
            f"{shape.provider}/{shape.instance_type}.",
            "Name it there by that provider and instance type, or let it stand there alone.",
        )
    return (mine or rows)[0]
