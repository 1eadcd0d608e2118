"""Gives executions whose worker has gone to another one."""

import logging
import time

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.stores.executions import NO_OUTAGE, ExecutionStore
from app.db.stores.limits import LimitStore

log = logging.getLogger(__name__)

BATCH = 500


class Reaper:
    """One `tick`: free what has lapsed in each shard. Any number of reapers may run.

    After a gap of its own that is longer than half a lease (a stopped machine, a database that was away) it waits
    one lease: workers that come back renew first. What lapsed in the gap is held against nothing that ran then.
    """

    def __init__(
        self,
        *,
        executions: ExecutionStore,
        limits: LimitStore,
        hints: HintSender,
        clock: DatabaseClock,
        lease_seconds: float,
    ) -> None:
        self._executions = executions
        self._limits = limits
        self._hints = hints
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._last_tick: float | None = None
        self._not_before = 0.0
        self._outage_until = NO_OUTAGE

    async def tick(self) -> bool:
        """Free lapsed leases; return whether a shard may have more."""
        now = time.monotonic()
        if self._last_tick is not None and now - self._last_tick > self._lease_seconds / 2:
            self._not_before = now + self._lease_seconds
            self._outage_until = self._clock.now()
        self._last_tick = now
        if now < self._not_before:
            return False
        freed = [await self._reap(shard) for shard in await self._executions.shards_to_reap()]
        self._last_tick = time.monotonic()
        return max(freed, default=0) >= BATCH

    async def _reap(self, shard: int) -> int:
        reaped = await self._executions.reap(shard, limit=BATCH, outage_until=self._outage_until)
        if reaped.transitions:
            await self._limits.sweep()  # before anybody looks: what was lost counts no more
        self._hints.announce(reaped.ready)
        if reaped.transitions:
            extra = {"event": "leases_reaped", "shard": shard, "executions": reaped.transitions}
            log.warning("leases had lapsed", extra=extra)
        return reaped.transitions
