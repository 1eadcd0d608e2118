"""Many instants, one timer."""

import asyncio
import heapq
import time
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

SWEEP_FROM = 1024
"""Items from which on those that are over are looked for."""


class Alarms(Generic[T]):
    """Hands items to `ring` when their moment has come, all that are due at once, never early.

    Moments are on `time.monotonic()`. One timer of the event loop serves any number of items: a timer each
    costs more than a short job runs. Items are not taken out one by one; `ring` passes over those that are done,
    and whenever their number has doubled, those that `is_over` are swept out, or thousands a second would lie
    here until their moments come, an hour later.
    """

    def __init__(self, ring: Callable[[list[T]], None], *, is_over: Callable[[T], bool]) -> None:
        self._ring = ring
        self._is_over = is_over
        self._heap: list[tuple[float, int, T]] = []
        self._order = count()  # equal moments ring in the order in which they were set
        self._timer: asyncio.TimerHandle | None = None
        self._sweep_at = SWEEP_FROM

    def __len__(self) -> int:
        """Return how many items lie here, those that are over but not swept out among them."""
        return len(self._heap)

    def set(self, at: float, item: T) -> None:
        """Ring for `item` at this moment."""
        heapq.heappush(self._heap, (at, next(self._order), item))
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        if self._heap and self._heap[0][2] is item:
            self._arm()

    def clear(self) -> list[T]:
        """Forget all items and return them."""
        items = [item for _, _, item in self._heap]
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
        return items

    def _sweep(self) -> None:
        """Sweep out what is over. Done when the number has doubled, it costs each item a constant share."""
        self._heap = [entry for entry in self._heap if not self._is_over(entry[2])]
        heapq.heapify(self._heap)
        self._sweep_at = max(SWEEP_FROM, 2 * len(self._heap))

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
