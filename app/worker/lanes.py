"""Claims where limits are to be looked at, and where a backlog makes users take turns."""

import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from app.db.clock import DatabaseClock
from app.db.stores.admissions import AdmissionStore, LaneCursor, LimitedClaims
from app.domain.budget import LOOK_EVERY_SECONDS
from app.domain.claims import Claim
from app.domain.hints import Line, Place, Ready
from app.worker.throttled import Throttled

BACKLOG = timedelta(seconds=0.5)
"""What is due for longer than this is claimed lane by lane: in the order of their instants, one user's million would
stand before another one's ten, and what a limit keeps waiting before what may run."""
ALONE_SECONDS = 0.25
"""Where all that waits is one user's, nobody else is looked for again for so long."""
IN_ORDER = 3
"""After a visit to lanes one user's backlog is claimed so often in the order of its instants. That costs a third of a
visit, and does as well as long as few of the oldest wait for a limit."""

FIRST_PAUSE_SECONDS = 0.01


class _HeldUp(NamedTuple):
    """A place where nothing could be claimed: by which limits it was held up, if any, and how often in a row."""

    by: set[str]
    times: int


class LaneClaims(NamedTuple):
    """What was claimed, and when the place is worth another look; None: when something changes."""

    claims: list[Claim]
    again_at: datetime | None


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
        self._cursors: dict[Line, LaneCursor] = {}
        self._alone_until: dict[Place, float] = {}
        self._in_order: dict[Line, int] = {}
        """How many more claims may take the oldest of a backlog, without a visit to its lanes."""

    def begin(self) -> None:
        """Look at all limits anew: a round over the places begins."""
        self._full.clear()

    async def takes(self, place: Ready, mark: datetime) -> bool:
        """Tell whether a place is to be claimed here: it comes under limits, or several users have a backlog."""
        return place.limited or (self._is_backlog(place) and not await self._is_alone(place, mark))

    async def claim(self, place: Ready, *, limit: int, lease_seconds: float, mark: datetime) -> LaneClaims:
        """Claim up to `limit` executions.

        A limit of a queue or a user is met in each of their places: where this round has found it full, one that it
        has held up before is passed over.
        """
        held_up = self._held_up.get(place.place)
        if held_up is not None and held_up.by and held_up.by <= self._full:
            return LaneClaims([], None)
        found = await self._way(place)(place, limit=limit, lease_seconds=lease_seconds, mark=mark)
        for execution_id, _ in found.cancelled:
            self._on_cancels(execution_id)
        self._note_held_up(place, found)
        claims = self._throttled.note(found, self._clock.now())
        return LaneClaims(claims, self._again_at(place, found, limit))

    def _way(self, place: Ready) -> Callable[..., Awaitable[LimitedClaims]]:
        """Return how to claim: what comes under no limits is here for its users to take turns."""
        if not place.limited:
            return self._claim_by_lane
        return self._claim_backlog if self._is_backlog(place) else self._admissions.claim_oldest

    def _is_backlog(self, place: Ready) -> bool:
        return self._clock.now() - place.due_at > BACKLOG

    async def _is_alone(self, place: Ready, mark: datetime) -> bool:
        """Tell whether what waits at a place is one user's; where it comes under no limits, in one lane."""
        now = time.monotonic()
        if now < self._alone_until.get(place.place, 0.0):
            return True
        has_others = self._admissions.has_other_users if place.limited else self._admissions.has_other_lanes
        if await has_others(place, mark):
            return False
        self._alone_until[place.place] = now + ALONE_SECONDS
        return True

    def _note_held_up(self, place: Ready, found: LimitedClaims) -> None:
        before = self._held_up.pop(place.place, None)
        if not found.claims:
            self._full |= found.full
            self._held_up[place.place] = _HeldUp(found.full, before.times + 1 if before else 0)

    async def _claim_backlog(
        self, place: Ready, *, limit: int, lease_seconds: float, mark: datetime
    ) -> LimitedClaims:
        """Claim the oldest where that keeps nobody waiting and does well, else lane by lane."""
        turns = self._in_order.pop(place.line, 0)
        if turns and await self._is_alone(place, mark):
            found = await self._admissions.claim_oldest(
                place, limit=limit, lease_seconds=lease_seconds, mark=mark
            )
            if len(found.claims) * 2 >= limit:
                self._in_order[place.line] = turns - 1
            if found.claims or found.cancelled:
                return found
        found = await self._claim_by_lane(place, limit=limit, lease_seconds=lease_seconds, mark=mark)
        if found.claims and len(found.claims) * 2 >= min(limit, found.looked_at):
            self._in_order[place.line] = IN_ORDER
        return found

    async def _claim_by_lane(
        self, place: Ready, *, limit: int, lease_seconds: float, mark: datetime
    ) -> LimitedClaims:
        after = self._cursors.pop(place.line, LaneCursor())
        found = await self._admissions.claim_by_lane(
            place, after, limit=limit, lease_seconds=lease_seconds, mark=mark
        )
        if found.cursor != LaneCursor():
            self._cursors[place.line] = found.cursor
        return found

    def _again_at(self, place: Ready, found: LimitedClaims, limit: int) -> datetime | None:
        """Return when to look again: at once where more may be free to run, later where a rate allows it.

        What holds up a place may end in another worker, soon or in an hour: more and more seldom, and in the end as
        often as anybody looks for work. The same goes for what others have locked.
        """
        now = self._clock.now()
        if len(found.claims) >= limit or found.cursor != LaneCursor():
            return now
        if found.claims and self._is_backlog(place):
            return now
        held_up, wait_seconds = self._held_up.get(place.place), found.wait_seconds
        if held_up is not None:
            pause_seconds = FIRST_PAUSE_SECONDS * 2 ** min(held_up.times, 10)
            if held_up.by or pause_seconds < LOOK_EVERY_SECONDS:
                pause_seconds = min(pause_seconds, LOOK_EVERY_SECONDS)
                wait_seconds = min(wait_seconds or pause_seconds, pause_seconds)
        return None if wait_seconds is None else now + timedelta(seconds=wait_seconds)
