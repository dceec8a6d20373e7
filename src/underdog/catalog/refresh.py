"""A refresh: the answers of providers take the place of their offers in the newest snapshot.

A provider that fails, or whose answer the quality rules reject, keeps the offers that it had.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np

from underdog.catalog import answers, archive, own, quality, snapshot
from underdog.catalog.answers import STATIC, Answer, Arrays, Asked, Failed
from underdog.catalog.archive import Entry
from underdog.catalog.http import Http
from underdog.catalog.providers import static
from underdog.catalog.quality import Finding
from underdog.catalog.snapshot import Snapshot
from underdog.catalog.sources import FetchOptions, LeftOut, Raw
from underdog.core.columns import BY_NAME
from underdog.core.table import Table, connect, fill, quoted
from underdog.errors import UsageError, did_you_mean

State = Literal["refreshed", "kept", "skipped"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is to be refreshed.

    Args:
        providers: their names; all that can be asked here where empty.
        options: for the providers.
        record: a folder to write the answers into.
        replay: a folder to take the answers from, instead of asking.
    """

    providers: tuple[str, ...] = ()
    options: FetchOptions = field(default_factory=FetchOptions)
    record: Path | None = None
    replay: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of one provider.

    ``refreshed``: its offers are new; what is odd about them is the reason. ``kept``: it has those
    of before, for the reason given. ``skipped``: it was not asked, for the reason given.
    """

    provider: str
    state: State
    offers: int = 0
    left_out: int = 0
    quarantined: int = 0
    doubted: int = 0
    reason: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What came of a refresh; ``entry`` is the new snapshot, None where nothing is new."""

    outcomes: list[Outcome]
    entry: Entry | None
    findings: list[Finding]


def chosen(request: Request) -> tuple[list[Asked], list[Outcome]]:
    """Who is to be asked, and who is not and why.

    Raises:
        UsageError: a provider that there is not, a file that is not there.
        CatalogError: a folder without recorded answers.
    """
    file = request.options.file
    if file is not None and not file.exists():
        raise UsageError(f"There is no file or folder '{file}'.")
    if request.replay is not None and not request.providers:
        return answers.recorded(request.replay), []
    if request.providers:
        return answers.asked(request.providers), []
    asked, skipped = [], []
    for one in answers.everyone():
        reason = answers.unready(one, request.options)
        if reason is None:
            asked.append(one)
        else:
            skipped.append(Outcome(provider=one.provider, state="skipped", reason=reason))
    return asked, skipped


def refresh(request: Request, http: Http) -> Refreshed:
    """Ask, check, and add a snapshot to the archive.

    Raises:
        UsageError: a provider that there is not.
        CatalogError: the archive cannot be written, or an answer cannot be recorded.
    """
    asked, outcomes = chosen(request)
    found: list[Answer] = []
    for one in asked:
        answer = _answer(one, request, http)
        if isinstance(answer, Answer):
            found.append(answer)
        else:
            expected = answer.skipped and not request.providers
            outcomes.append(
                Outcome(
                    provider=answer.provider,
                    state="skipped" if expected else "kept",
                    reason=answer.reason,
                    hint=answer.hint,
                )
            )
    without_own = any(o.provider == STATIC and o.state == "skipped" for o in outcomes)
    if not found and not (without_own and _stored(archive.load()) is not None):
        return Refreshed(outcomes, None, [])
    request.options.progress("quality rules", 0, None)
    with archive.locked():
        merge = _Merge(archive.load(), found, request.options, without_own)
        return merge.result(outcomes)


def _answer(one: Asked, request: Request, http: Http) -> Answer | Failed:
    tell = request.options.progress

    def progress(what: str, done: int, total: int | None) -> None:
        tell(f"{one.provider}: {what}", done, total)

    options = dataclasses.replace(request.options, progress=progress)
    if request.replay is not None:
        raw = answers.replay(one, request.replay)
    else:
        raw = answers.ask(one, options, http)
    if isinstance(raw, Failed):
        return raw
    if request.record is not None:
        answers.record(raw, request.record)
    return answers.read(raw, options)


