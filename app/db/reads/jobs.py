"""Jobs as people read them."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.acting import reading
from app.db.reads.paging import Page, Window, older_than
from app.db.tables import jobs
from app.db.transactions import Transaction
from app.domain.cursors import write_cursor
from app.domain.errors import InvalidInput, InvalidTimezone, NotFound
from app.domain.ids import shard_of
from app.domain.jobs import NewJob
from app.domain.schedule import next_occurrences
from app.domain.schedule_preview import stored_warnings
from app.domain.schedule_warnings import ScheduleWarning
from app.domain.stored_schedule import SCHEDULE_FIELDS, stored_schedule
from app.domain.timezones import resolve

NEXT_OCCURRENCES = 5


class ScheduleView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule as it is read back."""

    type: str
    expression: str | None
    scheduled_time: datetime | None
    every: float | None
    """Seconds."""
    timezone: str
    timezone_requested: str
    timezone_target: str | None = None
    """Where `timezone` leads if it is a link, such as US/Pacific."""
    gap: str
    fold: str
    starts_at: datetime | None
    ends_at: datetime | None
    misfire: str
    misfire_grace_seconds: float


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is read."""

    job_id: UUID
    user_id: str
    task_id: str
    name: str | None
    tags: list[str]
    schedule: ScheduleView
    parameters: dict[str, Any]
    overlap: str
    concurrency_key: str | None
    concurrency_limit: int | None
    depends_on: list[UUID]
    queue: str | None
    priority: int | None
    max_retries: int | None
    timeout_seconds: float | None
    expires_after_seconds: float | None
    unique_key: str | None
    unique_for_seconds: float | None
    unique_policy: str
    batch_id: UUID | None
    is_active: bool
    pause_reason: str | None
    paused_until: datetime | None
    created_at: datetime
    updated_at: datetime
    version: int
    next_occurrences: list[datetime]


class JobFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of jobs is narrowed to."""

    user_id: str | None = None
    task_id: str | None = None
    created_after: datetime | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the filters as SQL conditions."""
        found: list[ColumnElement[bool]] = []
        if self.user_id is not None:
            found.append(jobs.c.user_id == self.user_id)
        if self.task_id is not None:
            found.append(jobs.c.task_id == self.task_id)
        if self.created_after is not None:
            found.append(jobs.c.created_at > self.created_after)
        return found


class JobReads:
    """Reads jobs."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, job_id: UUID, *, now: datetime, within: Transaction | None = None) -> JobView:
        """Return a job. Raises `NotFound`."""
        statement = select(jobs).where(jobs.c.shard == shard_of(job_id), jobs.c.job_id == job_id)
        async with reading(self._engine, within) as connection:
            row = (await connection.execute(statement)).one_or_none()
        if row is None:
            raise NotFound(f"there is no job {job_id}")
        return view_of_columns(dict(row._mapping), now)

    async def some(self, job_ids: Collection[UUID], *, now: datetime) -> list[JobView]:
        """Return those of these jobs that exist, in any order."""
        places = (jobs.c.shard.in_({shard_of(job_id) for job_id in job_ids}), jobs.c.job_id.in_(job_ids))
        async with self._engine.connect() as connection:
            rows = (await connection.execute(select(jobs).where(*places))).all()
        return [view_of_columns(dict(row._mapping), now) for row in rows]

    async def list_page(self, filters: JobFilters, window: Window, *, now: datetime) -> Page[JobView]:
        """Return a page of jobs, the newest first."""
        statement = (
            select(jobs)
            .where(*filters.conditions(), *older_than(window.cursor, jobs.c.created_at, jobs.c.job_id))
            .order_by(jobs.c.created_at.desc(), jobs.c.job_id.desc())
            .limit(window.limit + 1)
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all()
        items = [view_of_columns(dict(row._mapping), now) for row in rows[: window.limit]]
        more = len(rows) > window.limit
        cursor = write_cursor(items[-1].created_at, items[-1].job_id, window.filters) if more else None
        return Page(items, cursor)


_SCHEDULE = ("expression", "scheduled_time", "timezone", "timezone_requested", "gap", "fold", "starts_at",
             "ends_at", "misfire", "misfire_grace_seconds")  # fmt: skip
_COLUMNS = tuple(column.name for column in jobs.columns)
_PLAIN = frozenset(JobView.__struct_fields__) - {"schedule", "next_occurrences"}
"""What a job shows just as its columns have it."""


def warnings_of_job(job: JobView, *, now: datetime) -> list[ScheduleWarning]:
    """Return what to know about a job's schedule from `now` on; nothing where this version cannot read it."""
    schedule = job.schedule
    columns = {name: getattr(schedule, name) for name in SCHEDULE_FIELDS if hasattr(schedule, name)}
    columns |= {"schedule_type": schedule.type, "every_seconds": schedule.every}
    with suppress(InvalidInput):
        return stored_warnings(columns, scheduled_time=schedule.scheduled_time, now=now)
    return []


def view_of_new(job: NewJob) -> JobView:
    """Return a job that was just stored as it would be read."""
    values = {name: getattr(job, name, None) for name in _COLUMNS}
    values |= {"parameters": msgspec.json.decode(job.parameters), "updated_at": job.created_at}
    values["depends_on"] = job.depends_on or []
    return view_of_columns(values | {"is_active": True, "version": 1}, job.created_at)


def view_of_row(row: Mapping[str, Any], *, now: datetime) -> JobView:
    """Return a job as it would be read, of a row that the driver has not decoded."""
    return view_of_columns({**row, "parameters": msgspec.json.decode(row["parameters"])}, now)


def view_of_columns(values: Mapping[str, Any], now: datetime) -> JobView:
    """Return a job of its columns."""
    upcoming = _upcoming(values, now)
    schedule = ScheduleView(
        type=values["schedule_type"],
        every=values["every_seconds"],
        timezone_target=_target(values["timezone"]),
        **{name: values[name] for name in _SCHEDULE},
    )
    return JobView(**{name: values[name] for name in _PLAIN}, schedule=schedule, next_occurrences=upcoming)


def _target(timezone: str) -> str | None:
    with suppress(InvalidTimezone):  # this version's tzdata may lack it
        return resolve(timezone).link_target
    return None


def _upcoming(values: Mapping[str, Any], now: datetime) -> list[datetime]:
    """Return the coming instants, by the engine that fires; also while the job is paused."""
    match values["schedule_type"]:
        case "IMMEDIATE":
            return []
        case "ONCE":
            return [values["scheduled_time"]] if values["scheduled_time"] > now else []
        case _:
            return _next(values, now)


def _next(values: Mapping[str, Any], now: datetime) -> list[datetime]:
    """Return the coming instants; none where this version cannot read the schedule: the job is shown all the same."""
    try:
        schedule = stored_schedule(**{name: values[name] for name in SCHEDULE_FIELDS})
    except InvalidInput:
        return []
    return next_occurrences(schedule, after=now, count=NEXT_OCCURRENCES)
