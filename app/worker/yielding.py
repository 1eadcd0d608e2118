"""Attempts of interruptible queues, which yield their slots to more urgent work."""

import time
from typing import NamedTuple

from app.domain.claims import LeaseId
from app.worker.attempt import STOP_GRACE_SECONDS, Attempt, Stop

LEAST_RUN_SECONDS = 1.0
"""An attempt runs at least that long before it is interrupted: where urgent work comes all the time, starting others
again and again would be all that a worker does."""


class _Running(NamedTuple):
    attempt: Attempt
    began_at: float


class Yielding:
    """Knows the attempts that run here and may be interrupted; instants are on `time.monotonic()`.

    Functions in threads are left alone: a thread cannot be stopped, and its execution would run twice at once. One
    that was asked and does not stop goes on, and no longer counts as one that will.
    """

    def __init__(self, *, least_run_seconds: float = LEAST_RUN_SECONDS) -> None:
        self._least_run_seconds = least_run_seconds
        self._running: dict[LeaseId, _Running] = {}
        self._asked_at: dict[LeaseId, float] = {}

    def __bool__(self) -> bool:
        """Tell whether any such attempt runs."""
        return bool(self._running)

    def began(self, attempt: Attempt) -> None:
        """One has begun."""
        self._running[attempt.lease] = _Running(attempt, time.monotonic())

    def ended(self, attempt: Attempt) -> None:
        """An attempt has ended, one of these or another."""
        if self._running:
            self._running.pop(attempt.lease, None)
            self._asked_at.pop(attempt.lease, None)

    def stopping(self) -> int:
        """Return how many have been asked to stop, and will within moments."""
        since = time.monotonic() - STOP_GRACE_SECONDS
        return sum(asked_at > since for asked_at in self._asked_at.values())

    def willing(self, priority: int) -> list[Attempt]:
        """Return what may be interrupted for work of this priority, the youngest first: the least is lost with it."""
        latest = time.monotonic() - self._least_run_seconds
        found = [each for each in self._running.values() if each.began_at <= latest]
        found.sort(key=lambda each: each.began_at, reverse=True)
        return [each.attempt for each in found if _yields(each.attempt, priority)]

    def interrupt(self, attempt: Attempt) -> None:
        """Ask one to stop."""
        self._asked_at[attempt.lease] = time.monotonic()
        attempt.end(Stop.INTERRUPTED)


def _yields(attempt: Attempt, priority: int) -> bool:
    return attempt.claim.priority > priority and attempt.stop is None and not attempt.in_thread
