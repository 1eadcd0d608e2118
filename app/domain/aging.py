"""Work that has waited for long behind more urgent work: it gets a small share of the starts, and no more.

By urgency alone, less urgent work would never start while more urgent work keeps coming. Were it raised to the top
instead, a backlog of hours would go before everything fresh.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

AGED = timedelta(seconds=30)
"""How long something has to be due, behind more urgent work, before it gets a share."""
ONE_IN = 10
"""The share: one in so many starts."""
MOST_SAVED = 10
"""Starts that were owed and could not be taken: what is more is forgotten, or they would come in one burst."""


class Waiting(Protocol):
    """What waits for a slot."""

    @property
    def priority(self) -> int:
        """0 is the most urgent."""
        ...

    @property
    def due_at(self) -> datetime:
        """Since when it waits."""
        ...


T = TypeVar("T", bound=Waiting)


def longest_waiting(waiting: Iterable[T], now: datetime) -> T | None:
    """Return what has waited longest of all that has aged behind something due that is more urgent; None: nothing."""
    due = [each for each in waiting if each.due_at <= now]
    most_urgent = min((each.priority for each in due), default=0)
    aged = (each for each in due if each.priority > most_urgent and now - each.due_at >= AGED)
    return min(aged, key=lambda each: each.due_at, default=None)


class AgedShare:
    """Counts what starts before aged work, and says how much of that may now start before anything else."""

    def __init__(self) -> None:
        self._passed = 0

    @property
    def owed(self) -> int:
        """How many aged ones are to start next."""
        return self._passed // (ONE_IN - 1)

    def pass_over(self, starts: int) -> None:
        """So many more urgent ones have started while aged work was waiting."""
        self._passed = min(self._passed, MOST_SAVED * (ONE_IN - 1)) + starts

    def take(self, starts: int) -> None:
        """So many aged ones have started in their turn."""
        self._passed = max(0, self._passed - starts * (ONE_IN - 1))

    def forget(self) -> None:
        """No aged work waits."""
        self._passed = 0
