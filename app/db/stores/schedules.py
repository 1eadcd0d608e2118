"""Schedules as the materializer handles them: jobs that are due for planning, and what is planned."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import cast
from uuid import UUID

import msgspec

from app.db.pools import Connection, Pool
from app.db.queries import load
from app.domain.ids import new_execution_id
from app.domain.planning import Plan


class DueJob(msgspec.Struct, frozen=True):
    """A recurring job whose coming occurrences must be created. Fields in the order of `due_jobs.sql`."""

    job_id: UUID
    schedule_type: str
    expression: str | None
    every_seconds: float | None
    timezone: str
    gap: str
    fold: str
    starts_at: datetime | None
    ends_at: datetime | None
    misfire: str
    misfire_grace_seconds: float
    materialized_until: datetime
    now: datetime
    """The database's time at the start of the transaction."""


class ScheduleStore:
    """Plans are stored in the transaction that locked their jobs: watermark and executions move together."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def plan_due(self, shard: int, *, limit: int, plan: Callable[[DueJob], Plan]) -> int:
        """Lock up to `limit` due jobs of one shard, store what `plan` says of each, and return how many."""
        async with self._pool.acquire() as pooled, pooled.transaction():
            connection = cast("Connection", pooled)
            jobs = [DueJob(*row) for row in await connection.fetch(load("due_jobs"), shard, limit)]
            if jobs:
                await _store(connection, shard, [(job, plan(job)) for job in jobs])
            return len(jobs)


async def _store(connection: Connection, shard: int, plans: Sequence[tuple[DueJob, Plan]]) -> None:
    instants = [(job.job_id, _execution_id(job), instant) for job, p in plans for instant in p.instants]
    if instants:
        await connection.execute(load("materialize"), shard, *map(list, zip(*instants, strict=True)))
    ranges = [
        (job.job_id, r.first_time, r.last_time, r.occurrences, r.disposition, r.cause)
        for job, p in plans
        for r in p.passed_over
    ]
    if ranges:
        await connection.execute(load("note_ledger"), shard, *map(list, zip(*ranges, strict=True)))
    await connection.execute(
        load("advance_jobs"),
        shard,
        [job.job_id for job, _ in plans],
        [p.materialized_until for _, p in plans],
        [p.materialize_at for _, p in plans],
    )


def _execution_id(job: DueJob) -> UUID:
    return new_execution_id(job.job_id, int(job.now.timestamp() * 1_000_000))
