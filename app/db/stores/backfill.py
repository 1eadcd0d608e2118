"""Backfills: executions for instants of a job's schedule that are past."""

from collections import Counter
from datetime import datetime
from operator import attrgetter
from uuid import UUID

import msgspec

from app.db.acting import acting_in
from app.db.actors import note_action
from app.db.pools import Connection, Pool
from app.db.stores.hourly_counts import count_hours, lock_hours
from app.db.stores.locked_jobs import lock_job, run_job, schedule_of
from app.db.transactions import Transaction
from app.domain.access import Actor
from app.domain.backfill import instants_of
from app.domain.errors import Conflict
from app.domain.hints import Ready
from app.domain.hourly_quota import exceeded
from app.domain.ids import new_execution_id
from app.domain.statuses import Trigger
from app.domain.stored_schedule import REPEATING

RUN_KEY = "b:"
"""Of all: an instant is not made up for twice at the same time."""


class Made(msgspec.Struct, frozen=True):
    """An execution of a backfill."""

    execution_id: UUID
    scheduled_time: datetime


class Backfilled(msgspec.Struct, frozen=True):
    """What a backfill comes to: the instants of its range, and the executions that were created for them."""

    instants: list[datetime]
    made: list[Made] = []
    ready: list[Ready] = []


class BackfillStore:
    """Creates executions for past instants, all of a range in one transaction."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def backfill(
        self,
        job_id: UUID,
        *,
        since: datetime,
        until: datetime,
        dry_run: bool,
        actor: Actor,
        within: Transaction | None = None,
    ) -> Backfilled:
        """Create executions for the instants from `since` to `until`, both included; if `dry_run`, only name them.

        Raises `NotFound`, `InvalidInput`, `QuotaExceeded`, and `Conflict` for a job that runs once.
        """
        async with acting_in(self._pool, actor, within) as connection:
            job = await lock_job(connection, job_id)
            if job["schedule_type"] not in REPEATING:
                raise Conflict("the job runs once and has no other instants; actions/run runs it again")
            instants = instants_of(schedule_of(job), since=since, until=until, now=job["now"])
            if dry_run or not instants:
                return Backfilled(instants)
            await _count(connection, job["user_id"], len(instants))
            microseconds = int(job["now"].timestamp() * 1_000_000)
            ids = [new_execution_id(job_id, microseconds + nth) for nth in range(len(instants))]
            runs = list(zip(ids, instants, strict=True))
            created = await run_job(connection, job_id, runs, trigger=Trigger.BACKFILL, run_key=RUN_KEY)
            after = {"since": since, "until": until, "executions": len(created)}
            await note_action(connection, "job.backfill", job_id, after=after)
        made = [Made(each.execution_id, each.scheduled_time) for each in created]
        made.sort(key=attrgetter("scheduled_time"))
        return Backfilled(instants, made, [each.ready for each in created])


async def _count(connection: Connection, user_id: str, number: int) -> None:
    """Count executions that are created now. Raises `QuotaExceeded`, `CounterBusy`."""
    locked = await lock_hours(connection, [(user_id, None)])
    for hour, count in locked.counts.items():
        if locked.now is not None and count.created + number > count.quota:
            raise exceeded(user_id, quota=count.quota, hour=hour.hour, now=locked.now)
        await count_hours(connection, Counter({hour: number}))
