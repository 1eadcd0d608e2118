"""Many instants, one timer."""

import asyncio
import heapq
import time
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


class Alarms(Generic[T]):
    """Hands items to `ring` when their moment has come, all that are due at once, never early.

    Moments are on `time.monotonic()`. One timer of the event loop serves any number of items: a timer each
    costs more than a short job runs. Items are never taken out; `ring` passes over those that are done.
    """

    def __init__(self, ring: Callable[[list[T]], None]) -> None:
        self._ring = ring
        self._heap: list[tuple[float, int, T]] = []
        self._order = count()  # equal moments ring in the order in which they were set
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at: float, item: T) -> None:
        """Ring for `item` at this moment."""
        heapq.heappush(self._heap, (at, next(self._order), item))
        if self._heap[0][2] is item:
            self._arm()

    def clear(self) -> list[T]:
        """Forget all items and return them."""
        items = [item for _, _, item in self._heap]
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
        return items

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay = max(0.0, self._heap[0][0] - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, self._wake)

    def _wake(self) -> None:
        due: list[T] = []
        now = time.monotonic()  # uvloop counts in milliseconds and may wake a fraction of one early
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        if self._heap:
            self._arm()
        if due:
            self._ring(due)
