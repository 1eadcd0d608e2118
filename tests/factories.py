"""Rows for tests: the least that makes a task, a job or an execution whole.

Each helper takes a pool or a connection and any column by its name, and returns the id of what it made:

    task_id = await make_task(pool, execution_handler="builtin:echo")
    job_id = await make_job(pool, schedule_type="RECURRING", expression="0 2 * * *", every_seconds=None)
    execution_id = await make_execution(pool, status="RUNNING", lease_ends_in_seconds=-1)
    many = await make_executions(pool, ({"due_in_seconds": second} for second in range(20_000)))

Times are the database's. An execution needs neither its job nor its task to exist, as in the schema.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from app.db.pools import Connection, Pool
from app.domain.ids import new_execution_id, new_job_id, shard_of
from app.domain.jobs import JobRequest, NewJob, plan_job
from app.domain.statuses import LEASED, Status
from app.domain.stored_schedule import schedule_columns

Row: TypeAlias = dict[str, Any]
"""Columns by name: of any type."""
Source: TypeAlias = "Pool | Connection | PoolConnectionProxy[asyncpg.Record]"

FAILURE = (
    '{"type": "RuntimeError", "message": "no", "category": "unknown", "severity": "medium",'
    ' "fingerprint": "0123456789abcdef", "traceback": null, "retry_after_seconds": null}'
)
"""JSON text of a `Failure`."""


async def make_task(source: Source, task_id: str = "report", **columns: Any) -> str:
    """Make a task; by default `builtin:noop` in the queue `general`."""
    await insert(source, "tasks", [task_row(task_id=task_id, **columns)])
    return task_id


async def new_job(source: Source, *, every: float | None = None, queue: str | None = None) -> NewJob:
    """Return a job of ada's to be stored, of the one task there is."""
    now = await now_of(source)
    schedule = {"type": "INTERVAL", "every": every} if every else {"type": "IMMEDIATE"}
    request = msgspec.convert({"task_id": "report", "schedule": schedule, "queue": queue}, JobRequest)
    return plan_job(
        request,
        schedule=schedule_columns(request.schedule, now=now, aliases={}),
        user_id="ada",
        task_revision=await source.fetchval("SELECT revision FROM onthedot.tasks"),
        now=now,
        unix_microseconds=int(now.timestamp() * 1_000_000),
    )


async def make_job(source: Source, **columns: Any) -> UUID:
    """Make a job; by default ada's, of the task `report`, each minute, to be materialised now."""
    row = job_row(await now_of(source), **columns)
    await insert(source, "jobs", [row])
    job_id: UUID = row["job_id"]
    return job_id


async def make_execution(source: Source, **columns: Any) -> UUID:
    """Make one live execution; see `execution_row`."""
    return (await make_executions(source, [columns]))[0]


async def make_executions(source: Source, rows: Iterable[Mapping[str, Any]]) -> list[UUID]:
    """Make live executions, one a mapping; see `execution_row`."""
    now = await now_of(source)
    made = [execution_row(now, **columns) for columns in rows]
    await insert(source, "executions", made)
    return [row["execution_id"] for row in made]


async def make_finished(source: Source, **columns: Any) -> UUID:
    """Make one finished execution; see `finished_row`."""
    row = finished_row(await now_of(source), **columns)
    await insert(source, "execution_history", [row])
    execution_id: UUID = row["execution_id"]
    return execution_id


def task_row(*, task_id: str = "report", **columns: Any) -> Row:
    """Return a task that does nothing."""
    row = {"task_id": task_id, "name": task_id, "execution_handler": "builtin:noop", "created_by": "ada"}
    return row | columns


def job_row(now: datetime, **columns: Any) -> Row:
    """Return an INTERVAL job. With another `schedule_type`, set `every_seconds` and `materialize_at` to None."""
    job_id = columns.get("job_id") or new_job_id(_microseconds(now))
    return {
        "shard": shard_of(job_id),
        "job_id": job_id,
        "user_id": "ada",
        "task_id": "report",
        "schedule_type": "INTERVAL",
        "every_seconds": 60.0,
        "starts_at": now,
        "materialized_until": now,
        "materialize_at": now,
    } | columns


def execution_row(
    now: datetime,
    *,
    due_in_seconds: float = 0.0,
    lease_ends_in_seconds: float = 30.0,
    **columns: Any,
) -> Row:
    """Return a live execution, PENDING unless said, of a job of its own.

    A status under a lease gets one that ends in `lease_ends_in_seconds` (negative: it has lapsed).
    """
    job_id = columns.get("job_id") or new_job_id(_microseconds(now))
    due_at = now + timedelta(seconds=due_in_seconds)
    status = columns.get("status", Status.PENDING)
    row: Row = {
        "shard": shard_of(job_id),
        "execution_id": new_execution_id(job_id, _microseconds(now)),
        "job_id": job_id,
        "user_id": "ada",
        "task_id": "report",
        "queue": "general",
        "priority": 2,
        "status": status,
        "scheduled_time": due_at,
        "due_at": due_at,
        "first_due_at": due_at,
        "max_attempts": 4,
        "attempt_number": int(status in {Status.RUNNING, Status.RETRYING}),
    }
    if status in LEASED:
        lease_ends = now + timedelta(seconds=lease_ends_in_seconds)
        row |= {"worker_id": uuid4(), "claimed_at": now, "lease_expires_at": lease_ends, "lease_epoch": 1}
    return row | columns


def finished_row(now: datetime, *, ended_seconds_ago: float = 0.0, **columns: Any) -> Row:
    """Return a finished execution, COMPLETED unless said, of a job of its own; it ran for a second."""
    job_id = columns.get("job_id") or new_job_id(_microseconds(now))
    status = columns.get("status", Status.COMPLETED)
    ended = now - timedelta(seconds=ended_seconds_ago)
    began = ended - timedelta(seconds=1)
    disposition = {Status.COMPLETED: "ran", Status.FAILED: "failed", Status.CANCELLED: "cancelled"}
    ran = status != Status.SKIPPED
    return {
        "shard": shard_of(job_id),
        "execution_id": new_execution_id(job_id, _microseconds(now)),
        "job_id": job_id,
        "user_id": "ada",
        "task_id": "report",
        "queue": "general",
        "priority": 2,
        "status": status,
        "disposition": disposition.get(Status(str(status)), "skipped_overlap"),
        "trigger": "schedule",
        "run_key": "",
        "scheduled_time": began,
        "due_at": began,
        "first_due_at": began,
        "parameters": "{}",
        "max_attempts": 4,
        "attempt_number": int(ran),
        "lease_epoch": int(ran),
        "worker_id": uuid4() if ran else None,
        "started_at": began if ran else None,
        "completed_at": ended,
        "error": FAILURE if status == Status.FAILED else None,
    } | columns


async def insert(source: Source, table: str, rows: Iterable[Row]) -> None:
    """Insert rows by COPY; a column that a row leaves out gets its default."""
    for columns, alike in groupby(rows, key=_names):
        records = [tuple(row.values()) for row in alike]
        await source.copy_records_to_table(table, schema_name="onthedot", columns=columns, records=records)


async def now_of(source: Source) -> datetime:
    """Return the database's time."""
    now: datetime = await source.fetchval("SELECT clock_timestamp()")
    return now


def _names(row: Row) -> tuple[str, ...]:
    return tuple(row)


def _microseconds(instant: datetime) -> int:
    return int(instant.timestamp() * 1_000_000)
