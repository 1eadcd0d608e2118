"""Schedules as the materializer handles them: jobs that are due for planning, and what is planned."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, cast
from uuid import UUID

import msgspec

from app.db.pools import Connection, Pool
from app.db.queries import load
from app.domain.hints import Ready
from app.domain.ids import new_execution_id
from app.domain.planning import PassedOver, Plan


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


class Planned(NamedTuple):
    """What one look at a shard came to: how many jobs were planned, and where their executions wait."""

    jobs: int
    created: list[Ready]


class ScheduleStore:
    """Plans are stored in the transaction that locked their jobs: watermark and executions move together."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def plan_due(self, shard: int, *, limit: int, plan: Callable[[DueJob], Plan]) -> Planned:
        """Lock up to `limit` due jobs of one shard and store what `plan` says of each."""
        async with self._pool.acquire() as pooled, pooled.transaction():
            connection = cast("Connection", pooled)
            jobs = [DueJob(*row) for row in await connection.fetch(load("due_jobs"), shard, limit)]
            plans = [(job.job_id, plan(job)) for job in jobs]
            created = await store_plans(connection, shard, plans, now=jobs[0].now) if jobs else []
            return Planned(len(jobs), created)


async def store_plans(
    connection: Connection, shard: int, plans: Sequence[tuple[UUID, Plan]], *, now: datetime
) -> list[Ready]:
    """Store what was planned of locked jobs of one shard; return where the new executions wait."""
    created: list[Ready] = []
    microseconds = int(now.timestamp() * 1_000_000)
    instants = [
        (job_id, new_execution_id(job_id, microseconds), instant)
        for job_id, p in plans
        for instant in p.instants
    ]
    if instants:
        rows = await connection.fetch(load("materialize"), shard, *map(list, zip(*instants, strict=True)))
        created = [Ready(shard, *row) for row in rows]
    await note_passed_over(connection, shard, [(job_id, r) for job_id, p in plans for r in p.passed_over])
    marks = [(job_id, p.materialized_until, p.materialize_at) for job_id, p in plans]
    await advance(connection, shard, marks)
    return created


async def drop_planned(
    connection: Connection, shard: int, job_id: UUID, *, after: datetime
) -> list[datetime]:
    """Take back what a locked job has planned after an instant and nobody has begun; return the instants."""
    rows = await connection.fetch(load("drop_planned"), shard, job_id, after)
    return sorted(row["scheduled_time"] for row in rows)


async def begun_of(connection: Connection, shard: int, job_id: UUID) -> list[tuple[UUID, datetime]]:
    """Return a locked job's live executions that have begun, and their instants."""
    return [(row[0], row[1]) for row in await connection.fetch(load("begun_of_job"), shard, job_id)]


async def advance(
    connection: Connection, shard: int, marks: Sequence[tuple[UUID, datetime, datetime | None]]
) -> None:
    """Move watermarks: of each locked job, until when it is planned, and when to look at it next."""
    await connection.execute(load("advance_jobs"), shard, *map(list, zip(*marks, strict=True)))


async def note_passed_over(
    connection: Connection, shard: int, ranges: Sequence[tuple[UUID, PassedOver]]
) -> None:
    """Enter instants that became no execution into the ledger."""
    rows = [
        (job_id, r.first_time, r.last_time, r.occurrences, r.disposition, r.cause) for job_id, r in ranges
    ]
    if rows:
        await connection.execute(load("note_ledger"), shard, *map(list, zip(*rows, strict=True)))
