"""Jobs that a transaction has locked, as rows, and executions of theirs apart from the schedule's plan."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from app.db.pools import Connection
from app.db.queries import load
from app.domain.errors import NotFound
from app.domain.hints import Ready
from app.domain.ids import shard_of
from app.domain.schedule import Schedule
from app.domain.statuses import Trigger
from app.domain.stored_schedule import SCHEDULE_FIELDS, stored_schedule


class NewRun(NamedTuple):
    """An execution that was created, and where it waits."""

    execution_id: UUID
    scheduled_time: datetime
    ready: Ready


async def lock_job(connection: Connection, job_id: UUID) -> asyncpg.Record:
    """Keep the materializer and other changes off a job until the transaction ends. Raises `NotFound`."""
    row = await connection.fetchrow(load("lock_job"), shard_of(job_id), job_id)
    if row is None:
        raise NotFound(f"there is no job {job_id}")
    return row


def schedule_of(job: Mapping[str, Any] | asyncpg.Record) -> Schedule:
    """Return the schedule of a job that repeats."""
    return stored_schedule(**{name: job[name] for name in SCHEDULE_FIELDS})


async def run_job(
    connection: Connection,
    job_id: UUID,
    runs: Sequence[tuple[UUID, datetime]],
    *,
    trigger: Trigger,
    run_key: str,
    parameters: str | None = None,
) -> list[NewRun]:
    """Create executions of a job, each an id and an instant, with the job's parameters or these (JSON).

    Those that are there already and have not ended are left out; so are all where the task or the queue is gone.
    """
    shard = shard_of(job_id)
    columns = map(list, zip(*runs, strict=True))
    rows = await connection.fetch(load("run_job"), shard, job_id, *columns, trigger, run_key, parameters)
    return [NewRun(execution_id, instant, Ready(shard, *place)) for execution_id, instant, *place in rows]
