"""Gives executions whose worker has gone to another one."""

import logging
import time

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.stores.executions import NO_OUTAGE, ExecutionStore, Reaped
from app.db.stores.limits import LimitStore

log = logging.getLogger(__name__)

BATCH = 500


class Reaper:
    """One `tick`: free what has lapsed in each shard. Any number of reapers may run.

    After a gap between two looks that is longer than half a lease (a stopped machine, a database that was away) it
    waits one lease: workers that come back renew first. What lapsed in the gap is held against nothing that ran then.
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
        self._last_look: float | None = None
        self._not_before = 0.0
        self._outage_until = NO_OUTAGE

    async def tick(self) -> bool:
        """Free lapsed leases; return whether a shard may have more.

        While the database is away this raises, and the gap grows.
        """
        lapsed = await self._executions.shards_to_reap()
        self._note_look()
        if time.monotonic() < self._not_before:
            return False
        reaped = [await self._reap(shard) for shard in lapsed]
        if any(each.transitions for each in reaped):
            await self._limits.sweep()  # before anybody looks: what was lost counts no more
        for each in reaped:
            self._hints.announce(each.ready)
        self._last_look = time.monotonic()
        return any(each.transitions >= BATCH for each in reaped)

    def _note_look(self) -> None:
        """After a gap, wait for those who could not renew meanwhile."""
        now = time.monotonic()
        if self._last_look is not None and now - self._last_look > self._lease_seconds / 2:
            self._not_before = now + self._lease_seconds
            self._outage_until = self._clock.now()
        self._last_look = now

    async def _reap(self, shard: int) -> Reaped:
        reaped = await self._executions.reap(shard, limit=BATCH, outage_until=self._outage_until)
        if reaped.transitions:
            extra = {"event": "leases_reaped", "shard": shard, "executions": reaped.transitions}
            log.warning("leases had lapsed", extra=extra)
        return reaped
