"""Executions leased ahead: armed just before their instant, fired on it, from memory."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from uuid import UUID

import msgspec

from app.db.clock import DatabaseClock
from app.db.stores.executions import ExecutionStore
from app.domain.budget import ARM_AHEAD_SECONDS
from app.domain.claims import Claim, LeaseId
from app.domain.statuses import Status
from app.worker.alarms import Alarms

log = logging.getLogger(__name__)

ARM_AGAIN_SECONDS = 0.5
"""Pause after an arming that failed."""


class Timers:
    """Holds SCHEDULED claims until they fire. A claim that the database no longer calls ours does not fire."""

    def __init__(
        self,
        *,
        executions: ExecutionStore,
        clock: DatabaseClock,
        fire: Callable[[list[Claim]], None],
        lost: Callable[[LeaseId], None],
        cancelled: Callable[[Claim], None],
    ) -> None:
        self._executions = executions
        self._clock = clock
        self._fire = fire
        self._lost = lost
        self._cancelled = cancelled
        self._to_arm = Alarms(self._arm_soon, is_over=self._is_over)
        self._to_fire = Alarms(self._fire_all, is_over=self._is_over)
        self._arming: set[asyncio.Task[None]] = set()
        self._waiting: dict[LeaseId, Claim] = {}
        self._to_cancel: set[LeaseId] = set()

    def __len__(self) -> int:
        """Return how many claims wait for their instant."""
        return len(self._waiting)

    def by_queue(self) -> Counter[str]:
        """Return how many of each queue wait for their instant."""
        return Counter(claim.queue for claim in self._waiting.values())

    def add(self, claim: Claim) -> None:
        """Fire this claim at its `due_at`."""
        self._waiting[claim.lease] = claim
        self._to_arm.set(self._clock.monotonic_of(claim.due_at) - ARM_AHEAD_SECONDS, claim)

    def forget(self, lease: LeaseId) -> Claim | None:
        """Drop a claim and return it; None where it is not here."""
        self._to_cancel.discard(lease)
        return self._waiting.pop(lease, None)

    def cancel(self, execution_id: UUID) -> None:
        """Fire no claim of an execution that somebody wants to stop, and hand on as cancelled what has begun.

        A claim that is not known to be armed may be nobody's any more, or armed by a statement that is under way or
        whose reply was lost: only the database knows, and arming asks it.
        """
        for claim in [each for each in self._waiting.values() if each.execution_id == execution_id]:
            if claim.status == Status.RUNNING:
                self._end_cancelled(claim)
            else:
                self._to_cancel.add(claim.lease)
                self._arm_soon([claim])

    async def take_back(self) -> list[Claim]:
        """Return every claim that has not fired, and fire none of them."""
        if self._arming:
            await asyncio.wait(self._arming)
        claims = list(self._waiting.values())
        self._waiting.clear()
        self._to_cancel.clear()
        self._to_arm.clear()
        self._to_fire.clear()
        return claims

    def _is_over(self, claim: Claim) -> bool:
        return self._waiting.get(claim.lease) is not claim

    def _arm_soon(self, claims: list[Claim]) -> None:
        ours = [claim for claim in claims if not self._is_over(claim)]
        if ours:
            task = asyncio.get_running_loop().create_task(self._arm(ours))
            self._arming.add(task)
            task.add_done_callback(self._arming.discard)

    async def _arm(self, claims: list[Claim]) -> None:
        try:
            attempts = await self._executions.arm(claims)
        except (
            Exception
        ):  # the database is away: they are ours for as long as the lease, and arming repeats safely
            log.exception("arming failed", extra={"event": "arm_failed", "executions": len(claims)})
            for claim in claims:
                self._to_arm.set(time.monotonic() + ARM_AGAIN_SECONDS, claim)
            return
        for claim in claims:
            if not self._is_over(claim):  # else it was dropped meanwhile, or armed twice
                self._note_armed(claim, attempts.get(claim.lease))

    def _note_armed(self, claim: Claim, attempt_number: int | None) -> None:
        """Take what the database says of a claim: which attempt it began, or None: it is ours no longer."""
        if attempt_number is None:
            self._give_up(claim)
            return
        armed = msgspec.structs.replace(claim, status=Status.RUNNING, attempt_number=attempt_number)
        if claim.lease in self._to_cancel:
            self._end_cancelled(armed)
            return
        self._waiting[claim.lease] = armed
        self._to_fire.set(self._clock.monotonic_surely_after(claim.due_at), armed)

    def _end_cancelled(self, claim: Claim) -> None:
        self.forget(claim.lease)
        self._cancelled(claim)

    def _give_up(self, claim: Claim) -> None:
        """Somebody took the execution back before it was armed: cancelled, paused, edited."""
        self.forget(claim.lease)
        self._lost(claim.lease)

    def _fire_all(self, claims: list[Claim]) -> None:
        self._fire([claim for claim in claims if self.forget(claim.lease) is not None])
