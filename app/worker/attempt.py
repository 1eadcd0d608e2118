"""One running attempt."""

import asyncio
from datetime import datetime, timedelta
from enum import StrEnum

from app.domain.claims import Claim, LeaseId, TaskToRun
from app.domain.outcomes import Outcome
from app.tasks import Context
from app.worker.capture import ExecutionLog
from app.worker.effects import AttemptEffects

STOP_GRACE_SECONDS = 2.0
"""How long after it was told to stop a handler may still clean up. Then its slot is free and its outcome stands,
whatever it does: the limit is not up to the one who is limited."""
_MILLISECOND = timedelta(milliseconds=1)


class Stop(StrEnum):
    """Why a worker ends an attempt before its handler has."""

    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    LEASE_LOST = "lease_lost"
    SHUTDOWN = "shutdown"
    INTERRUPTED = "interrupted"
    """To yield its slot. Any other reason goes before it: what does not stop for this goes on until there is one."""


class Attempt:
    """An execution that a handler is running: its claim, its context, its log, and how it is to be stopped."""

    __slots__ = (
        "claim",
        "context",
        "effects",
        "finished",
        "in_thread",
        "lease",
        "log",
        "started_at",
        "stop",
        "task",
        "timeout_seconds",
        "work",
    )

    def __init__(
        self,
        *,
        claim: Claim,
        lease: LeaseId,
        task: TaskToRun | None,
        context: Context,
        effects: AttemptEffects,
        log: ExecutionLog,
        started_at: datetime,
        timeout_seconds: float,
    ) -> None:
        self.claim = claim
        self.lease = lease
        self.task = task
        self.context = context
        self.effects = effects
        self.log = log
        self.started_at = started_at
        self.timeout_seconds = timeout_seconds
        self.work: asyncio.Task[Outcome] | None = None
        self.stop: Stop | None = None
        self.in_thread = False
        """Its function runs in a thread, which nothing can stop."""
        self.finished = False
        """Set once; whatever the handler does afterwards counts no more."""

    @property
    def lateness_ms(self) -> float:
        """Return how late the first attempt began, in milliseconds: counted from when it was due, without limits."""
        claim = self.claim
        if claim.lateness_ms is not None:
            return claim.lateness_ms
        waited_ms = (self.started_at - claim.first_due_at) / _MILLISECOND
        if claim.throttled_ms:
            waited_ms = round(waited_ms - claim.throttled_ms, 3)
        return max(0.0, waited_ms)

    def end(self, reason: Stop) -> None:
        """Ask the handler to stop, and interrupt it where that is possible (`async def`)."""
        if not self.finished and self.stop in {None, Stop.INTERRUPTED}:
            self.stop = reason
            self.context.cancel()
            if self.work is not None:
                self.work.cancel()
