"""How fast a worker gets through its work, and how much it may therefore hold in advance."""

import math
import time

SPAN_SECONDS = 0.5
"""Over about this long the pace is averaged."""
HOLD_SECONDS = 0.2
"""No work is claimed in advance that would wait here for longer than this: another worker might take it sooner."""


class Pace:
    """Executions ended per second, as an exponentially fading average."""

    def __init__(self) -> None:
        self._per_second = 0.0
        self._ended = 0
        self._measured_at = time.monotonic()

    def note_ended(self) -> None:
        """One more has ended."""
        self._ended += 1

    def prefetch(self) -> int:
        """Return how many executions may be held beyond those that run."""
        now = time.monotonic()
        self._per_second *= math.exp((self._measured_at - now) / SPAN_SECONDS)
        self._per_second += self._ended / SPAN_SECONDS
        self._ended, self._measured_at = 0, now
        return int(self._per_second * HOLD_SECONDS)
