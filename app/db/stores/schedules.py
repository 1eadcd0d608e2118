"""Schedules as the materializer handles them: jobs that are due for planning, and what is planned."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, cast
from uuid import UUID

import msgspec

from app.db.pools import Connection, Pool
from app.db.queries import load
from app.db.stores.hourly_counts import CounterBusy, count_hours, lock_hours
from app.domain.hints import Ready
from app.domain.hourly_quota import HOUR, Count, UserHour, admit, hour_of
from app.domain.ids import SHARDS, new_execution_id
from app.domain.planning import PassedOver, Plan
from app.domain.statuses import Disposition


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


class StoredPlans(NamedTuple):
    """Where new executions wait, and the plans as they were stored: quotas may have cut them."""

    created: list[Ready]
    plans: list[tuple[UUID, Plan]]


NOTHING: Mapping[UUID, Sequence[datetime]] = {}
UNLIMITED = Count(0, 2**31 - 1)


class ScheduleStore:
    """Plans are stored in the transaction that locked their jobs: watermark and executions move together."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def shards_to_plan(self) -> list[int]:
        """Return the shards in which jobs are due for planning."""
        return [row[0] for row in await self._pool.fetch(load("shards_to_plan"), SHARDS)]

    async def plan_due(self, shard: int, *, limit: int, plan: Callable[[DueJob], Plan]) -> Planned:
        """Lock up to `limit` due jobs of one shard and store what `plan` says of each."""
        async with self._pool.acquire() as pooled, pooled.transaction():
            connection = cast("Connection", pooled)
            jobs = [DueJob(*row) for row in await connection.fetch(load("due_jobs"), shard, limit)]
            if not jobs:
                return Planned(0, [])
            plans = [(job.job_id, plan(job)) for job in jobs]
            stored = await store_plans(connection, shard, plans, now=jobs[0].now)
            return Planned(len(jobs), stored.created)


async def store_plans(
    connection: Connection,
    shard: int,
    plans: Sequence[tuple[UUID, Plan]],
    *,
    now: datetime,
    released: Mapping[UUID, Sequence[datetime]] = NOTHING,
) -> StoredPlans:
    """Store what was planned of locked jobs of one shard, as far as quotas allow.

    `released`: of each job, instants that were planned and have been taken back. Raises `CounterBusy` where those
    could not be given back.
    """
    # First, so that who sets a quota waits for this transaction, or this one sees the quota (db/job_creation.py).
    owners = await advance(connection, shard, _marks(plans))
    if owners:
        plans = await _admit(connection, shard, plans, owners, released, now=now)
    created = await _materialize(connection, shard, plans, now=now)
    await note_passed_over(connection, shard, [(job_id, r) for job_id, p in plans for r in p.passed_over])
    return StoredPlans(created, list(plans))


def _marks(plans: Sequence[tuple[UUID, Plan]]) -> list[tuple[UUID, datetime, datetime | None]]:
    return [(job_id, p.materialized_until, p.materialize_at) for job_id, p in plans]


async def _admit(
    connection: Connection,
    shard: int,
    plans: Sequence[tuple[UUID, Plan]],
    owners: Mapping[UUID, str],
    released: Mapping[UUID, Sequence[datetime]],
    *,
    now: datetime,
) -> list[tuple[UUID, Plan]]:
    """Cut the plans of jobs whose owner has a quota to what there is room for, and count what is left."""
    back = Counter(UserHour(owners[job], hour_of(i)) for job in owners for i in released.get(job, ()))
    hours = {
        UserHour(owners[job], hour_of(i)) for job, p in plans if job in owners for i in p.instants
    } | set(back)
    counts = await _locked(connection, hours)
    if counts is None and back:
        raise CounterBusy
    if counts is not None:  # a user whose quota was lifted in between has room
        counts = {hour: counts.get(hour, UNLIMITED) for hour in hours}
        counts = {hour: Count(count.created - back[hour], count.quota) for hour, count in counts.items()}
    admitted = admit(plans, owners=owners, counts=counts, now=now)
    await count_hours(connection, Counter({h: admitted.created[h] - back[h] for h in hours}))
    await advance(connection, shard, _marks([(job, p) for job, p in admitted.plans if job in owners]))
    return admitted.plans


async def _locked(connection: Connection, hours: set[UserHour]) -> dict[UserHour, Count] | None:
    """Lock counters; None where somebody else holds one, who must not hold up other users' jobs."""
    try:
        async with connection.transaction():
            return (await lock_hours(connection, hours)).counts
    except CounterBusy:
        return None


async def _materialize(
    connection: Connection, shard: int, plans: Sequence[tuple[UUID, Plan]], *, now: datetime
) -> list[Ready]:
    """Create the executions of planned instants; return where they wait."""
    microseconds = int(now.timestamp() * 1_000_000)
    instants = [
        (job_id, new_execution_id(job_id, microseconds), instant)
        for job_id, p in plans
        for instant in p.instants
    ]
    if not instants:
        return []
    rows = await connection.fetch(load("materialize"), shard, *map(list, zip(*instants, strict=True)))
    return [Ready(shard, *row) for row in rows]


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
) -> dict[UUID, str]:
    """Move watermarks: of each locked job, until when it is planned, and when to look at it next.

    Return the jobs whose owner has a quota, and the owner.
    """
    rows = await connection.fetch(load("advance_jobs"), shard, *map(list, zip(*marks, strict=True)))
    return {row["job_id"]: row["user_id"] for row in rows}


async def deferred_until(
    connection: Connection, shard: int, job_id: UUID, *, now: datetime
) -> list[datetime]:
    """Return the last instant that a quota had no room for, if there is one of late: it may lie a moment ahead."""
    last = await connection.fetchval(load("deferred_until"), shard, job_id, now - 2 * HOUR)
    return [] if last is None else [last]


async def note_passed_over(
    connection: Connection, shard: int, ranges: Sequence[tuple[UUID, PassedOver]]
) -> None:
    """Enter instants that became no execution into the ledger."""
    deferred = [one for one in ranges if one[1].disposition is Disposition.DEFERRED_QUOTA]
    grown = await _grow_ledger(connection, shard, deferred) if deferred else set()
    rows = [(job_id, *_ledger_row(r)) for job_id, r in ranges if (job_id, r.first_time) not in grown]
    if rows:
        await connection.execute(load("note_ledger"), shard, *map(list, zip(*rows, strict=True)))


async def _grow_ledger(
    connection: Connection, shard: int, ranges: Sequence[tuple[UUID, PassedOver]]
) -> set[tuple[UUID, datetime]]:
    """Add to the ranges of the same hour that stand there, so that an hour is one row; return what found one."""
    rows = [(job_id, *_ledger_row(r), hour_of(r.first_time)) for job_id, r in ranges]
    found = await connection.fetch(load("grow_ledger"), shard, *map(list, zip(*rows, strict=True)))
    return {(row["job_id"], row["first_time"]) for row in found}


def _ledger_row(r: PassedOver) -> tuple[datetime, datetime, int, Disposition, str]:
    return (r.first_time, r.last_time, r.occurrences, r.disposition, r.cause)
