"""Which jobs a list shows: found along an index whatever it is narrowed to, at a bounded cost.

What no index knows (a tag, a part of the name) is looked at row by row; then a page looks through so many jobs at a
time, and says so.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Select, and_, func, literal_column, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.reads.job_runs import LOOKED_BACK
from app.db.reads.paging import Page, Window, older_than
from app.db.tables import execution_history, executions, jobs
from app.domain.cursors import Cursor, write_cursor

MOST_LOOKED_AT = 10_000
"""Jobs that a page looks through for what no index knows."""
MOST_PROBED = 2_000
"""Jobs of which a page asks one by one whether they have ever run."""
MOST_FAILURES = 2_000
"""The newest failures among which failing jobs are looked for."""

Place = tuple[datetime, UUID]
"""Where a job stands in a list: by when it was created; one that fails, by its last failure."""


class JobKind(StrEnum):
    """How often jobs run. Those that run once may be millions, made by programs: they must not hide the others."""

    REPEATING = "repeating"
    ONCE = "once"
    ALL = "all"


class JobState(StrEnum):
    """How jobs are."""

    ENABLED = "enabled"
    PAUSED = "paused"
    FAILING = "failing"
    """Of its last runs that came to an end by themselves, the newest failed."""
    NEVER_RUN = "never_run"


class JobListFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of jobs is narrowed to."""

    kind: JobKind = JobKind.REPEATING
    state: JobState | None = None
    name: str | None = None
    """A part of the name; what has no name goes by its task."""
    task_id: str | None = None
    user_id: str | None = None
    tag: str | None = None


class FoundJobs(msgspec.Struct, frozen=True):
    """The places of a page's jobs, and how far back it looked where it stopped before the end."""

    page: Page[Place]
    looked_until: datetime | None = None


class JobListReads:
    """Finds the jobs of a list: those that fail by their last failure, others by their creation, newest first."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def page(self, filters: JobListFilters, window: Window) -> FoundJobs:
        """Return the places of one page's jobs."""
        async with self._engine.connect() as connection:
            if filters.state is JobState.FAILING:
                return await _failing_page(connection, filters, window)
            along, only = _along(filters), _only(filters)
            most = MOST_PROBED if filters.state is JobState.NEVER_RUN else MOST_LOOKED_AT
            end = await _end(connection, along, window.cursor, most) if only else None
            found = await connection.execute(_page_statement(along, only, window, end))
            places = [(row.created_at, row.job_id) for row in found]
        if len(places) > window.limit:
            return FoundJobs(_page(places, window))
        if end is None:
            return FoundJobs(Page(places, None))
        return FoundJobs(Page(places, write_cursor(*end, window.filters)), end[0])

    async def any(self) -> bool:
        """Tell whether there is any job."""
        async with self._engine.connect() as connection:
            return await connection.scalar(select(jobs.c.job_id).limit(1)) is not None


_REPEATING: ColumnElement[bool] = literal_column("jobs.schedule_type IN ('RECURRING', 'INTERVAL')")
_RUNS_ONCE: ColumnElement[bool] = literal_column("jobs.schedule_type IN ('IMMEDIATE', 'ONCE')")
_PAUSED: ColumnElement[bool] = literal_column("NOT jobs.is_active")
"""As the partial indexes say it, which are found by that."""
_FAILED: ColumnElement[str] = literal_column("'FAILED'")
_COMPLETED: ColumnElement[str] = literal_column("'COMPLETED'")


def _along(filters: JobListFilters) -> list[ColumnElement[bool]]:
    """Return what an index has in the order of the list."""
    found: list[ColumnElement[bool]] = []
    if filters.state is JobState.PAUSED:
        found.append(_PAUSED)
    elif filters.kind is JobKind.REPEATING:
        found.append(_REPEATING)  # of these there are so few that their owner and task are just looked at
    if filters.user_id is not None:
        found.append(jobs.c.user_id == filters.user_id)
    if filters.task_id is not None and (filters.user_id is None or filters.kind is JobKind.REPEATING):
        found.append(jobs.c.task_id == filters.task_id)
    return found


def _only(filters: JobListFilters) -> list[ColumnElement[bool]]:
    """Return what is looked at row by row."""
    found = [one for one in _looked_at(filters) if one is not None]
    if filters.state is JobState.PAUSED and filters.kind is JobKind.REPEATING:
        found.append(_REPEATING)
    if filters.task_id is not None and filters.user_id is not None and filters.kind is not JobKind.REPEATING:
        found.append(jobs.c.task_id == filters.task_id)
    return found


def _looked_at(filters: JobListFilters) -> tuple[ColumnElement[bool] | None, ...]:
    named = func.coalesce(jobs.c.name, jobs.c.task_id)
    return (
        _RUNS_ONCE if filters.kind is JobKind.ONCE else None,
        named.icontains(filters.name, autoescape=True) if filters.name is not None else None,
        jobs.c.tags.contains([filters.tag]) if filters.tag is not None else None,
        jobs.c.is_active if filters.state is JobState.ENABLED else None,
        _never_ran() if filters.state is JobState.NEVER_RUN else None,
    )


