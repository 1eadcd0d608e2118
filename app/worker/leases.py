"""Keeping leases alive, away from user code.

A handler may block the event loop it runs in. So leases are renewed from a thread of their own, with its own loop
and its own connection, and that thread is the last thing a worker stops.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime

import msgspec

from app.db.pools import Connection, connect
from app.db.stores.executions import Lease, renew
from app.db.stores.workers import WorkerIdentity, beat
from app.domain.budget import RENEW_AFTER, between_looks_seconds, turn_seconds
from app.domain.claims import Claim, LeaseId
from app.loop import Loop

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0


class HeldLease(msgspec.Struct):
    """A lease this worker holds. `renewed_at` is on `time.monotonic()`, taken before the statement was sent."""

    claim: Claim
    lease: LeaseId
    lease_seconds: float
    renewed_at: float
    started_at: datetime | None = None

    def is_due(self, now: float) -> bool:
        """Tell whether it must be renewed."""
        return now - self.renewed_at >= self.lease_seconds * RENEW_AFTER

    def has_lapsed(self, now: float) -> bool:
        """Tell whether it is over for certain, whatever the database says: no lease, no right to act."""
        return now - self.renewed_at >= self.lease_seconds


class LeaseKeeper:
    """Renews what is held and beats the worker's heart, in a thread.

    `hold` and `drop` are called from the worker's loop, the rest happens in the thread; single operations of a
    dict are atomic, so no lock is needed. `on_lost` is called in the thread with leases that were lost, and
    `on_cut_off` when every lease has lapsed.
    """

    def __init__(
        self,
        dsn: str,
        *,
        worker: WorkerIdentity,
        lease_seconds: float,
        on_lost: Callable[[set[LeaseId]], None],
        on_cut_off: Callable[[], object],
    ) -> None:
        self._dsn = dsn
        self._worker = worker
        self._interval_seconds = between_looks_seconds(lease_seconds)
        self._turn_seconds = turn_seconds(lease_seconds)
        self._on_lost = on_lost
        self._on_cut_off = on_cut_off
        self._held: dict[LeaseId, HeldLease] = {}
        self._connection: Connection | None = None
        self._next_beat = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="leases", daemon=True)
        self.draining = False
        self._why_draining: str | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Sign off and stop the thread; blocks for as long as that takes, at most a few seconds."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def drain(self, why: str) -> None:
        """Have the registry say, within seconds, that this worker claims nothing more, and why."""
        self.draining, self._why_draining, self._next_beat = True, why, 0.0

    def hold(self, lease: HeldLease) -> None:
        """Keep this lease alive from now on."""
        self._held[lease.lease] = lease

    def drop(self, lease: LeaseId) -> None:
        """Keep it alive no longer."""
        self._held.pop(lease, None)

    def give_up_all(self) -> None:
        """Give up everything that is held."""
        self._give_up(set(self._held))

    def allows_beginning(self, lease: LeaseId) -> bool:
        """Tell whether it is held and has not lapsed: who was frozen must not begin what it had claimed before."""
        held = self._held.get(lease)
        return held is not None and not held.has_lapsed(time.monotonic())

    def are_all_lapsed(self) -> bool:
        """Tell whether all that is held has lapsed: this process was frozen, or cut off, and is about to end."""
        held, now = list(self._held.values()), time.monotonic()
        return bool(held) and all(lease.has_lapsed(now) for lease in held)

    def began(self, lease: LeaseId, started_at: datetime) -> None:
        """Note when the attempt began; it is written with the next renewal."""
        held = self._held.get(lease)
        if held is not None:
            held.started_at = started_at

    async def tick(self) -> bool:
        """Give up what has lapsed, renew what is due, and beat."""
        now = time.monotonic()
        self._give_up_lapsed(now)
        async with asyncio.timeout(self._turn_seconds):
            connection = await self._connected()
            await self._renew(connection, now)
            await self._beat(connection, now)
        return False

    async def _run(self) -> None:
        loop = Loop("leases", self.tick, interval_seconds=self._interval_seconds, max_backoff_seconds=1.0)
        loop.start()
        await asyncio.to_thread(self._stop.wait)
        await loop.stop()
        await self._sign_off()

    async def _renew(self, connection: Connection, now: float) -> None:
        due = [held for held in list(self._held.values()) if held.is_due(now)]
        if not due:
            return
        prolonged, lost = await renew(connection, [_lease(held) for held in due])
        for held in due:
            if held.lease in prolonged:  # one that was passed over is no younger, and due again
                held.renewed_at = now
        self._give_up(lost)

    async def _beat(self, connection: Connection, now: float) -> None:
        if now >= self._next_beat:
            running = len(self._held)
            asked = await self._say(connection, running=running)
            self.draining = self.draining or asked
            self._next_beat = now + HEARTBEAT_SECONDS

    async def _say(self, connection: Connection, *, running: int, stopped: bool = False) -> bool:
        return await beat(
            connection,
            self._worker,
            running=running,
            draining=self.draining or stopped,
            why_draining=self._why_draining,
            stopped=stopped,
        )

    async def _sign_off(self) -> None:
        try:
            async with asyncio.timeout(3):
                connection = await self._connected()
                await self._say(connection, running=0, stopped=True)
                await connection.close()
        except Exception:
            log.warning("could not sign off; the registry will show this worker as lost", exc_info=True)

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._dsn, application_name="onthedot worker leases")
        return self._connection

    def _give_up_lapsed(self, now: float) -> None:
        """Give up what nobody could renew in time. If that is everything, this process was cut off or frozen for
        longer than a lease: it is told to end, and a new one begins without its past."""
        held = list(self._held.items())
        lapsed = {key for key, lease in held if lease.has_lapsed(now)}
        is_cut_off = bool(held) and len(lapsed) == len(held)
        self.draining = (
            self.draining or is_cut_off
        )  # before it holds nothing: what it claimed now it could not finish
        self._give_up(lapsed)
        if is_cut_off:
            log.error("all leases lapsed", extra={"event": "all_leases_lapsed", "executions": len(lapsed)})
            self._on_cut_off()

    def _give_up(self, lost: set[LeaseId]) -> None:
        for lease in lost:
            self._held.pop(lease, None)
        if lost:
            self._on_lost(lost)


def _lease(held: HeldLease) -> Lease:
    claim = held.claim
    return Lease(claim.shard, claim.execution_id, claim.lease_epoch, held.lease_seconds, held.started_at)
