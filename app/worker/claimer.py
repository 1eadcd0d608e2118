"""Finds ready work and claims it, for as long as there is room."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from app.db.clock import DatabaseClock
from app.db.stores.catalog import Catalog
from app.db.stores.executions import ExecutionStore
from app.domain.budget import LOOK_EVERY_SECONDS, LOOK_WHEN_FULL_SECONDS
from app.domain.claims import Claim
from app.domain.hints import Place, Ready
from app.domain.ids import SHARDS
from app.domain.statuses import Status
from app.worker.claim_order import ClaimOrder, Turn
from app.worker.lanes import LaneClaimer
from app.worker.leases import LeaseKeeper
from app.worker.marks import LowWaterMarks
from app.worker.pool import WorkerPool
from app.worker.timers import Timers

QUEUES_EVERY_SECONDS = 1.0
QUEUES_WHEN_IDLE_EVERY_SECONDS = 10.0
"""How often queues are read anew by a worker that runs nothing, knows of no work, and passes over no queue."""
A_LITTLE = 8
"""New executions that one worker begins by itself; of more the others are told, too."""


class Claimer:
    """One `tick`: look where work is, and claim there, most urgent first.

    What is due takes slots that are free for its queue and a prefetch that the pool's own pace allows. What falls due
    within the look-ahead is leased beside them, as many as there are slots for it in all: they will be free again, or
    the execution waits for one in this worker. When all slots are taken, what has some reserved is still looked for,
    and what others would yield to.
    """

    def __init__(
        self,
        *,
        executions: ExecutionStore,
        lanes: LaneClaimer,
        wake: Callable[[], None],
        catalog: Catalog,
        clock: DatabaseClock,
        pool: WorkerPool,
        timers: Timers,
        leases: LeaseKeeper,
        worker_id: UUID,
        queues: tuple[str, ...],
        lease_seconds: float,
        lookahead_seconds: float,
    ) -> None:
        self._executions = executions
        self._lanes = lanes
        self._wake = wake
        self._alarm: asyncio.Handle | None = None
        self._alarm_at = 0.0
        self._unfinished = False
        """Somewhere not all lanes have been visited yet."""
        self._catalog = catalog
        self._clock = clock
        self._pool = pool
        self._timers = timers
        self._leases = leases
        self._worker_id = worker_id
        self._queues = queues
        self._lease_seconds = lease_seconds
        self._lookahead_seconds = lookahead_seconds
        self._refreshed_at = -math.inf
        self._looked_at = 0.0
        self._busy = False
        self._order = ClaimOrder(first_shard=worker_id.int % len(SHARDS))
        self._marks = LowWaterMarks()
        self._known: dict[Place, Ready] = {}
        """Where there is work, by hints or because a claim has left some behind."""
        self.starved = False
        """The last tick left ready work behind for want of a slot: a free one is worth another look."""

    async def tick(self) -> bool:
        """Claim what is ready, unless this worker drains or is about to; return whether anything was claimed."""
        if self._leases.draining or self._leases.are_all_lapsed():
            return False
        await self._refresh()
        self._pool.make_room()
        self.starved = self._pool.is_full
        if self.starved and not self._pool.has_room_for_some:
            return False
        claimed, self._unfinished = 0, False
        self._lanes.begin()
        for turn in await self._turns():
            claimed += await self._claim(turn)
        return claimed > 0 or self._unfinished

    def hint(self, places: Iterable[Ready]) -> bool:
        """Take hints of work that this worker serves and that is near; return whether a look is worth it."""
        horizon = self._clock.now() + timedelta(seconds=self._lookahead_seconds)
        near = [p for p in places if p.due_at <= horizon and self._serves(p.queue)]
        for place in near:
            self._know(place)
        return bool(near)

    def has_room_for(self, places: Sequence[Ready]) -> bool:
        """Tell whether new work, a little of it, begins here at once, so that no other worker need hear of it."""
        if self._leases.draining or len(places) > A_LITTLE:
            return False
        return all(
            not place.limited
            and self._serves(place.queue)
            and self._pool.room_for(place.place) >= len(places)
            for place in places
        )

    def on_freed(self) -> None:
        """Something counts against its limits no more: what they have left waiting may be what was seen here, or else
        only by others, who have not heard of it yet."""
        self._looked_at = 0.0
        self._wake()

    def _serves(self, queue: str) -> bool:
        return not self._queues or queue in self._queues

    def _know(self, place: Ready) -> None:
        known = self._known.get(place.place)
        if known is None or place.due_at < known.due_at:
            self._known[place.place] = place

    async def _turns(self) -> list[Turn]:
        """Return where to claim: where work is known to be, and where a look finds some."""
        if self._is_time_to_look():
            await self._look()
        known, self._known = self._known, {}
        return self._order.turns(known.values(), self._clock.now())

    def _is_time_to_look(self) -> bool:
        since_seconds = time.monotonic() - self._looked_at
        if self.starved:
            return since_seconds >= LOOK_WHEN_FULL_SECONDS
        return not self._known or since_seconds >= LOOK_EVERY_SECONDS

    async def _look(self) -> None:
        queues = self._catalog.to_look_at(self._queues)
        if queues is None:
            return
        # Where nothing is done nothing dies: an idle worker takes no transaction's number for its marks.
        snapshot = await self._executions.snapshot() if self._busy else None
        found = await self._executions.peek(
            lookahead_seconds=self._lookahead_seconds, queues=queues, marks=self._marks.to_look_from()
        )
        self._marks.note(snapshot, found)
        for place in found:
            self._know(place)
        self._busy = bool(found)
        self._looked_at = time.monotonic()
        await self._refresh()

    async def _claim(self, turn: Turn) -> int:
        """Claim at one place; return how many."""
        place = turn.place
        is_due = place.due_at <= self._clock.now()
        if place.limited and not is_due:
            self._look_at(place)
            return 0
        room = self._room_for(place, is_due=is_due)
        if room <= 0:
            self.starved = True
            self._know(place)
            return 0
        queue = self._catalog.queues.get(place.queue)
        limit = min(room, turn.at_most or room, queue.batch_size if queue else room)
        lease_seconds = self._catalog.lease_seconds(place.queue, most=self._lease_seconds)
        before = time.monotonic()
        if is_due and await self._lanes.takes(place, self._marks.of(place)):
            claims = await self._claim_by_lane(place, limit=limit, lease_seconds=lease_seconds)
        else:
            claims = await self._claim_at(place, is_due=is_due, limit=limit, lease_seconds=lease_seconds)
            if len(claims) == limit:
                self._know(place)
        self._order.note(turn, len(claims))
        await self._catalog.load_tasks_of(claims)
        self._take(claims, lease_seconds, before)
        return len(claims)

    def _room_for(self, place: Ready, *, is_due: bool) -> int:
        room = self._pool.room_for(place.place)
        return room if is_due or room <= 0 else self._pool.room_ahead(place.queue, self._timers.by_queue())

    async def _claim_by_lane(self, place: Ready, *, limit: int, lease_seconds: float) -> list[Claim]:
        found = await self._lanes.claim(
            place, limit=limit, lease_seconds=lease_seconds, mark=self._marks.of(place)
        )
        if found.again_at is not None and found.again_at <= self._clock.now():
            self._know(place)
            self._unfinished = True
            return found.claims
        self._looked_at = 0.0  # only a look can tell when the next one is due: nothing is leased ahead here
        if found.again_at is not None:
            self._look_at(msgspec.structs.replace(place, due_at=found.again_at))
        return found.claims

    def _look_at(self, place: Ready) -> None:
        """Look at a place when it is due: nothing that comes under limits is leased ahead."""
        self._know(place)
        loop, due_at = asyncio.get_running_loop(), self._clock.monotonic_of(place.due_at)
        now = time.monotonic()
        if not 0 < self._alarm_at <= due_at:  # none is set, or it rings too late
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_at = due_at
            self._alarm = loop.call_later(max(0.0, due_at - now), self._ring)

    def _ring(self) -> None:
        self._alarm_at = 0.0
        self._wake()

    async def _claim_at(self, place: Ready, *, is_due: bool, limit: int, lease_seconds: float) -> list[Claim]:
        if is_due:
            return await self._executions.claim_due(
                place,
                limit=limit,
                worker_id=self._worker_id,
                lease_seconds=lease_seconds,
                mark=self._marks.of(place),
            )
        return await self._executions.claim_ahead(
            place,
            limit=limit,
            worker_id=self._worker_id,
            lease_seconds=lease_seconds,
            lookahead_seconds=self._lookahead_seconds,
        )

    def _take(self, claims: Sequence[Claim], lease_seconds: float, claimed_at: float) -> None:
        self._pool.hold(claims, lease_seconds, claimed_at)
        for claim in claims:
            if claim.status == Status.SCHEDULED:
                self._timers.add(claim)
        self._pool.start(claim for claim in claims if claim.status == Status.RUNNING)

    async def _refresh(self) -> None:
        """Read the queues anew where they are older than they may be for what there is to do."""
        is_idle = not (self._known or len(self._pool) or self._catalog.has_paused)
        may_be_old_seconds = QUEUES_WHEN_IDLE_EVERY_SECONDS if is_idle else QUEUES_EVERY_SECONDS
        now = time.monotonic()
        if now - self._refreshed_at >= may_be_old_seconds:
            await self._catalog.refresh_queues()
            self._refreshed_at = now