def _never_ran() -> ColumnElement[bool]:
    """Tell that nothing of a job has begun. A scalar query: EXISTS may become a join with the whole history."""
    h, e = execution_history.c, executions.c
    ran = (
        select(h.job_id)
        .where(h.job_id == jobs.c.job_id, h.shard == jobs.c.shard, h.started_at.is_not(None))
        .where(h.completed_at >= jobs.c.created_at, h.completed_at < func.now() + timedelta(minutes=1))
    )
    runs = select(e.job_id).where(
        e.job_id == jobs.c.job_id,
        e.shard == jobs.c.shard,
        e.attempt_number > 0,
        e.scheduled_time <= func.now(),
    )
    return and_(*(rows.limit(1).scalar_subquery().is_(None) for rows in (ran, runs)))


async def _end(
    connection: AsyncConnection, along: list[ColumnElement[bool]], cursor: Cursor | None, most: int
) -> Place | None:
    """Return the last job to look at; None: no more than `most` follow."""
    statement = _newest(select(jobs.c.created_at, jobs.c.job_id)).where(
        *along, *older_than(cursor, jobs.c.created_at, jobs.c.job_id)
    )
    rows = (await connection.execute(statement.offset(most - 1).limit(2))).all()
    return (rows[0].created_at, rows[0].job_id) if len(rows) == 2 else None


def _page_statement(
    along: list[ColumnElement[bool]], only: list[ColumnElement[bool]], window: Window, end: Place | None
) -> Select[Any]:
    place = (jobs.c.created_at, jobs.c.job_id)
    bounds = [*older_than(window.cursor, *place), *([tuple_(*place) >= end] if end else [])]
    return _newest(select(*place)).where(*along, *only, *bounds).limit(window.limit + 1)


def _newest(rows: Select[Any]) -> Select[Any]:
    return rows.order_by(jobs.c.created_at.desc(), jobs.c.job_id.desc())


def _page(places: list[Place], window: Window) -> Page[Place]:
    time, job_id = places[window.limit - 1]
    return Page(places[: window.limit], write_cursor(time, job_id, window.filters))


# --- those that fail


async def _failing_page(connection: AsyncConnection, filters: JobListFilters, window: Window) -> FoundJobs:
    rows = (await connection.execute(_failing_statement(filters, window))).all()
    places = [(row.scheduled_time, row.job_id) for row in rows]
    if len(places) > window.limit:
        return FoundJobs(_page(places, window))
    oldest = await connection.scalar(_oldest_failure())
    return FoundJobs(Page(places, None), oldest)


def _failing_statement(filters: JobListFilters, window: Window) -> Select[Any]:
    """Select jobs by their newest failure, if nothing of them has completed since.

    Index: history_status in the days concerned, then for each job history_job behind its failure.
    """
    failures = (
        _failures().limit(MOST_FAILURES).cte("failures").prefix_with("MATERIALIZED", dialect="postgresql")
    )
    last = func.max(failures.c.scheduled_time).label("scheduled_time")
    newest = (
        select(failures.c.shard, failures.c.job_id, last)
        .group_by(failures.c.shard, failures.c.job_id)
        .cte("newest")
    )
    h = execution_history.c
    completed_since = (
        select(h.job_id)
        .where(h.job_id == newest.c.job_id, h.shard == newest.c.shard, h.status == _COMPLETED)
        .where(h.scheduled_time > newest.c.scheduled_time, h.completed_at > newest.c.scheduled_time)
        .where(h.completed_at < func.now() + timedelta(minutes=1))
        .limit(1)
        .scalar_subquery()
    )
    place = (newest.c.scheduled_time, newest.c.job_id)
    kind = {JobKind.REPEATING: [_REPEATING], JobKind.ONCE: [_RUNS_ONCE], JobKind.ALL: []}[filters.kind]
    plain = msgspec.structs.replace(filters, kind=JobKind.ALL, state=None)
    return (
        select(*place)
        .join(jobs, and_(jobs.c.shard == newest.c.shard, jobs.c.job_id == newest.c.job_id))
        .where(*kind, *_along(plain), *_only(plain), completed_since.is_(None))
        .where(*older_than(window.cursor, *place))
        .order_by(*(column.desc() for column in place))
        .limit(window.limit + 1)
    )


def _failures() -> Select[Any]:
    h = execution_history.c
    return (
        select(h.shard, h.job_id, h.scheduled_time)
        .where(h.status == _FAILED, h.scheduled_time > func.now() - LOOKED_BACK)
        .where(h.completed_at.between(func.now() - LOOKED_BACK, func.now() + timedelta(minutes=1)))
        .order_by(h.scheduled_time.desc(), h.execution_id.desc())
    )


def _oldest_failure() -> Select[Any]:
    """Select the oldest failure that is looked at, where there are older ones."""
    return (
        _failures().with_only_columns(execution_history.c.scheduled_time).offset(MOST_FAILURES - 1).limit(1)
    )
