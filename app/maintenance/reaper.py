"""Gives executions whose worker has gone to another one."""

import time

from app.db.stores.executions import ExecutionStore
from app.domain.ids import SHARDS

BATCH = 500


class Reaper:
    """One `tick`: free what has lapsed in each shard. Any number of reapers may run.

    After a gap of its own that is longer than half a lease (a stopped machine, a database that was away) it waits
    one lease: workers that come back renew first.
    """

    def __init__(self, *, executions: ExecutionStore, lease_seconds: float) -> None:
        self._executions = executions
        self._lease_seconds = lease_seconds
        self._last_tick: float | None = None
        self._not_before = 0.0

    async def tick(self) -> bool:
        """Free lapsed leases; return whether a shard may have more."""
        now = time.monotonic()
        if self._last_tick is not None and now - self._last_tick > self._lease_seconds / 2:
            self._not_before = now + self._lease_seconds
        self._last_tick = now
        if now < self._not_before:
            return False
        freed = [await self._executions.reap(shard, limit=BATCH) for shard in SHARDS]
        self._last_tick = time.monotonic()
        return max(freed) >= BATCH
