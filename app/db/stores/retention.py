"""What has been kept long enough: deleted in small batches, by any number of processes side by side."""

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from app.db.acting import acting_in
from app.db.actors import RETENTION
from app.db.pools import Pool
from app.db.queries import load

WORKERS_KEPT_DAYS = 7


class Place(NamedTuple):
    """A place in the order in which jobs were created."""

    created_at: datetime
    job_id: UUID


FIRST = Place(datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


class KeysSwept(NamedTuple):
    """How many unique keys of a batch were dropped, and where the next one begins; None: that was all."""

    dropped: int
    upto: bytes | None


class Swept(NamedTuple):
    """What a batch came to: how many jobs were deleted, and where the next one begins; None: that was all."""

    deleted: int
    upto: Place | None


class RetentionStore:
    """Deletes by state first, by age second: nothing that is live goes, however old it is."""

    def __init__(self, pool: Pool, *, days: int) -> None:
        self._pool = pool
        self._days = days

    async def expire_jobs(self, shard: int, *, after: Place, limit: int) -> Swept:
        """Delete jobs that ran once, of the next `limit` such jobs after a place. Those of live executions stay."""
        async with acting_in(self._pool, RETENTION) as connection:
            rows = await connection.fetch(load("lock_expired_jobs"), shard, self._days, *after, limit)
            if not rows:
                return Swept(0, None)
            ids = [row["job_id"] for row in rows]
            deleted = await connection.fetch(load("expire_jobs"), shard, ids)
        last = Place(rows[-1]["created_at"], rows[-1]["job_id"])
        return Swept(len(deleted), last if len(rows) == limit else None)

    async def expire_keys(self, *, limit: int) -> int:
        """Delete answers to idempotent requests that are a day old; return how many."""
        return len(await self._pool.fetch(load("expire_keys"), limit))

    async def expire_unique_keys(self, *, after: bytes, limit: int) -> KeysSwept:
        """Drop unique keys that no job holds any more, of the next `limit` after one."""
        row = (await self._pool.fetch(load("expire_unique_keys"), after, limit))[0]
        return KeysSwept(row["dropped"], row["upto"] if row["looked_at"] == limit else None)

    async def expire_effects(self, *, limit: int) -> int:
        """Delete records of what ended executions have done once; return how many."""
        return len(await self._pool.fetch(load("expire_effects"), self._days, limit))

    async def expire_batches(self, *, limit: int) -> int:
        """Delete batches that have ended; return how many."""
        return len(await self._pool.fetch(load("expire_batches"), self._days, limit))

    async def expire_runs(self, *, limit: int) -> int:
        """Delete runs of workflows that have ended, with their steps; return how many."""
        return len(await self._pool.fetch(load("expire_runs"), self._days, limit))

    async def expire_definitions(self, *, limit: int) -> int:
        """Delete definitions of workflows that no run is made of, nor will be; return how many."""
        return len(await self._pool.fetch(load("expire_definitions"), self._days, limit))

    async def expire_rollups(self) -> int:
        """Delete counts that nobody looks at any more; return how many."""
        return len(await self._pool.fetch(load("expire_rollups"), self._days))

    async def expire_hours(self) -> int:
        """Delete counters of hours that are over; return how many."""
        return len(await self._pool.fetch(load("expire_hours")))

    async def expire_workers(self) -> int:
        """Forget workers that stopped or were lost a week ago; return how many."""
        return len(await self._pool.fetch(load("expire_workers"), WORKERS_KEPT_DAYS))

    async def expire_logins(self) -> int:
        """Delete sessions and one-time links that are over; return how many."""
        sessions = await self._pool.fetch(load("expire_sessions"))
        return len(sessions) + len(await self._pool.fetch(load("expire_login_tokens")))
