"""The database's clock, read without asking it each time.

Every instant that decides something is the database's. A process estimates how far its own monotonic clock
is from it: of several samples the one with the least round trip is off by at most half of that round trip.
"""

import time
from datetime import UTC, datetime

from app.db.pools import Connection, Pool

SAMPLES = 8
SAMPLES_AGAIN = 4
"""Of a clock that is known: it has not gone far since."""


class DatabaseClock:
    """`now()` of the database, mapped onto this process's monotonic clock. Call `synchronise` first."""

    def __init__(self) -> None:
        self._offset_seconds = 0.0
        self.error_seconds = 0.0
        """Half of the least round trip: how wrong the estimate can be. 0 before there is one."""

    async def synchronise(self, source: "Pool | Connection") -> None:
        """Estimate the offset anew."""
        best: tuple[float, float] | None = None
        for _ in range(SAMPLES_AGAIN if self.error_seconds else SAMPLES):
            before = time.monotonic()
            instant: datetime = await source.fetchval("SELECT clock_timestamp()")
            after = time.monotonic()
            sample = (after - before, instant.timestamp() - (before + after) / 2)
            best = min(best, sample) if best else sample
        if best:
            self.error_seconds, self._offset_seconds = best[0] / 2, best[1]

    def unix_seconds(self) -> float:
        """Return the database's time in seconds since 1970."""
        return time.monotonic() + self._offset_seconds

    def unix_microseconds(self) -> int:
        """Return the database's time in whole microseconds since 1970."""
        return int(self.unix_seconds() * 1_000_000)

    def now(self) -> datetime:
        """Return the database's time, in UTC."""
        return datetime.fromtimestamp(self.unix_seconds(), UTC)

    def monotonic_surely_after(self, instant: datetime) -> float:
        """Return when `instant` will have come for certain, however wrong the estimate is: nothing starts early."""
        return self.monotonic_of(instant) + self.error_seconds

    def monotonic_of(self, instant: datetime) -> float:
        """Return when `instant` will be on this process's monotonic clock, in seconds."""
        return instant.timestamp() - self._offset_seconds
