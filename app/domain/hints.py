"""Hints: "there is work here, from then on". They wake workers early; the peek finds the same work without them."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from app.domain.ids import SHARDS

MAX_PAYLOAD_BYTES = 2000
"""PostgreSQL refuses payloads of 8,000 bytes and more; a hint must never fail what it announces."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Line(NamedTuple):
    """What waits in one shard, queue and priority, with limits and without: it may go from one to the other."""

    shard: int
    queue: str
    priority: int


class Place(NamedTuple):
    """Where executions wait for a worker."""

    shard: int
    queue: str
    priority: int
    limited: bool = False


class Ready(msgspec.Struct, frozen=True):
    """Where ready work lies, and from when on."""

    shard: int
    queue: str
    priority: int
    due_at: datetime
    limited: bool = False
    """It comes under limits, and is claimed by those who look at them."""

    @property
    def place(self) -> Place:
        """Return the place alone."""
        return Place(self.shard, self.queue, self.priority, self.limited)

    @property
    def line(self) -> Line:
        """Return the place, whether it comes under limits or not."""
        return Line(self.shard, self.queue, self.priority)


class Hints:
    """Hints gathered until they are sent: of each queue and priority, in which shards, and the earliest instant."""

    def __init__(self) -> None:
        self._gathered: dict[tuple[str, int, bool], tuple[int, datetime]] = {}

    def __bool__(self) -> bool:
        """Tell whether there is anything to send."""
        return bool(self._gathered)

    def add(self, places: Iterable[Ready]) -> None:
        """Gather."""
        for place in places:
            key = (place.queue, place.priority, place.limited)
            shards, due_at = self._gathered.get(key, (0, place.due_at))
            self._gathered[key] = (shards | 1 << SHARDS.index(place.shard), min(due_at, place.due_at))

    def take_payloads(self) -> list[str]:
        """Return everything gathered as payloads, lines of `queue priority shard-bitmap due_at`, and forget it.

        The bitmap is hexadecimal, bit i for `SHARDS[i]`; `due_at` is in microseconds since 1970. ` limited` follows
        where limits are to be looked at.
        """
        payloads, size = [""], 0
        for (queue, priority, limited), (shards, due_at) in self._gathered.items():
            mark = " limited" if limited else ""
            line = f"{queue} {priority} {shards:x} {(due_at - _EPOCH) // _MICROSECOND}{mark}\n"
            size += len(line.encode())
            if size > MAX_PAYLOAD_BYTES and payloads[-1]:
                payloads.append("")
                size = len(line.encode())
            payloads[-1] += line
        self._gathered.clear()
        return [payload for payload in payloads if payload]


def read_hints(payload: str) -> Iterator[Ready]:
    """Read a payload. A line that is not one of ours is passed over: anybody may notify."""
    for line in payload.splitlines():
        try:
            queue, priority, shards, due_at, *marks = line.split(" ")
            bitmap, instant = int(shards, 16), _EPOCH + int(due_at) * _MICROSECOND
            rank, limited = int(priority), "limited" in marks
        except (ValueError, OverflowError):
            continue
        yield from (
            Ready(shard, queue, rank, instant, limited) for i, shard in enumerate(SHARDS) if bitmap >> i & 1
        )
