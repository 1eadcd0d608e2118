"""Claims that are due and wait for a slot of this worker."""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.domain.aging import AgedShare, longest_waiting
from app.domain.claims import Claim, LeaseId


class Lane(NamedTuple):
    """Claims of one queue and priority wait in the order in which they came. Lanes sort by urgency."""

    priority: int
    queue: str


class WaitingClaims:
    """Hands out the most urgent claim that may have a slot; what has waited for long gets its share (`AgedShare`)."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lanes: dict[Lane, deque[Claim]] = {}
        self._share = AgedShare()

    def __len__(self) -> int:
        """Return how many wait."""
        return sum(map(len, self._lanes.values()))

    def __bool__(self) -> bool:
        """Tell whether anything waits."""
        return bool(self._lanes)

    def __iter__(self) -> Iterator[Claim]:
        """Yield all claims, the most urgent first."""
        for lane in sorted(self._lanes):
            yield from self._lanes[lane]

    def add(self, claim: Claim) -> None:
        """Have one more wait."""
        self._lanes.setdefault(Lane(claim.priority, claim.queue), deque()).append(claim)

    def counts(self) -> list[tuple[Lane, int]]:
        """Return how many wait in each lane, the most urgent first."""
        return [(lane, len(self._lanes[lane])) for lane in sorted(self._lanes)]

    def ahead_of(self, priority: int, *, queue: str | None = None) -> int:
        """Return how many start before a new one of this priority, in all or of one queue."""
        lanes = self._lanes.items()
        return sum(len(q) for at, q in lanes if at.priority <= priority and queue in {None, at.queue})

    def next(self, may_start: Callable[[str], bool]) -> Claim | None:
        """Take the one that is to start now, of queues that `may_start`; None: none may."""
        lanes = [lane for lane in self._lanes if may_start(lane.queue)]
        if not lanes:
            return None
        return self._take(lanes[0] if len(lanes) == 1 else self._in_turn(sorted(lanes)))

    def remove(self, lease: LeaseId) -> None:
        """Take out what is held under a lease."""
        for claim in [claim for claim in self if claim.lease == lease]:
            self._remove(claim)

    def remove_all_of(self, execution_id: UUID) -> list[Claim]:
        """Take out the claims of an execution and return them."""
        claims = [claim for claim in self if claim.execution_id == execution_id]
        for claim in claims:
            self._remove(claim)
        return claims

    def take_all(self) -> list[Claim]:
        """Take out everything and return it."""
        claims = list(self)
        self._lanes.clear()
        return claims

    def _in_turn(self, lanes: list[Lane]) -> Lane:
        aged = longest_waiting([self._lanes[lane][0] for lane in lanes], self._now())
        if aged is None:
            self._share.forget()
            return lanes[0]
        if self._share.owed:
            self._share.take(1)
            return Lane(aged.priority, aged.queue)
        self._share.pass_over(1)
        return lanes[0]

    def _take(self, lane: Lane) -> Claim:
        claims = self._lanes[lane]
        claim = claims.popleft()
        if not claims:
            del self._lanes[lane]
        return claim

    def _remove(self, claim: Claim) -> None:
        lane = Lane(claim.priority, claim.queue)
        self._lanes[lane].remove(claim)
        if not self._lanes[lane]:
            del self._lanes[lane]
