"""What counts against limits, and limits that are new."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import NamedTuple, cast

from app.db.pools import ACQUIRE_TIMEOUT_SECONDS, Connection, Pool
from app.db.queries import load
from app.domain.claims import LeaseId
from app.domain.ids import SHARDS

REPLAN_TASK, RUNNING_OF_TASK = load("replan_task"), load("running_of_task")
LIMIT_BEGUN = load("limit_begun")
AT_ONCE_SECONDS = 5.0
"""Whoever sets a limit waits so long for it to hold for all that waits."""
UNAWARE_SECONDS = 5.0
"""For so long an execution may still appear that does not know of a limit: the statement that creates it had begun
before. One that a longer transaction has created appears when this commits."""
LOCKED_SECONDS = 0.01
MOST_LOOKS = 100
"""So often what somebody else has locked is looked for again, before it is left to the next look at the limit."""
# Held over several statements: whoever claims looks at what a limit counts only under this lock.
_LOCK = "SELECT pg_advisory_lock(hashtextextended($1, 7))"
_UNLOCK = "SELECT pg_advisory_unlock(hashtextextended($1, 7))"
_NEW = """SELECT scope, name, set_at, set_at < now() - make_interval(secs => $1::float8),
                 pg_snapshot_xmin(now.snapshot)::text::int8, pg_snapshot_xmax(now.snapshot)::text::int8
            FROM onthedot.new_limits, pg_current_snapshot() AS now (snapshot) ORDER BY scope, name"""
_ALL_ENDED = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8 >= $1"
_FORGET = "DELETE FROM onthedot.new_limits WHERE scope = $1 AND name = $2 AND set_at = $3"


class NewLimit(NamedTuple):
    """A limit that executions which wait already may not know of: of a user, a queue or a task."""

    scope: str
    name: str
    set_at: datetime
    is_known: bool
    """All that is created from now on knows of it, but for what longer transactions have created."""
    oldest_transaction: int
    """All that wrote and were older have ended."""
    next_transaction: int

    @property
    def key(self) -> str:
        """Return the key of what it counts."""
        return f"{self.scope}:{self.name}"


class LimitStore:
    """Keeps what counts against limits true."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def free(self, leases: Sequence[LeaseId]) -> None:
        """Let leases that are over count no more. What this misses, `sweep` finds."""
        ids, epochs = [each.execution_id for each in leases], [each.lease_epoch for each in leases]
        await self._pool.execute(load("free_holders"), ids, epochs)

    async def sweep(self) -> int:
        """Delete what counts and stands for no lease any more; return how many rows."""
        return len(await self._pool.fetch(load("stale_holders")))

    async def new_limits(self) -> list[NewLimit]:
        """Return limits of which executions may not know."""
        return [NewLimit(*row) for row in await self._pool.fetch(_NEW, UNAWARE_SECONDS)]

    async def apply_new(self, *, within_seconds: float) -> None:
        """Tell what waits and runs of limits that it may not know of; what takes longer is left to `LimitKeeper`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                new = await self.new_limits()
                if new:
                    await self._wait_for(new[0].next_transaction)
                for limit in new:
                    await self.apply(limit)

    async def apply(self, limit: NewLimit) -> bool:
        """Have all that waits or runs come under a limit; return whether nothing was left out.

        Meanwhile nobody claims beside it: what is told first would not see what is counted last.
        """
        async with self._locked(limit.key) as connection:
            await connection.execute(load("count_running"), limit.scope, limit.name)
            left_out = [await _tell(connection, limit, shard) for shard in SHARDS]
            if limit.scope == "task":  # which may name a key, too
                await _apply_key(connection, limit.name)
            await connection.execute(load("count_running"), limit.scope, limit.name)
        return not any(left_out)

    async def _wait_for(self, transaction: int) -> None:
        """Wait until all that wrote before have ended, for a moment: claims under way may have seen no limit."""
        for _ in range(MOST_LOOKS):
            if await self._pool.fetchval(_ALL_ENDED, transaction):
                break
            await asyncio.sleep(LOCKED_SECONDS)

    async def forget(self, limit: NewLimit) -> None:
        """Look no more for what does not know of a limit, unless it has been set anew."""
        await self._pool.execute(_FORGET, limit.scope, limit.name, limit.set_at)

    @asynccontextmanager
    async def _locked(self, key: str) -> AsyncIterator[Connection]:
        async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT_SECONDS) as pooled:
            await pooled.execute(_LOCK, key)
            try:
                yield cast("Connection", pooled)
            finally:
                if not pooled.is_closed():  # the lock ends with its connection
                    await pooled.execute(_UNLOCK, key)


async def _apply_key(connection: Connection, task_id: str) -> None:
    """Have all that waits of a task come under its key, and count what runs."""
    async with connection.transaction():
        await connection.execute(REPLAN_TASK, task_id)
        running = await connection.fetch(RUNNING_OF_TASK, task_id)
        await connection.execute(LIMIT_BEGUN, [row[0] for row in running])


async def _tell(connection: Connection, limit: NewLimit, shard: int) -> int:
    """Tell executions of one shard; return how many somebody else keeps locked."""
    left_out = 0
    for _ in range(MOST_LOOKS):
        left_out = await connection.fetchval(load("limit_waiting"), limit.scope, limit.name, shard)
        if not left_out:
            break
        await asyncio.sleep(LOCKED_SECONDS)
    return left_out
