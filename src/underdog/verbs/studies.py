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

from underdog import runners
from underdog.catalog import archive, offers_file
from underdog.catalog.snapshot import Snapshot
from underdog.core import candidates as offered
from underdog.core.attempts import Attempt
from underdog.core.choosing import Choice, Request
from underdog.core.evidence import Shape, shape_of
from underdog.core.expected import Expected
from underdog.core.search import Candidates, Prediction, Reference
from underdog.core.study import Study, read_study
from underdog.errors import UnderdogError, UsageError
from underdog.measuring.command import check_knobs, filled, workload_name
from underdog.measuring.launch import check_command
from underdog.model import Offer, Trial
from underdog.store.owner import death
from underdog.verbs import candidates, choose, needs, places, supplying
from underdog.verbs.here import this_machine
from underdog.verbs.recorded import Recorded, read_recorded
from underdog.verbs.references import rates_of_others, references_of

HERE = "local"  # the runner of this machine
EXAMPLE = """Write one, such as this study.toml:

  [workload]
  command = ["python", "train.py", "--batch-size", "{batch}"]

  [knobs]
  batch = [8, 16, 32]

  [utility]
  by = "samples_per_second"

and run it: underdog explore study.toml
Recorded trials need none: underdog explore --runner replay --trials trials.csv --workload NAME"""


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
    if path is None and study.runner == HERE and not study.command and study.trials is None:
        raise UsageError("There is no study to explore.", EXAMPLE)
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
    checks: list[Any] = [lambda: needs.asked(study.needs)]
    if study.command:
        checks.append(lambda: check_knobs(study.command, study.knobs))
    if study.command and study.runner == HERE:
        checks.append(lambda: check_command(study.command, environment))
    for check in checks:
        try:
            check()
        except UnderdogError as error:
            problems.append(str(error).replace("\n", " "))
    return problems


def command_with(study: Study, setting: Mapping[str, str]) -> tuple[str, ...]:
    """The command of a study with a setting of its knobs filled in."""
    if not study.knobs:
        return study.command
    return tuple(filled(word, setting) for word in study.command)


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
        expected: of getting the candidates and of keeping them.
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
    expected: Expected

    @property
    def waits(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Seconds that a test waits for each candidate; this machine is there already."""
        return self.expected.wait_seconds * (self.study.runner != HERE)

    @property
    def had(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The chance to get each candidate for a test."""
        return np.maximum(self.expected.had, float(self.study.runner == HERE))

    @cached_property
    def candidates(self) -> Candidates:
        """As the search takes them."""
        # how to get at a machine is no fact of it
        more = [{k: v for k, v in row.items() if not isinstance(v, Mapping)} for row in self.more]
        numbers, texts = offered.facts_of(self.rows, more)
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

    def in_flight(self) -> list[Trial]:
        """Trials of this study on other machines whose process is gone: theirs to go on with."""
        return [
            trial
            for trial in self.trials
            if trial.study == self.id
            and trial.status == "running"
            and trial.handle is not None
            and death(trial.owner) is not None
        ]

    def target(self, index: int) -> Mapping[str, Any]:
        """How the runner gets at a candidate, by the user's file; empty where that says nothing."""
        said = self.more[index].get(self.study.runner) if self.more else None
        return said if isinstance(said, Mapping) else {}

    def ambiguous(self, index: int) -> bool:
        """Whether other candidates are machines of the same kind."""
        offer = self.offers[index]
        return Shape(offer.provider, offer.instance_type, offer.nodes) not in self._places[1]


def lay_out(study: Study, stored: Sequence[Trial], attempts: Sequence[Attempt] = ()) -> Field:
    """Everything that a study is about.

    Args:
        stored: all trials of the store.
        attempts: to get machines, of the store.

    Raises:
        UsageError: there is no candidate, or this machine is not among them.
        CatalogError, TrialsError: a file that cannot be read.
    """
    recorded = _recorded(study)
    workload = recorded.workload if recorded else study.workload or ""
    request = _request(study)
    id = replace(study, workload=workload).id(_contents(study))
    mine = [trial for trial in stored if trial.workload == workload]
    # what this study itself found out must not change what it searches when it goes on
    earlier = [trial for trial in mine if trial.study != id]
    known = supplying.before(attempts, [t for t in stored if t.study != id], workload)
    prediction = None
    more = _more(study)
    tables = places.reached(study.runner, more)
    if study.runner == HERE and not tables:
        catalog, more = this_machine(study, request), []
        needs.check(catalog.table, request, earlier)
        choice = choose.answer(catalog, workload, earlier, request, known=known).choice
        kept, rows = [0], catalog.table.select()
        names = [offered.as_offer(row).id for row in rows]
    else:
        catalog = _catalog(study)
        choice = choose.answer(catalog, workload, earlier, request, known=known).choice
        kept, rows, names = candidates.find(study, choice, more, recorded, tables)
        prediction = _prediction(choice, kept)
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
        prediction=prediction,
        recorded=recorded,
        expected=Expected.of(choice.table, kept, choice.supply),
    )
    rates = recorded.others if recorded else rates_of_others(laid_out, stored)
    return replace(laid_out, references=references_of(laid_out, rates))


def _recorded(study: Study) -> Recorded | None:
    """What a replay answers from."""
    if study.trials is None or study.runner != "replay":
        return None
    offers = None if study.offers is None else Path(study.offers)
    return read_recorded(Path(study.trials), offers, study.workload)


def _contents(study: Study) -> dict[str, str]:
    """Hashes of the files that it names."""
    return {n: _hash(v) for n in ("offers", "trials") if (v := getattr(study, n)) is not None}


def _described(study: Study) -> str | None:
    """The file that says what the offers are; None: the catalog does."""
    return study.trials if study.runner == "replay" and study.offers is None else study.offers


def _catalog(study: Study) -> Snapshot:
    described = _described(study)
    if described is None:
        return archive.load()
    return offers_file.load(described, study.offers is None)


def _more(study: Study) -> list[dict[str, Any]]:
    """Of each offer what the user's file says beyond our columns; empty for the catalog."""
    described = _described(study)
    return [] if described is None else offers_file.other_columns(described, study.offers is None)


def _request(study: Study) -> Request:
    """What the decision is asked."""
    return Request(
        utility=study.utility(),
        where=study.condition(),
        purchase=study.purchase,
        samples=study.samples,
        deadline_hours=None if study.job_deadline is None else study.job_deadline / 3600,
        budget=study.job_budget,
        **needs.asked(study.needs),
    )


def _hash(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror}.") from error


def _prediction(choice: Choice, kept: Sequence[int]) -> Prediction | None:
    """What the roofline makes of the earlier trials."""
    found = choice.table.run(
        "SELECT s.row, r.rate FROM scored AS s JOIN rates AS r USING (shape, machines) "
        "WHERE r.source = 'predicted'"
    ).fetchall()
    by_row = dict(found)
    rates = np.array([by_row.get(row, np.nan) for row in kept], dtype=float)
    return Prediction(np.log(rates)) if np.isfinite(rates).any() else None
