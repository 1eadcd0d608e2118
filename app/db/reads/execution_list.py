"""The list of executions that pages show: what a row needs, at a bounded cost whatever it is narrowed to."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import (
    Boolean,
    ColumnElement,
    Row,
    Select,
    Table,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    null,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.queries import load
from app.db.reads.execution_walks import DEFAULT_DELAY_MS, Delays, ListFilters, Walk, walks_of
from app.db.reads.paging import Page, Window, older_than
from app.db.reads.recent import Recent
from app.db.tables import execution_history, executions, jobs, queues, workers
from app.db.tables.metadata import timestamptz
from app.domain.cursors import Cursor, write_cursor
from app.domain.ids import shard_of
from app.domain.statuses import Disposition, Status

MOST_LOOKED_AT = 20_000
"""Rows that a page looks through for what no index knows: 100 ms where none matches."""
MOST_COUNTED = 1_000
COUNTED_AMONG = 5_000
"""Rows that a count looks through for what no index knows."""
ERROR_CHARACTERS = 300
KEPT_SECONDS = 2.0
DELAYS_KEPT_SECONDS = 10.0

Place = tuple[datetime, UUID]


class ListedExecution(msgspec.Struct, frozen=True, kw_only=True):
    """An execution as a row of a list shows it."""

    execution_id: UUID
    job_id: UUID
    user_id: str
    task_id: str
    queue: str
    priority: int
    status: Status
    disposition: Disposition
    trigger: str
    retried_from: UUID | None
    scheduled_time: datetime
    due_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    lateness_ms: float | None
    attempt_number: int
    max_attempts: int
    worker_id: UUID | None
    worker_host: str | None
    error_type: str | None
    error_message: str | None
    """Its beginning."""
    cancelling: bool
    held: bool
    """Its job is paused."""
    job_name: str | None
    max_delay_ms: int
    """What its queue promises."""

    @property
    def is_late(self) -> bool:
        """Tell whether it started later than its queue promises."""
        return self.lateness_ms is not None and self.lateness_ms > self.max_delay_ms


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
        items = [_view(row, delays) for row in rows[: window.limit]]
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
            return [_view(row, delays) for row in await connection.execute(_some_statement(execution_ids))]

    async def counts(self, asked: Sequence[ListFilters]) -> list[Count]:
        """Count each, up to `MOST_COUNTED`."""
        return await self._counts.get(tuple(asked))

    async def starters(self, listed: Sequence[ListedExecution]) -> Mapping[UUID, str]:
        """Return who started those that somebody has started, as far as the newest entries of the audit log tell."""
        asked = [("job", one.job_id, one) for one in listed if one.trigger == "manual"]
        asked += [
            ("execution", one.retried_from, one)
            for one in listed
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
        half = _HALVES[walk.table.name].where(*walk.along, *walk.only, *bounds)
        halves.append(_newest(half, walk.table).limit(window.limit + 1))
    merged = union_all(*halves).subquery()
    newest = select(merged).order_by(merged.c.scheduled_time.desc(), merged.c.execution_id.desc())
    return _named(newest.limit(window.limit + 1))


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


_SHARED = ("shard", "execution_id", "job_id", "user_id", "task_id", "queue", "priority", "status", "trigger",
           "retried_from", "scheduled_time", "due_at", "first_due_at", "attempt_number", "max_attempts", "worker_id",
           "lateness_ms")  # fmt: skip


def _half(table: Table, *more: ColumnElement[Any]) -> Select[Any]:
    c = table.c
    error_type = c.error["type"].as_string().label("error_type")
    message = func.left(c.error["message"].as_string(), ERROR_CHARACTERS).label("error_message")
    return select(*(c[name] for name in _SHARED), error_type, message, *more)


def _live_half() -> Select[Any]:
    c = executions.c
    began = case((c.status == Status.RUNNING.value, c.claimed_at))  # until its start is written
    return _half(
        executions,
        func.coalesce(c.started_at, began).label("started_at"),
        cast(null(), timestamptz).label("completed_at"),
        cast(literal(Disposition.PENDING.value), Text).label("disposition"),
        c.cancel_requested_at.is_not(None).label("cancelling"),
        c.held,
    )


def _finished_half() -> Select[Any]:
    c = execution_history.c
    no = cast(literal(False), Boolean)  # noqa: FBT003 - a value, not a flag
    return _half(
        execution_history,
        c.started_at,
        c.completed_at,
        c.disposition,
        no.label("cancelling"),
        no.label("held"),
    )


_HALVES = {"executions": _live_half(), "execution_history": _finished_half()}


def _some_statement(execution_ids: Collection[UUID]) -> Select[Any]:
    """Select executions by their ids. None ended before it was made, which its id tells: older days are left out."""
    shards = {shard_of(execution_id) for execution_id in execution_ids}
    first = (
        min(one.int for one in execution_ids) >> 80 & (1 << 47) - 1
    )  # ids come from anywhere: some year we know
    ended = execution_history.c.completed_at.between(
        datetime.fromtimestamp(first / 1000 - 1, UTC), func.now() + timedelta(minutes=1)
    )
    halves = [
        half.where(table.c.shard.in_(shards), table.c.execution_id.in_(execution_ids), *more)
        for table, half, more in (
            (executions, _HALVES["executions"], ()),
            (execution_history, _HALVES["execution_history"], (ended,)),
        )
    ]
    return _named(select(union_all(*halves).subquery()))


def _named(rows: Select[Any]) -> Select[Any]:
    """Add what the job and the worker's host are called; both may be gone."""
    found = rows.subquery()
    return (
        select(found, jobs.c.name.label("job_name"), workers.c.host.label("worker_host"))
        .outerjoin(jobs, and_(jobs.c.shard == found.c.shard, jobs.c.job_id == found.c.job_id))
        .outerjoin(workers, workers.c.worker_id == found.c.worker_id)
        .order_by(found.c.scheduled_time.desc(), found.c.execution_id.desc())
    )


def _view(row: Row[Any], delays: Delays) -> ListedExecution:
    values = dict(row._mapping)
    del values["shard"]
    first_due_at = values.pop("first_due_at")
    if (
        values["lateness_ms"] is None and values["started_at"] is not None
    ):  # began a moment ago, not written yet
        values["lateness_ms"] = (values["started_at"] - first_due_at) / timedelta(milliseconds=1)
    values |= {
        "status": Status(values["status"]),
        "disposition": Disposition(values["disposition"]),
        "max_delay_ms": delays.get(values["queue"], DEFAULT_DELAY_MS),
    }
    return ListedExecution(**values)
