"""A worker process's parts, started and stopped in the order that loses nothing."""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from uuid import UUID

from app.db.notifier import HintSender
from app.db.stores.executions import ExecutionStore
from app.db.stores.limits import LimitStore
from app.domain.budget import UNASKED_EVERY_SECONDS
from app.domain.claims import LeaseId
from app.domain.hints import Ready
from app.loop import Loop
from app.worker.claimer import Claimer
from app.worker.followers import Follower
from app.worker.leases import LeaseKeeper
from app.worker.pool import WorkerPool
from app.worker.settler import Settler
from app.worker.suspect_claimer import SuspectClaimer
from app.worker.timers import Timers

log = logging.getLogger(__name__)

SETTLE_SECONDS = 10.0
"""How long a stopping worker goes on trying to write down what has ended. After that the leases lapse."""
LINES_EVERY_SECONDS = 1.0


class Worker:
    """Claims, runs and settles until `stop`."""

    def __init__(
        self,
        *,
        worker_id: UUID,
        executions: ExecutionStore,
        limits: LimitStore,
        claimer: Claimer | SuspectClaimer,
        pool: WorkerPool,
        timers: Timers,
        settler: Settler,
        followers: Sequence[Follower],
        leases: LeaseKeeper,
        hints: HintSender,
        poll_seconds: float,
        grace_seconds: float,
        hurry: asyncio.Event,
    ) -> None:
        self._worker_id = worker_id
        self._executions = executions
        self._limits = limits
        self._claimer = claimer
        self._pool = pool
        self._timers = timers
        self._settler = settler
        self._followers = {
            Loop(one.name, one.tick, interval_seconds=UNASKED_EVERY_SECONDS, max_backoff_seconds=1.0): one
            for one in followers
        }
        self._leases = leases
        self._hints = hints
        self._grace_seconds = grace_seconds
        self._hurry = hurry
        self.has_retired = False
        self._claiming = Loop("claim", claimer.tick, interval_seconds=poll_seconds, max_backoff_seconds=1.0)
        self._cancelling = Loop("cancels", self._look_for_cancels, interval_seconds=poll_seconds)
        self._settling = Loop(
            "settle", self._settle, interval_seconds=LINES_EVERY_SECONDS, max_backoff_seconds=1.0
        )

    def start(self) -> None:
        """Begin to claim and run."""
        self._leases.start()
        self._settling.start()
        for loop in self._followers:
            loop.start()
        self._claiming.start()
        self._cancelling.start()

    async def stop(self) -> None:
        """Claim nothing more, give back what has not begun, let the rest finish within the grace (or until it is to
        hurry, when it is given back), settle it.

        Leases are kept alive to the end: whoever drains for a minute must not lose what it drains.
        """
        self._leases.draining = True
        await self._claiming.stop()
        await self._cancelling.stop()
        await self._give_back()
        await self._pool.drain(self._grace_seconds, hurry=self._hurry)
        await self._settle_all()
        await self._settling.stop()
        await asyncio.gather(*(loop.stop() for loop in self._followers))
        await self._hints.close()
        await asyncio.to_thread(self._leases.stop)

    def is_overdue(self) -> bool:
        """Tell whether the timeout of something that runs has come. From any thread."""
        return self._pool.is_overdue()

    def retire(self, why: str) -> None:
        """Claim nothing more from now on: this process is not what it should be, and `stop` is to follow."""
        if not self.has_retired:
            log.error("this worker is to be replaced: %s", why, extra={"event": "worker_retires"})
        self.has_retired = True
        self._leases.drain(why)

    def give_up(self) -> None:
        """Let go of everything and write nothing more about it: the timeline it was claimed on is over, and on the
        next one somebody else may have been given the same lease."""
        log.warning("what was held is given up", extra={"event": "gave_up", "running": len(self._pool)})
        self._leases.give_up_all()
        self._settler.forget()
        for follower in self._followers.values():
            follower.forget()

    @property
    def is_draining(self) -> bool:
        """Whether it claims nothing more."""
        return self._leases.draining

    def wake(self) -> None:
        """There may be work: look now."""
        self._claiming.wake()

    def on_hints(self, places: list[Ready]) -> None:
        """Somebody says that there is work."""
        if self._claimer.hint(places):
            self._claiming.wake()

    def take(self, places: list[Ready]) -> bool:
        """There is new work, not announced yet: look now; return whether there is room here for all of it."""
        self.on_hints(places)
        return self._claimer.has_room_for(places)

    def on_free(self) -> None:
        """A slot is free; look for work only if the last look left some behind."""
        if self._claimer.starved:
            self._claiming.wake()

    def on_freed(self) -> None:
        """Something counts against its limits no more: others may begin."""
        self._claimer.on_freed()

    def on_ended(self) -> None:
        """An attempt has ended: settle it."""
        self._settling.wake()

    def on_lost(self, lost: set[LeaseId]) -> None:
        """Let go of what was held under leases that were lost."""
        for lease in lost:
            if self._timers.forget(lease) is None:
                self._pool.lose(lease)

    def on_cancels(self, asked: Iterable[UUID]) -> None:
        """Stop executions that somebody wants to stop, as far as they are here."""
        for execution_id in asked:
            self._timers.cancel(execution_id)
            self._pool.cancel(execution_id)

    async def _settle(self) -> bool:
        self._pool.collect_lines()
        wrote = await self._settler.tick()
        for loop, follower in self._followers.items():
            if follower.is_due:
                loop.wake()
        self.on_free()
        return wrote

    def _is_followed(self) -> bool:
        return any(follower.waiting for follower in self._followers.values())

    async def _look_for_cancels(self) -> bool:
        """Find what a lost notification did not tell."""
        if len(self._pool) or len(self._timers):
            self.on_cancels(await self._executions.asked_to_stop(self._worker_id))
        return False

    async def _give_back(self) -> None:
        claims = await self._timers.take_back() + self._pool.take_back()
        try:
            released = await self._executions.release(claims)
            await self._limits.free([claim.lease for claim in claims if claim.limited])
            self._hints.announce(
                Ready(claim.shard, claim.queue, claim.priority, claim.due_at, claim.limited)
                for claim in claims
                if claim.execution_id in released
            )
        except Exception:
            log.exception("could not give back leases; they lapse", extra={"event": "release_failed"})
        for claim in claims:
            self._leases.drop(claim.lease)

    async def _settle_all(self) -> None:
        deadline = time.monotonic() + SETTLE_SECONDS
        while (self._settler.waiting or self._is_followed()) and time.monotonic() < deadline:
            self._settling.wake()
            await asyncio.sleep(0.01)
        if self._settler.waiting:
            log.error(
                "outcomes could not be written",
                extra={"event": "settle_gave_up", "waiting": self._settler.waiting},
            )
