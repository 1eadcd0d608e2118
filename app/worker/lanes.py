"""Claims where limits are to be looked at, and where a backlog makes users take turns."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from app.db.clock import DatabaseClock
from app.db.stores.admissions import AdmissionStore, LaneCursor, LimitedClaims
from app.domain.budget import LOOK_EVERY_SECONDS
from app.domain.claims import Claim
from app.domain.hints import Place, Ready
from app.worker.throttled import Throttled

BACKLOG = timedelta(seconds=0.5)
"""What is due for longer than this is claimed lane by lane: in the order of their instants, one user's million would
stand before another one's ten, and what a limit keeps waiting before what may run."""
ONE_LANE_SECONDS = 0.25
"""Where all that waits is one user's and nothing limits it, nobody else is looked for again for so long."""


FIRST_PAUSE_SECONDS = 0.01


class _Line(NamedTuple):
    """What waits in one shard, queue and priority, with limits and without."""

    shard: int
    queue: str
    priority: int


class _HeldUp(NamedTuple):
    """A place where nothing could be claimed: by which limits it was held up, if any, and how often in a row."""

    by: set[str]
    times: int


class LaneClaims(NamedTuple):
    """What was claimed, and when the place is worth another look; None: when something changes."""

    claims: list[Claim]
    again_at: datetime | None
    is_held_up: bool
    """Limits have left something waiting."""


class LaneClaimer:
    """Claims due executions at one place beside what counts against their limits."""

    def __init__(
        self,
        admissions: AdmissionStore,
        *,
        clock: DatabaseClock,
        on_cancels: Callable[[UUID], None],
    ) -> None:
        self._admissions = admissions
        self._clock = clock
        self._on_cancels = on_cancels
        self._full: set[str] = set()
        self._throttled = Throttled()
        self._held_up: dict[Place, _HeldUp] = {}
        self._cursors: dict[_Line, LaneCursor] = {}
        self._one_lane_until: dict[_Line, float] = {}

    def begin(self) -> None:
        """Look at all limits anew: a round over the places begins."""
        self._full.clear()

    async def takes(self, place: Ready, mark: datetime) -> bool:
        """Tell whether a place is to be claimed here: it comes under limits, or several users have a backlog."""
        if place.limited:
            return True
        if self._clock.now() - place.due_at <= BACKLOG:
            return False
        line, now = _line(place), time.monotonic()
        if now < self._one_lane_until.get(line, 0.0):
            return False
        if await self._admissions.has_other_lanes(place, mark):
            return True
        self._one_lane_until[line] = now + ONE_LANE_SECONDS
        return False

    async def claim(self, place: Ready, *, limit: int, lease_seconds: float, mark: datetime) -> LaneClaims:
        """Claim up to `limit` executions.

        A limit of a queue or a user is met in each of their places: where this round has found it full, one that it
        has held up before is passed over.
        """
        held_up = self._held_up.get(place.place)
        if held_up is not None and held_up.by and held_up.by <= self._full:
            return LaneClaims([], None, is_held_up=True)
        if self._clock.now() - place.due_at > BACKLOG:
            found = await self._claim_by_lane(place, limit=limit, lease_seconds=lease_seconds, mark=mark)
        else:
            found = await self._admissions.claim_oldest(
                place, limit=limit, lease_seconds=lease_seconds, mark=mark
            )
        for execution_id, _ in found.cancelled:
            self._on_cancels(execution_id)
        self._note_held_up(place, found)
        claims = self._throttled.note(found, self._clock.now())
        return LaneClaims(claims, self._again_at(place, found, limit), is_held_up=bool(found.full))

    def _note_held_up(self, place: Ready, found: LimitedClaims) -> None:
        before = self._held_up.pop(place.place, None)
        if not found.claims:
            self._full |= found.full
            self._held_up[place.place] = _HeldUp(found.full, before.times + 1 if before else 0)

    async def _claim_by_lane(
        self, place: Ready, *, limit: int, lease_seconds: float, mark: datetime
    ) -> LimitedClaims:
        line = _line(place)
        after = self._cursors.pop(line, LaneCursor())
        found = await self._admissions.claim_by_lane(
            place, after, limit=limit, lease_seconds=lease_seconds, mark=mark
        )
        if found.cursor != LaneCursor():
            self._cursors[line] = found.cursor
        return found

    def _again_at(self, place: Ready, found: LimitedClaims, limit: int) -> datetime | None:
        """Return when to look again: at once where more may be free to run, later where a rate allows it.

        What holds up a place may end in another worker, soon or in an hour: more and more seldom, and in the end as
        often as anybody looks for work. The same goes for what others have locked.
        """
        now = self._clock.now()
        if len(found.claims) >= limit or found.cursor != LaneCursor():
            return now
        held_up, wait_seconds = self._held_up.get(place.place), found.wait_seconds
        if held_up is not None:
            pause_seconds = FIRST_PAUSE_SECONDS * 2 ** min(held_up.times, 10)
            if held_up.by or pause_seconds < LOOK_EVERY_SECONDS:
                pause_seconds = min(pause_seconds, LOOK_EVERY_SECONDS)
                wait_seconds = min(wait_seconds or pause_seconds, pause_seconds)
        return None if wait_seconds is None else now + timedelta(seconds=wait_seconds)


def _line(place: Ready) -> _Line:
    return _Line(place.shard, place.queue, place.priority)
