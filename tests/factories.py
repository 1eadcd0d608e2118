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

from app.db.clock import DatabaseClock
from app.db.pools import Connection, Pool
from app.db.stores.jobs import JobStore, Submission
from app.db.stores.workflows.definitions import DefinitionStore
from app.db.stores.workflows.runs import RunStore
from app.domain.access import Actor
from app.domain.claims import Claim
from app.domain.ids import new_execution_id, shard_of, uuid7
from app.domain.jobs import JobRequest, NewJob, plan_job
from app.domain.statuses import LEASED, Status
from app.domain.stored_schedule import schedule_columns
from app.domain.workflows.definition import WORKFLOW_HANDLER, WORKFLOW_TASK, WorkflowRequest

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


async def new_job(source: Source, *, user_id: str = "ada", task_id: str = "report", **fields: Any) -> NewJob:
    """Return a job to be stored, planned now; IMMEDIATE unless its `schedule` is given, as a request says it."""
    now = await now_of(source)
    document = {"task_id": task_id, "schedule": {"type": "IMMEDIATE"}} | fields
    request = msgspec.convert(document, JobRequest)
    return plan_job(
        request,
        schedule=schedule_columns(request.schedule, now=now, aliases={}),
        user_id=user_id,
        task_revision=await source.fetchval(
            "SELECT revision FROM onthedot.tasks WHERE task_id = $1", task_id
        ),
        now=now,
        unix_microseconds=_microseconds(now),
    )


async def make_workflow(pool: Pool, *steps: Mapping[str, Any], user_id: str = "ada", **fields: Any) -> NewJob:
    """Store a workflow of these steps, of the task `report` unless they name another; return its job.

    It runs at once unless its `schedule` is given; `overlap` and `deadline_seconds` are of its runs.
    """
    if not await pool.fetchval("SELECT true FROM onthedot.tasks WHERE task_id = $1", WORKFLOW_TASK):
        await make_task(pool, WORKFLOW_TASK, execution_handler=WORKFLOW_HANDLER)
    document = {
        "steps": [{"task_id": "report"} | step for step in steps],
        "schedule": {"type": "IMMEDIATE"},
    } | fields
    request = msgspec.convert(document, WorkflowRequest)
    given = {"name": request.name, "tags": request.tags, "schedule": document["schedule"]}
    job = await new_job(pool, user_id=user_id, task_id=WORKFLOW_TASK, parameters=request.parameters, **given)
    submission = Submission(jobs=[job], actor=Actor("user:ada"), workflow=request.body())
    stored = await JobStore(pool).create([submission])
    assert job.job_id in stored.lanes
    return job


async def begin_run(pool: Pool, clock: DatabaseClock, workflow_id: UUID, **claimed: Any) -> UUID:
    """Begin a run of a workflow, as a worker does; return it."""
    job = await pool.fetchrow("SELECT * FROM onthedot.jobs WHERE job_id = $1", workflow_id)
    assert job is not None
    now = await now_of(pool)
    run_id = new_execution_id(workflow_id, _microseconds(now))
    fields = dict.fromkeys(Claim.__struct_fields__) | {
        "shard": job["shard"],
        "execution_id": run_id,
        "job_id": workflow_id,
        "user_id": job["user_id"],
        "trigger": "manual",
        "scheduled_time": now,
        "parameters": job["parameters"],
    }
    claim = Claim(**(fields | claimed))
    await RunStore(pool, DefinitionStore(), clock).begin(claim)
    return claim.execution_id


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
    job_id = columns.get("job_id") or uuid7(_microseconds(now))
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
    job_id = columns.get("job_id") or uuid7(_microseconds(now))
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
    job_id = columns.get("job_id") or uuid7(_microseconds(now))
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
