"""Stored decisions judged anew, all at once: what they share is looked at once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from underdog.catalog import archive, offers_file, supply_file
from underdog.catalog.moves import Moves, moves
from underdog.catalog.snapshot import Snapshot
from underdog.core import footing, scoring
from underdog.core.attempts import Attempt, of_trials
from underdog.core.choosing import Request, constraints_of
from underdog.core.constraints import text
from underdog.core.evidence import Evidence, Shape, gather
from underdog.core.history import counted, shifts
from underdog.core.laid_out import fill, lay_out
from underdog.core.ledger import OFFER_ID
from underdog.core.rescoring import Scores, rescore
from underdog.core.supply import Supply
from underdog.core.table import Table
from underdog.core.transfer_evidence import Carried, carried
from underdog.core.watched import Judged, Seen
from underdog.core.watching import judge, newest_versions, unknown
from underdog.errors import CatalogError, UnderdogError
from underdog.model import Decision, Trial
from underdog.progress import track
from underdog.verbs import choose, supplying


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """What a store holds: of each question the latest decision, all trials, and the attempts."""

    decisions: Sequence[Decision]
    trials: Sequence[Trial]
    attempts: Sequence[Attempt] = ()


@dataclass(slots=True)
class _Asked:
    """A decision and its question, read."""

    decision: Decision
    asked: Mapping[str, Any]
    options: choose.Options
    request: Request
    cut: frozenset[str] = frozenset()  # trials from before a change that it has not seen


@dataclass(slots=True)
class _Market:
    """A catalog, and what all decisions that are about it share."""

    catalog: Snapshot
    types: frozenset[tuple[str, str]]
    moves: dict[str, Moves | None] = field(default_factory=dict)  # by the hash of before
    rows: dict[str, list[int]] = field(default_factory=dict)  # of offers, by name

    @classmethod
    def of(cls, catalog: Snapshot, decisions: Iterable[Decision]) -> _Market:
        found = catalog.table.run("SELECT DISTINCT provider, instance_type FROM offers").fetchall()
        made = cls(catalog, frozenset((str(p), str(t)) for p, t in found))
        names = {_leader(decision) for decision in decisions} - {""}
        if names:
            listed = ", ".join(text(name) for name in sorted(names))
            sql = f"SELECT rowid, {OFFER_ID} AS id FROM offers WHERE id IN ({listed})"
            for row, name in catalog.table.run(sql).fetchall():
                made.rows.setdefault(name, []).append(row)
        return made

    def moved(self, before: str) -> Moves | None:
        """What moved since the catalog of that hash; None where that is not known any more."""
        if before not in self.moves:
            try:
                self.moves[before] = self._compare(before)
            except CatalogError:
                self.moves[before] = None
        return self.moves[before]

    def _compare(self, before: str) -> Moves | None:
        if before == self.catalog.hash:
            nothing = np.empty(0)
            return Moves(nothing.astype(np.int64), nothing, nothing.astype(bool))
        if self.catalog.path is None or not before:
            return None
        return moves(archive.load(before), self.catalog)


def _leader(decision: Decision) -> str:
    """The name of the offer that a decision put first, empty where there is none."""
    first = decision.ranking[0].get("offer") if decision.ranking else None
    return str(first.get("id", "")) if isinstance(first, Mapping) else ""


def rejudge(kept: Kept, newest: Snapshot, now: datetime, oldest_seconds: float) -> list[Judged]:
    """Judge decisions by the newest offers and all trials, in their order.

    Args:
        newest: the catalog, for all that are not about a file of offers.
        oldest_seconds: a measurement that is older asks for another one.
    """
    found: dict[str, Judged] = {}
    read: dict[str, tuple[choose.Options, Request]] = {}
    asked = [_read(decision, found, read) for decision in kept.decisions]
    known = [one for one in asked if one is not None]
    common = Seen(now=now, versions=newest_versions(kept.trials), oldest_seconds=oldest_seconds)
    world = _World(kept, common)
    for offers, group in _grouped(known, lambda one: one.options.offers).items():
        try:
            catalog = newest if offers is None else offers_file.load(offers)
            market = _Market.of(catalog, [one.decision for one in group])
        except UnderdogError as error:
            found |= {one.decision.id: _cannot(one, error) for one in group}
            continue
        by_workload = _grouped(group, lambda one: one.decision.workload)
        for workload, some in track(by_workload.items(), "workloads judged", every=1):
            found |= _Workload(world, market, workload).judged(some)
    return [found[decision.id] for decision in kept.decisions]


def _read(
    decision: Decision,
    found: dict[str, Judged],
    read: dict[str, tuple[choose.Options, Request]],
) -> _Asked | None:
    """The question of a decision; where it cannot be read, the verdict says why."""
    asked, why = footing.question(decision)
    if why is not None:
        why = f"it was made by an older underdog, and {why}; choose again and it is watched"
        found[decision.id] = unknown(decision, asked, why)
        return None
    try:
        name = json.dumps(asked, sort_keys=True)
        if name not in read:  # workloads are often asked the same
            options = choose.Options(**asked)
            read[name] = options, choose.request_of(options)
    except (UnderdogError, TypeError, ValueError) as error:
        why = f"its question cannot be asked any more: {error}"
        found[decision.id] = unknown(decision, asked, why)
        return None
    return _Asked(decision, asked, *read[name])


def _cannot(one: _Asked, error: UnderdogError) -> Judged:
    return unknown(one.decision, one.asked, error.message)


def _grouped(found: Iterable[_Asked], key: Callable[[_Asked], Any]) -> dict[Any, list[_Asked]]:
    groups: dict[Any, list[_Asked]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return groups


class _World:
    """What all decisions share, whatever they are about."""

    def __init__(self, kept: Kept, seen: Seen) -> None:
        self.seen = seen
        self.by_workload: dict[str, list[Trial]] = {}
        for trial in kept.trials:
            self.by_workload.setdefault(trial.workload, []).append(trial)
        self.others = [t for t in kept.trials if t.status == "ok"][-choose.REFERENCES :]
        tell = (t for t in kept.trials if t.status in ("ok", "no_capacity", "interrupted"))
        self.attempts = [*kept.attempts, *of_trials(tell, kept.attempts)]

    def supply(self, options: supplying.Obtaining, own: Sequence[Trial]) -> Supply:
        """What choosing knows of getting machines, for the trials of a workload."""
        told = supply_file.load(options.availability) if options.availability is not None else []
        return supplying.of(options, self.attempts, told, own, self.seen.now.timestamp())


class _Workload:
    """The decisions about one workload and one catalog."""

    def __init__(self, world: _World, market: _Market, workload: str) -> None:
        self._world, self._market, self._name = world, market, workload
        self._own = world.by_workload.get(workload, [])
        self._changes = shifts(self._own)

    def judged(self, group: Sequence[_Asked]) -> dict[str, Judged]:
        """The verdicts, by the ids of the decisions."""
        if not any(trial.status != "running" for trial in self._own):
            why = f"no trial of '{self._name}' is in the store any more"
            return {one.decision.id: unknown(one.decision, one.asked, why) for one in group}
        for one in group:
            seen_by = set(one.decision.trials)
            unseen = [s.earlier for s in self._changes if s.first not in seen_by]
            one.cut = frozenset().union(*unseen)
        found: dict[str, Judged] = {}
        for cut, alike in _grouped(group, lambda one: one.cut).items():
            counting = [trial for trial in self._own if trial.id not in cut]
            evidence = gather(counting)
            told = carried(evidence, self._world.others)
            seen = self._seen(cut, counting)
            for some in _grouped(alike, _laid_out_alike).values():
                try:
                    table, known = self._lay_out(some[0], evidence, told)
                    found |= self._answered(some, table, evidence, known, seen)
                except UnderdogError as error:
                    found |= {one.decision.id: _cannot(one, error) for one in some}
        return found

    def _seen(self, cut: frozenset[str], counting: Sequence[Trial]) -> Seen:
        return dataclasses.replace(
            self._world.seen,
            catalog=self._market.catalog.hash,
            catalog_date=self._market.catalog.date,
            types=self._market.types,
            trials=counted(counting),
            shifts=[shift for shift in self._changes if shift.earlier <= cut],
        )

    def _lay_out(
        self, one: _Asked, evidence: Sequence[Evidence], told: Mapping[Shape, Carried]
    ) -> tuple[Table, Supply]:
        """The tables as ``underdog.core.choosing.choose`` lays them out."""
        offers, machines = self._market.catalog.table, one.request.machines
        unlisted = choose.not_listed(offers, evidence)
        extra = [row for row in unlisted.values() if row["price_per_hour"] is not None]
        known = self._world.supply(one.options, self._own)
        table, _ = lay_out(offers, evidence, machines, extra, unlisted, told, known=known)
        return table, known

    def _answered(
        self,
        group: Sequence[_Asked],
        table: Table,
        evidence: Sequence[Evidence],
        known: Supply,
        seen: Seen,
    ) -> dict[str, Judged]:
        self._few(group, table, evidence)
        found = {}
        for some in _grouped(group, lambda one: one.request.samples).values():
            for one, scores in zip(some, _scores(some, table, evidence, known), strict=True):
                mine = _seen_by(one.decision, self._market, seen)
                found[one.decision.id] = judge(one.decision, one.asked, scores, mine)
        return found

    def _few(self, group: Sequence[_Asked], table: Table, evidence: Sequence[Evidence]) -> None:
        """The table ``few``: the offers that can change a verdict where one that is measured leads.

        They are what was tried, what led, and what moved since; the table ``kept`` has those that
        led, and those of a type that is new.
        """
        led = {row for one in group for row in self._market.rows.get(_leader(one.decision), [])}
        since = [self._market.moved(before) for before in {one.decision.snapshot for one in group}]
        moved = [one for one in since if one is not None]
        kept = [np.array(sorted(led), dtype=np.int64), *(m.row[m.new_type] for m in moved)]
        fill(table, "kept", {"row": np.unique(np.concatenate(kept))})
        rows = [np.empty(0, dtype=np.int64), *(m.row for m in moved)]
        fill(table, "moved", {"row": np.unique(np.concatenate(rows))})
        tried = ", ".join(
            f"({text(shape.provider)}, {text(shape.instance_type)})"
            for shape in (found.shape for found in evidence)
        )
        table.run(
            "CREATE OR REPLACE TEMP TABLE few AS SELECT * FROM candidates "
            f"WHERE (provider, instance_type) IN ({tried}) "
            "OR row IN (SELECT row FROM kept) OR row IN (SELECT row FROM moved)"
        )


_OBTAINING = tuple(one.name for one in dataclasses.fields(supplying.Obtaining))


def _laid_out_alike(one: _Asked) -> str:
    told = {name: one.asked.get(name) for name in _OBTAINING}
    return json.dumps([one.request.machines, told], sort_keys=True)


def _seen_by(decision: Decision, market: _Market, seen: Seen) -> Seen:
    """The world with what moved since a decision."""
    moved, prices = market.moved(decision.snapshot), _prices(decision)
    if moved is None:
        return dataclasses.replace(seen, prices=prices, compared=False)
    was = dict(zip(moved.row.tolist(), moved.was.tolist(), strict=True))
    new = frozenset(moved.row[moved.new_type].tolist())
    return dataclasses.replace(seen, prices=prices, was=was, new_types=new)


def _scores(
    group: Sequence[_Asked], table: Table, evidence: Sequence[Evidence], known: Supply
) -> list[Scores]:
    """Over the few offers that can change a verdict; over all where no measured one may lead."""
    samples = group[0].request.samples
    questions = [_question(one.request, evidence) for one in group]
    view = "CREATE OR REPLACE TEMP VIEW joined AS"
    kept = "row IN (SELECT row FROM kept)"
    table.run(f"{view} {scoring.joined(samples, known, 'few')}")
    scores = rescore(table, questions, kept)
    open_ = [k for k, one in enumerate(scores) if not (one.rows.measured & one.counts).any()]
    if open_:
        table.run(f"{view} {scoring.joined(samples, known)}")
        anew = rescore(table, [questions[k] for k in open_], kept, best=True)
        for k, one in zip(open_, anew, strict=True):
            scores[k] = one
    return scores


def _question(request: Request, evidence: Sequence[Evidence]) -> scoring.Question:
    return scoring.Question(
        request.utility,
        constraints_of(request, evidence),
        request.deadline_hours,
        request.budget,
    )


def _prices(decision: Decision) -> dict[str, float]:
    found = {}
    for entry in decision.ranking:
        offer = entry.get("offer") or {}
        price = offer.get("price_per_hour")
        if price:
            found[f"{offer.get('id')}{offer.get('service') or ''}"] = float(price)
    return found
