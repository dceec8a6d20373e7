"""The store in SQLite or PostgreSQL: documents, and the columns that are searched."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from underdog.core.attempts import Attempt
from underdog.core.cut_off import cut_off
from underdog.errors import StoreError
from underdog.model import Decision, Timeline, Trial
from underdog.progress import track
from underdog.store import Record, Tally, document, migrate, schema
from underdog.store.engine import display, make_engine, may_only_be_read, reading, told, writing
from underdog.store.owner import death

# A trial in flight on another host cannot be looked at from here: it counts as interrupted when it
# was not saved for this long.
SILENT_SECONDS = 7 * 86400.0
_AT_ONCE = 500  # rows per statement

_T = TypeVar("_T", Trial, Decision, Attempt)
_TABLES = ((Trial, schema.trials), (Decision, schema.decisions), (Attempt, schema.attempts))


class _Page(NamedTuple):
    """So many records, after so many of the last ones were left out."""

    limit: int | None = None
    offset: int = 0


def open_store(url: str) -> SqlStore:
    """The store at a URL of SQLite or PostgreSQL, made where there is none.

    Raises:
        StoreError: it cannot be opened, is not ours, or is of a newer underdog.
        MissingPackageError: psycopg is not installed.
    """
    store = SqlStore(make_engine(url))
    try:
        store._prepare()
    except BaseException:
        store.close()
        raise
    return store


class SqlStore:
    """Records in a database; ``underdog.store.Store`` tells what each method does."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def save(self, *records: Record) -> None:
        self.save_all(records)

    def save_all(self, records: Iterable[Record]) -> int:
        count = 0
        with told(self._engine, "written"), writing(self._engine) as connection:
            for some in _chunks(records):
                for kind, table in _TABLES:
                    rows = [_row(record) for record in some if isinstance(record, kind)]
                    if rows:
                        connection.execute(self._upsert(table), rows)
                count += len(some)
        return count

    def trials(
        self,
        *,
        workload: str | None = None,
        id: str | Collection[str] | None = None,
        status: str | None = None,
        study: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        timeline: bool = False,
    ) -> list[Trial]:
        table = schema.trials
        conditions = _equal(table, workload=workload, status=status, study=study)
        page = _Page(limit, offset)
        if not timeline:
            return self._read(Trial, table, conditions, id, page)
        rows = self._rows([table.c.document, table.c.timeline], conditions, id, page)
        counted = track(rows, "trials read")
        found = [(document.decode(Trial, row.document), row.timeline) for row in counted]
        return [
            one if text is None else replace(one, timeline=document.decode(Timeline, text))
            for one, text in found
        ]

    def tally(self) -> list[Tally]:
        table = schema.trials
        groups = sa.select(
            table.c.workload,
            table.c.status,
            table.c.study,
            sa.func.count().label("trials"),
            sa.func.max(table.c.started_at).label("started_at"),
            sa.func.max(table.c.number).label("number"),
        ).group_by(table.c.workload, table.c.status, table.c.study)
        each = groups.subquery()
        # a key with a backslash is not the name itself: a document has that
        odd = [name.like("%\\%", escape="!") for name in (each.c.workload, each.c.study)]
        named = sa.case((sa.or_(*odd), table.c.document)).label("document")
        query = sa.select(each, named).join(table, table.c.number == each.c.number)
        with told(self._engine, "read"), reading(self._engine) as connection:
            rows = connection.execute(query).all()
        return sorted(
            (_tallied(row) for row in rows),
            key=lambda one: (one.workload, one.status, one.study or ""),
        )

    def update(self, trial: Trial) -> bool:
        table = schema.trials
        runs = (table.c.id == document.key(trial.id)) & (table.c.status == "running")
        with told(self._engine, "written"), writing(self._engine, at_once=True) as connection:
            done = connection.execute(table.update().where(runs).values(_changed(trial)))
        return bool(done.rowcount)

    def decisions(
        self,
        *,
        workload: str | None = None,
        id: str | Collection[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Decision]:
        conditions = _equal(schema.decisions, workload=workload)
        return self._read(Decision, schema.decisions, conditions, id, _Page(limit, offset))

    def attempts(
        self,
        *,
        provider: str | None = None,
        instance_type: str | None = None,
        since: float | None = None,
        limit: int | None = None,
    ) -> list[Attempt]:
        table = schema.attempts
        conditions = _equal(table, provider=provider, instance_type=instance_type)
        if since is not None:
            conditions.append(table.c.at >= since)
        return self._read(Attempt, table, conditions, None, _Page(limit))

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read(
        self,
        kind: type[_T],
        table: sa.Table,
        conditions: list[sa.ColumnElement[bool]],
        id: str | Collection[str] | None,
        page: _Page,
    ) -> list[_T]:
        rows = self._rows([table.c.document], conditions, id, page)
        what = f"{kind.__name__.lower()}s read"
        return [document.decode(kind, row.document) for row in track(rows, what)]

    def _rows(
        self,
        columns: list[sa.Column[Any]],
        conditions: list[sa.ColumnElement[bool]],
        id: str | Collection[str] | None,
        page: _Page,
    ) -> list[sa.Row[Any]]:
        """The columns of the records that match, in the order of their first saving."""
        table = columns[0].table
        query = sa.select(table.c.number, *columns).where(*conditions)
        query = query.order_by(table.c.number.desc())
        if id is None:
            queries = [query.limit(page.limit).offset(page.offset or None)]
            page = _Page()
        else:
            keys = [document.key(one) for one in ([id] if isinstance(id, str) else id)]
            queries = [query.where(table.c.id.in_(some)) for some in _chunks(keys)]
        found: dict[int, sa.Row[Any]] = {}
        with told(self._engine, "read"), reading(self._engine) as connection:
            for one in queries:
                found |= {row.number: row for row in connection.execute(one)}
        end = max(0, len(found) - page.offset)
        begin = 0 if page.limit is None else max(0, end - page.limit)
        return [found[number] for number in sorted(found)[begin:end]]

    def _upsert(self, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
        insert: postgresql.Insert | sqlite.Insert = sqlite.insert(table)
        if self._engine.dialect.name == "postgresql":
            insert = postgresql.insert(table)
        new: dict[str, Any] = {
            c.name: insert.excluded[c.name] for c in table.c if c.name not in {"number", "id"}
        }
        if "timeline" in new:
            new["timeline"] = sa.func.coalesce(new["timeline"], table.c.timeline)
        return insert.on_conflict_do_update(index_elements=[table.c.id], set_=new)

    def _prepare(self) -> None:
        """Make or bring up to date the tables, then mark the trials whose owner is gone."""
        with told(self._engine, "opened"):
            with reading(self._engine) as connection:
                state = migrate.state(connection)
            if state is not migrate.State.CURRENT:
                with writing(self._engine, alone=True) as connection:
                    migrate.bring_to_head(connection, display(self._engine))
            try:
                self._mark_interrupted()
            except DBAPIError as error:
                if not may_only_be_read(error):  # who may only read sees them as still running
                    raise

    def _mark_interrupted(self) -> None:
        table = schema.trials
        query = sa.select(table.c.id, table.c.saved_at, table.c.document)
        with reading(self._engine) as connection:
            running = connection.execute(query.where(table.c.status == "running")).all()
        now = time.time()
        for id, saved_at, text in running:
            try:
                trial = document.decode(Trial, text)
            except StoreError:
                continue  # told when it is asked for; the others can be read all the same
            if trial.handle is not None:
                continue  # it runs elsewhere: its runner can still be asked
            reason = death(trial.owner)
            if reason is None and now - saved_at > SILENT_SECONDS:
                days = (now - saved_at) / 86400
                reason = f"nothing was heard of it for {days:.0f} days"
            if reason is None:
                continue
            ended = cut_off(trial, reason)
            with writing(self._engine) as connection:
                # only if nobody saved it meanwhile
                unchanged = (table.c.id == id) & (table.c.saved_at == saved_at)
                connection.execute(table.update().where(unchanged).values(_changed(ended)))


def _changed(trial: Trial) -> dict[str, Any]:
    """The row that replaces that of a trial: without a new timeline the one that is there stays."""
    row = _row(trial)
    return {name: value for name, value in row.items() if name != "timeline" or value is not None}


def _row(record: Record) -> dict[str, Any]:
    row = {
        "id": document.key(record.id),
        "saved_at": time.time(),
        "document": document.encode(record),
    }
    if isinstance(record, Attempt):
        places = ("provider", "region", "zone", "instance_type", "purchase")
        named = {name: document.key(getattr(record.place, name)) for name in places}
        return row | named | {"at": record.at}
    row["workload"] = document.key(record.workload)
    if isinstance(record, Decision):
        return row | {"created_at": document.key(record.created_at)}
    offer = record.offer
    provider = offer.provider if offer else record.machine.provider
    shape = offer.instance_type if offer else record.machine.instance_type
    return row | {
        "status": document.key(record.status),
        "started_at": document.key(record.started_at),
        "provider": None if provider is None else document.key(provider),
        "instance_type": None if shape is None else document.key(shape),
        "study": None if record.study is None else document.key(record.study),
        "timeline": document.encode_timeline(record),
    }


def _tallied(row: sa.Row[Any]) -> Tally:
    """A count by keys or, where those are not the names themselves, by what a document says."""
    one = row if row.document is None else document.decode(Trial, row.document)
    return Tally(one.workload, row.status, row.trials, row.started_at, one.study)


def _equal(table: sa.Table, **values: str | None) -> list[sa.ColumnElement[bool]]:
    given = {name: value for name, value in values.items() if value is not None}
    return [table.c[name] == document.key(value) for name, value in given.items()]


_Item = TypeVar("_Item")


def _chunks(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    rest = iter(items)
    while some := list(islice(rest, _AT_ONCE)):
        yield some
