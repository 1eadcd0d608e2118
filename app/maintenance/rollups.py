"""Counts finished executions, so that nobody has to who looks at them."""

import time
from collections.abc import Callable

from app.db.stores.rollups import RollupStore

LONGEST_SECONDS = 60.0
"""What one statement counts at most: 600,000 executions at 10,000 a second."""
BEHIND_SECONDS = 15.0
"""Workers write down within milliseconds what has ended; whoever takes longer than this is not counted."""
GAP_SECONDS = 30.0


class Rollups:
    """One `tick`: count what ended since the last one. Any number of processes may do it.

    After a gap of its own (the database was away, the machine slept) it waits a moment: workers that come back write
    down first what ended meanwhile.
    """

    def __init__(self, store: RollupStore, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._last_tick: float | None = None
        self._not_before = 0.0

    async def tick(self) -> bool:
        """Count; return whether there is more."""
        now = self._monotonic()
        if self._last_tick is not None and now - self._last_tick > GAP_SECONDS:
            self._not_before = now + BEHIND_SECONDS
        self._last_tick = now
        if now < self._not_before:
            return False
        rolled = await self._store.roll_up(longest_seconds=LONGEST_SECONDS, behind_seconds=BEHIND_SECONDS)
        return rolled is not None and rolled.more