class _Merge:
    """Answers, checked, over the snapshot before."""

    def __init__(
        self, before: Snapshot, found: list[Answer], options: FetchOptions, without_own: bool
    ) -> None:
        self.before, self.found, self.options = before, found, options
        self.own = None if without_own else _own_document(before, found)
        self.answered = {seller for answer in found for seller in answer.sellers}
        self.offers = answers.joined(found)
        self.left_out = [one for answer in found for one in answer.left_out]
        self.quarantined: collections.Counter[str] = collections.Counter()
        self.idle: list[static.Discount] = []
        self.own_prices = 0

    def result(self, outcomes: list[Outcome]) -> Refreshed:
        unheard = [name for name in self.options.accept if name not in self.answered]
        if unheard:
            meant = did_you_mean(unheard[0], self.answered)
            raise UsageError(f"'{unheard[0]}' is to be accepted, and did not answer.", meant)
        findings = self._checked()
        found = quality.rejected(findings)
        rejected = {name: why for name, why in found.items() if name not in self.options.accept}
        self.offers = _taken(self.offers, ~np.isin(_texts(self.offers, "provider"), [*rejected]))
        sellers = set(self.offers["provider"].tolist())
        outcomes = [*outcomes, *self._outcomes(sellers, rejected)]
        own_found = any(answer.provider == STATIC for answer in self.found)
        same_own = (self.own is None) == (_stored(self.before) is None)
        if not sellers and not own_found and same_own:
            return Refreshed(outcomes, None, findings)
        entry = archive.add(lambda path: self._write(path, sellers), self.options.now)
        return Refreshed([self._with_own(one) for one in outcomes], entry, findings)

    def _with_own(self, one: Outcome) -> Outcome:
        """Of the user's own prices, how many offers have one, and which discount none has."""
        if one.provider != STATIC or one.state != "refreshed":
            return one
        idle = [f"'{discount.name}' fits no offer: {discount.where}" for discount in self.idle]
        return dataclasses.replace(one, offers=self.own_prices, reason="; ".join(idle) or None)

    def _checked(self) -> list[Finding]:
        """Run the quality rules; what they take out is out, what they doubt says so."""
        if not len(self.offers["provider"]):
            return []
        findings = quality.check(_for_rules(self.offers), self._compared(), today=self.options.date)
        rows = sorted({f.row for f in findings if f.row is not None})
        place = {row: number for number, row in enumerate(rows)}
        names = ("provider", "region", "instance_type", "caveats")
        small = [{"row": row, **{n: self.offers[n][row] for n in names}} for row in rows]
        moved = [
            dataclasses.replace(f, row=place[f.row]) if f.row is not None else f for f in findings
        ]
        kept, out = quality.apply(small, moved)
        for row in kept:
            self.offers["caveats"][row["row"]] = row["caveats"]
        gone = set(rows) - {row["row"] for row in kept}
        self.quarantined.update(one.provider for one in out)
        self.left_out += out
        keep = np.ones(len(self.offers["provider"]), dtype=bool)
        keep[sorted(gone)] = False
        self.offers = _taken(self.offers, keep)
        return findings

    def _compared(self) -> Table:
        """The snapshot before, as far as the answers stand for it, at list prices."""
        if not self.options.regions and _stored(self.before) is None:
            return self.before.table
        others = ""
        if self.options.regions:
            others = (
                f"WHERE provider NOT IN ({_listed(self.answered)}) "
                f"OR region IN ({_listed(self.options.regions)})"
            )
        return own.listed(self.before, others)

    def _outcomes(
        self, sellers: set[str], rejected: Mapping[str, Sequence[Finding]]
    ) -> list[Outcome]:
        found = []
        for answer in self.found:
            taken = sellers & answer.sellers
            if taken or answer.provider == STATIC:
                mine = np.isin(_texts(self.offers, "provider"), [*taken])
                found.append(
                    Outcome(
                        provider=answer.provider,
                        state="refreshed",
                        offers=int(mine.sum()),
                        left_out=len(answer.left_out),
                        quarantined=sum(self.quarantined[seller] for seller in answer.sellers),
                        doubted=int((self.offers["caveats"][mine] != None).sum()),  # noqa: E711
                    )
                )
        found += [
            Outcome(
                provider=name,
                state="kept",
                reason="; ".join(f.message for f in why),
                hint=f"If that is true: underdog catalog refresh --accept {name}",
            )
            for name, why in rejected.items()
        ]
        return found + self._silent(sellers | rejected.keys())

    def _silent(self, heard: set[str]) -> list[Outcome]:
        """Sellers that had offers, and of which the answer has none any more."""
        reasons = {one.provider: one.reason for one in self.left_out}
        had = {
            name
            for (name,) in self.before.table.run("SELECT DISTINCT provider FROM offers").fetchall()
        }
        return [
            Outcome(provider=name, state="kept", reason=reasons[name])
            for name in sorted((reasons.keys() & had) - heard)
        ]

    def _write(self, path: Path, sellers: set[str]) -> str:
        connection = connect()
        fill(connection, self.offers)
        self.offers = {}  # the database has them now
        connection.execute("ALTER TABLE offers RENAME TO fresh")
        had_own = _stored(self.before) is not None
        # own prices are put on by changes, which need a table; a view needs no memory
        kind = "TABLE" if had_own or self.own is not None else "VIEW"
        connection.execute(
            f"CREATE {kind} offers AS SELECT * FROM fresh UNION ALL "
            f"SELECT {self._selected(connection)} WHERE NOT ({self._replaced(sellers)})"
        )
        if had_own:
            own.take_off(connection)
        if self.own is not None:
            rows = [row for row in static.parse(self.own) if not isinstance(row, LeftOut)]
            discounts = static.discounts(self.own)
            self.idle = own.idle(connection, discounts)
            self.own_prices = own.put_on(connection, rows, discounts, self.own.source)
        sources = self._sources(sellers)
        return snapshot.save(
            connection,
            path,
            date=max([self.before.date, *(str(s.get("date") or "") for s in sources)]),
            sources=sources,
            left_out=self._left_out(sellers),
        )

    def _selected(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The offers of before, as SQL selects them."""
        path = self.before.path
        assert path is not None, "the archive gives snapshots that are files"
        file = quoted(str(path.resolve()))
        return f"{snapshot.columns(connection, path)} FROM read_parquet({file})"

    def _replaced(self, sellers: set[str]) -> str:
        if not sellers:
            return "false"
        replaced = f"provider IN ({_listed(sellers)})"
        if self.options.regions:
            replaced += f" AND region IN ({_listed(self.options.regions)})"
        return replaced

    def _sources(self, sellers: set[str]) -> list[dict[str, Any]]:
        kept = [
            one
            for one in self.before.sources
            if one.get("provider") not in sellers and one.get("provider") != STATIC
        ]
        new = [
            {
                "provider": seller,
                "prices": answer.source,
                "date": answer.date,
                "asked": answer.provider,
            }
            for answer in self.found
            for seller in sorted(answer.sellers & sellers)
        ]
        mine = [
            {"provider": STATIC, "prices": raw.source, "date": raw.date, "documents": raw.documents}
            for raw in [self.own]
            if raw is not None
        ]
        return sorted([*kept, *new], key=lambda one: str(one.get("provider"))) + mine

    def _left_out(self, sellers: set[str]) -> list[dict[str, Any]]:
        told = sellers | {one.provider for one in self.left_out}
        kept = [one for one in self.before.left_out if one.get("provider") not in told]
        return [*kept, *summary(self.left_out)]


def summary(left_out: Iterable[LeftOut]) -> list[dict[str, Any]]:
    """What was left out, counted by provider and reason, with the names."""
    groups: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for one in left_out:
        groups[(one.provider, one.reason)].append(one.instance_type)
    return [
        {"provider": provider, "reason": reason, "rows": len(names), "names": sorted(set(names))}
        for (provider, reason), names in sorted(groups.items())
    ]


def _own_document(before: Snapshot, found: Iterable[Answer]) -> Raw | None:
    new = [answer.raw for answer in found if answer.raw is not None]
    return new[-1] if new else _stored(before)


def _stored(before: Snapshot) -> Raw | None:
    for one in before.sources:
        if one.get("provider") == STATIC and isinstance(one.get("documents"), dict):
            return Raw(
                provider=STATIC,
                documents=one["documents"],
                source=str(one.get("prices")),
                date=str(one.get("date")),
            )
    return None


def _for_rules(offers: Arrays) -> dict[str, Any]:
    return {
        name: np.ma.masked_invalid(values, copy=False) if BY_NAME[name].kind == "number" else values
        for name, values in offers.items()
    }


def _taken(offers: Arrays, keep: np.ndarray[Any, Any]) -> Arrays:
    return {name: values[keep] for name, values in offers.items()}


def _texts(offers: Arrays, name: str) -> np.ndarray[Any, Any]:
    return offers[name].astype(str)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(quoted(name) for name in sorted(names))
