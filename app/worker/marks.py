"""Low-water marks: from where on a claim begins to look."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from app.domain.hints import Line, Ready
from app.domain.ids import SHARDS
from app.domain.snapshots import Snapshot

TRAIL = timedelta(seconds=10)
"""How far marks stay behind: a transaction may wait that long between its beginning, which is its now(), and its
first write, which gives it its number; and new jobs may be due 5 s before that (create_jobs.sql)."""
WHOLE_LOOK_EVERY_SECONDS = 30.0
MOST_SNAPSHOTS = 100
START = datetime(1970, 1, 1, tzinfo=UTC)


class LowWaterMarks:
    """Before its mark, a place holds nothing that is ready.

    While somebody keeps an old snapshot open (a backup, a long report), vacuum cannot remove the index entries of
    executions that are done, and a claim that began at the first of them would walk over all: a million after two
    minutes at full speed. So it begins at the mark, which the last look at the table has set.

    A mark is the first ready instant that the look saw, but never later than what it could not see: rows of
    transactions that were still open. Nothing is written that is due before its transaction's now(), so they are due
    after the last moment of which it is known that every transaction with a number from before it has ended, less
    `TRAIL`. Looks begin at the marks of the look before, and now and then, whatever the marks say, at the start:
    should anything slip below a mark, it is late, not lost.
    """

    def __init__(self, *, whole_look_every_seconds: float = WHOLE_LOOK_EVERY_SECONDS) -> None:
        self._whole_look_every_seconds = whole_look_every_seconds
        self._snapshots: deque[Snapshot] = deque()
        self._horizon = START
        self._firsts: dict[Line, datetime] = {}
        self._whole_look_at = 0.0

    def of(self, place: Ready) -> datetime:
        """Return from where on to claim at a place."""
        return min(self._firsts.get(place.line, self._horizon), self._horizon)

    def to_look_from(self) -> Mapping[int, datetime]:
        """Return from where on the next look is to begin, for each shard."""
        if time.monotonic() >= self._whole_look_at:
            self._whole_look_at = time.monotonic() + self._whole_look_every_seconds
            return dict.fromkeys(SHARDS, START)
        marks: dict[int, datetime] = dict.fromkeys(SHARDS, self._horizon)
        for line, first in self._firsts.items():
            marks[line.shard] = min(marks[line.shard], first)
        return marks

    def note(self, snapshot: Snapshot | None, seen: Iterable[Ready]) -> None:
        """Take what a look saw. `snapshot` was taken just before it; None: marks are not to move on."""
        if snapshot is not None:
            while self._snapshots and self._snapshots[0].next <= snapshot.oldest:
                self._horizon = self._snapshots.popleft().taken_at - TRAIL
            if len(self._snapshots) < MOST_SNAPSHOTS:
                self._snapshots.append(snapshot)
        self._firsts = {}
        for ready in seen:
            self._firsts[ready.line] = min(ready.due_at, self._firsts.get(ready.line, ready.due_at))
