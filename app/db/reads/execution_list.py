"""The list of executions that pages show: what a row needs, at a bounded cost whatever it is narrowed to."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Table,
    and_,
    func,
    literal,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.queries import load
from app.db.reads.execution_rows import HALVES, ListedExecution, listed, named, some_statement
from app.db.reads.execution_walks import Delays, ListFilters, Walk, walks_of
from app.db.reads.paging import Page, Window, older_than
from app.db.reads.recent import Recent
from app.db.tables import queues
from app.domain.cursors import Cursor, write_cursor

MOST_LOOKED_AT = 20_000
"""Rows that a page looks through for what no index knows: 100 ms where none matches."""
MOST_COUNTED = 1_000
COUNTED_AMONG = 5_000
"""Rows that a count looks through for what no index knows."""
KEPT_SECONDS = 2.0
DELAYS_KEPT_SECONDS = 10.0

Place = tuple[datetime, UUID]


class Found(msgspec.Struct, frozen=True):
    """A page, and how far back it looked where it stopped before the end."""

    page: Page[ListedExecution]
    looked_until: datetime | None = None


class Count(msgspec.Struct, frozen=True):
    """How many there are, as far as counted."""

    rows: int
    is_whole: bool
    """Whether there are no more than that."""


class ExecutionListReads:
    """Reads lists of executions, the newest `scheduled_time` first."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._delays = Recent(self._read_delays, seconds=DELAYS_KEPT_SECONDS)
        self._counts = Recent(self._read_counts, seconds=KEPT_SECONDS)

    async def page(self, filters: ListFilters, window: Window) -> Found:
        """Return a page."""
        delays = await self._delays.get(None)
        walks = walks_of(filters, delays)
        if not walks:
            return Found(Page([], None))
        async with self._engine.connect() as connection:
            end = await _end_of(connection, walks, window.cursor)
            rows = (await connection.execute(_page_statement(walks, window, end))).all()
        items = [listed(row, delays) for row in rows[: window.limit]]
        if len(rows) > window.limit:
            last = items[-1]
            return Found(Page(items, write_cursor(last.scheduled_time, last.execution_id, window.filters)))
        if end is None:
            return Found(Page(items, None))
        return Found(Page(items, write_cursor(*end, window.filters)), end[0])

    async def some(self, execution_ids: Collection[UUID]) -> list[ListedExecution]:
        """Return those of these executions that exist."""
        if not execution_ids:
            return []
        delays = await self._delays.get(None)
        async with self._engine.connect() as connection:
            return [listed(row, delays) for row in await connection.execute(some_statement(execution_ids))]

    async def counts(self, asked: Sequence[ListFilters]) -> list[Count]:
        """Count each, up to `MOST_COUNTED`."""
        return await self._counts.get(tuple(asked))

    async def starters(self, shown: Sequence[ListedExecution]) -> Mapping[UUID, str]:
        """Return who started those that somebody has started, as far as the newest entries of the audit log tell."""
        asked = [("job", one.job_id, one) for one in shown if one.trigger == "manual"]
        asked += [
            ("execution", one.retried_from, one)
            for one in shown
            if one.trigger == "retry" and one.retried_from
        ]
        if not asked:
            return {}
        types, targets, ids = (list(values) for values in zip(*asked, strict=True))
        parameters = ([one.execution_id for one in ids], types, [str(target) for target in targets])
        async with self._engine.connect() as connection:
            rows = await connection.exec_driver_sql(load("who_started"), parameters)
            return {row.execution_id: row.actor for row in rows}

    async def _read_delays(self, _: None) -> Delays:
        statement = select(queues.c.queue, queues.c.max_delay_ms).where(queues.c.max_delay_ms.is_not(None))
        async with self._engine.connect() as connection:
            return {row.queue: row.max_delay_ms for row in await connection.execute(statement)}

    async def _read_counts(self, asked: tuple[ListFilters, ...]) -> list[Count]:
        delays = await self._delays.get(None)
        parts = [
            _count_statement(number, walk)
            for number, filters in enumerate(asked)
            for walk in walks_of(filters, delays)
        ]
        async with self._engine.connect() as connection:
            rows = (await connection.execute(union_all(*parts))).all() if parts else []
        return [_sum(row for row in rows if row.number == number) for number in range(len(asked))]


def _sum(rows: Iterable[Row[Any]]) -> Count:
    passed = list(rows)
    matched = sum(row.matched for row in passed)
    is_whole = all(row.to_the_end for row in passed) and matched < MOST_COUNTED
    return Count(min(matched, MOST_COUNTED), is_whole=is_whole)


async def _end_of(connection: AsyncConnection, walks: Sequence[Walk], cursor: Cursor | None) -> Place | None:
    """Return the last row to look at: where the first of the walks has passed so many; None: none of them has."""
    end: Place | None = None
    for walk in walks:
        if walk.only:
            row = (await connection.execute(_end_statement(walk, cursor))).one_or_none()
            if row is not None:
                end = max(end or tuple(row), tuple(row))
    return end


def _end_statement(walk: Walk, cursor: Cursor | None) -> Select[Any]:
    c = walk.table.c
    return (
        _newest(select(c.scheduled_time, c.execution_id), walk.table)
        .where(*walk.along, *older_than(cursor, c.scheduled_time, c.execution_id))
        .offset(MOST_LOOKED_AT - 1)
        .limit(1)
    )


def _page_statement(walks: Sequence[Walk], window: Window, end: Place | None) -> Select[Any]:
    """Select the newest of each walk, merged, and then named: each has a limit of its own, or it is sorted whole."""
    halves = []
    for walk in walks:
        place = tuple_(walk.table.c.scheduled_time, walk.table.c.execution_id)
        bounds = [*older_than(window.cursor, *place.clauses), *([place >= end] if end else [])]
        half = HALVES[walk.table.name].where(*walk.along, *walk.only, *bounds)
        halves.append(_newest(half, walk.table).limit(window.limit + 1))
    merged = union_all(*halves).subquery()
    newest = select(merged).order_by(merged.c.scheduled_time.desc(), merged.c.execution_id.desc())
    return named(newest.limit(window.limit + 1))


def _count_statement(number: int, walk: Walk) -> Select[Any]:
    most = COUNTED_AMONG if walk.only else MOST_COUNTED
    matches = and_(*walk.only) if walk.only else literal(True)  # noqa: FBT003 - a value, not a flag
    passed = (
        _newest(select(matches.label("matches")).select_from(walk.table), walk.table)
        .where(*walk.along)
        .limit(most)
        .subquery()
    )
    matched = func.count().filter(passed.c.matches)
    to_the_end = (func.count() < most).label("to_the_end")
    columns: list[ColumnElement[Any]] = [
        literal(number).label("number"),
        matched.label("matched"),
        to_the_end,
    ]
    return select(*columns).select_from(passed)


def _newest(rows: Select[Any], table: Table) -> Select[Any]:
    return rows.order_by(table.c.scheduled_time.desc(), table.c.execution_id.desc())
