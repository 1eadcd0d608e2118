"""Planning anew what was planned by older rules of time zones."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from app.db.acting import acting_in
from app.db.actors import ZONE_RULES, note_action
from app.db.pools import Connection, Pool
from app.db.queries import load
from app.db.stores.schedules import DueJob, begun_of, deferred_until, drop_planned, store_plans
from app.domain.hints import Ready
from app.domain.planning import Plan


class Moved(NamedTuple):
    """What a job's plan lost and got; both empty: it stays as it was."""

    job_id: UUID
    gone: list[datetime]
    new: list[datetime]


class Replanned(NamedTuple):
    """What one look at a shard came to. `last`: the job to go on after; None: none is left."""

    last: UUID | None
    jobs: int
    moved: list[Moved]
    created: list[Ready]


class ZoneRulesStore:
    """Holds the version by which jobs are planned, and plans them anew."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def version(self) -> str | None:
        """Return the version; None where none has been written down."""
        version: str | None = await self._pool.fetchval("SELECT version FROM onthedot.zone_rules")
        return version

    async def write_version(self, version: str) -> None:
        """Write down that everything is planned by a version, unless a newer one stands there."""
        await self._pool.execute(
            "INSERT INTO onthedot.zone_rules AS z (version) VALUES ($1) ON CONFLICT (only_row)"
            " DO UPDATE SET version = excluded.version, applied_at = now() WHERE z.version < excluded.version",
            version,
        )

    async def replan(
        self, shard: int, *, after: UUID, limit: int, version: str, plan: Callable[[DueJob], Plan]
    ) -> Replanned:
        """Take back what up to `limit` jobs have planned and nobody has begun, and store what `plan` says of each.

        A job's watermark goes back to now, or to its last instant that has begun; one that lags behind stays. `plan`
        gets it so. What moved is written into the audit log.
        """
        async with acting_in(self._pool, ZONE_RULES) as connection:
            jobs = [DueJob(*row) for row in await connection.fetch(load("zoned_jobs"), shard, after, limit)]
            if not jobs:
                return Replanned(None, 0, [], [])
            taken = {job.job_id: await _take_back(connection, shard, job) for job in jobs}
            plans = [(job.job_id, plan(_rewound(job, taken[job.job_id].begun))) for job in jobs]
            released = {job_id: one.planned for job_id, one in taken.items()}
            stored = await store_plans(connection, shard, plans, now=jobs[0].now, released=released)
            moved = [_compare(job_id, taken[job_id].planned, planned) for job_id, planned in stored.plans]
            moved = [one for one in moved if one.gone or one.new]
            for one in moved:
                await _note(connection, one, version)
        return Replanned(jobs[-1].job_id if len(jobs) == limit else None, len(jobs), moved, stored.created)


class _Taken(NamedTuple):
    planned: list[datetime]
    begun: list[datetime]


async def _take_back(connection: Connection, shard: int, job: DueJob) -> _Taken:
    planned = await drop_planned(connection, shard, job.job_id, after=job.now)
    begun = await begun_of(connection, shard, job.job_id)
    judged = await deferred_until(connection, shard, job.job_id, now=job.now)
    return _Taken(planned, [instant for _, instant in begun] + judged)


def _rewound(job: DueJob, begun: list[datetime]) -> DueJob:
    watermark = max([min(job.materialized_until, job.now), *begun])
    return msgspec.structs.replace(job, materialized_until=watermark)


def _compare(job_id: UUID, before: list[datetime], planned: Plan) -> Moved:
    """Compare as far as both plans reach: that one reaches further is no move."""
    if not before:
        return Moved(job_id, [], [])
    reach = min(before[-1], planned.materialized_until)
    was, now_is = set(before), set(planned.instants)
    return Moved(
        job_id,
        sorted(one for one in was - now_is if one <= reach),
        sorted(one for one in now_is - was if one <= reach),
    )


async def _note(connection: Connection, moved: Moved, version: str) -> None:
    await note_action(
        connection,
        "job.replan",
        moved.job_id,
        before={"planned": moved.gone},
        after={"planned": moved.new},
        reason=f"the rules of time zones changed: {version}",
    )
