"""What counts against limits, and limits that are new."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from app.db.pools import Pool
from app.db.queries import load
from app.domain.claims import LeaseId
from app.domain.ids import SHARDS

REPLAN_TASK = load("replan_task")
AT_ONCE_SECONDS = 5.0
"""Whoever sets a limit waits so long for it to hold for all that waits."""
UNAWARE_SECONDS = 5.0
"""For so long an execution may still appear that does not know of a limit: its transaction had begun before."""
_NEW = """SELECT scope, name, set_at < now() - make_interval(secs => $1::float8) AS is_known
            FROM onthedot.new_limits ORDER BY scope, name"""
_FORGET = """DELETE FROM onthedot.new_limits
              WHERE scope = $1 AND name = $2 AND set_at < now() - make_interval(secs => $3::float8)"""


class NewLimit(NamedTuple):
    """A limit that executions which wait already may not know of: of a user, a queue or a task."""

    scope: str
    name: str
    is_known: bool
    """All that is created from now on knows of it."""


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

    async def apply_new(self, *, within_seconds: float | None = None) -> None:
        """Tell what waits and runs of limits that it may not know of; what takes longer is left to `LimitKeeper`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                for limit in await self.new_limits():
                    await self.apply(limit)

    async def apply(self, limit: NewLimit) -> None:
        """Have all that waits or runs come under a limit."""
        for shard in SHARDS:
            await self._pool.execute(load("limit_waiting"), limit.scope, limit.name, shard)
        if limit.scope == "task":  # which may name a key, too
            await self._pool.execute(REPLAN_TASK, limit.name)
        await self._pool.execute(load("count_running"), limit.scope, limit.name)
        if limit.is_known:
            await self._pool.execute(_FORGET, limit.scope, limit.name, UNAWARE_SECONDS)
