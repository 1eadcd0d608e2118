"""The attempts a worker runs: started, watched for their deadline, ended, handed to the settler."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from uuid import UUID

import msgspec

from app.db.clock import DatabaseClock
from app.db.stores.catalog import Catalog
from app.db.stores.effects import EffectStore
from app.domain.claims import Claim, LeaseId
from app.domain.hints import Place
from app.domain.outcomes import Cancelled, Outcome
from app.tasks import Context
from app.worker.alarms import Alarms
from app.worker.attempt import STOP_GRACE_SECONDS, Attempt, Stop
from app.worker.capture import ExecutionLog
from app.worker.eager import start_at_once
from app.worker.effects import AttemptEffects
from app.worker.leases import HeldLease, LeaseKeeper
from app.worker.pace import Pace
from app.worker.runner import Runner
from app.worker.settler import Settler
from app.worker.slots import Slots
from app.worker.waiting import WaitingClaims
from app.worker.yielding import Yielding

log = logging.getLogger(__name__)
_task_log = logging.getLogger("onthedot.task")

HURRIED_STOP_GRACE_SECONDS = 0.3
"""The same after a second signal: a second later the process is killed, and by then all must be given back."""
DEFAULT_TIMEOUT_SECONDS = 3600.0


class WorkerPool:
    """Runs as many attempts at once as there are slots."""

    def __init__(
        self,
        *,
        slots: Slots,
        runner: Runner,
        settler: Settler,
        leases: LeaseKeeper,
        catalog: Catalog,
        clock: DatabaseClock,
        timeline: int,
        effects: EffectStore,
        on_free: Callable[[], None],
        on_settle: Callable[[], None],
    ) -> None:
        self._slots = slots
        self._runner = runner
        self._settler = settler
        self._leases = leases
        self._catalog = catalog
        self._clock = clock
        self._timeline = timeline
        self._effects = effects
        self._on_free = on_free
        self._on_settle = on_settle
        self._running: dict[LeaseId, Attempt] = {}
        self._waiting = WaitingClaims(clock.now)
        self._yielding = Yielding()
        self._pace = Pace()
        self._deadlines = Alarms(self._ring, is_over=attrgetter("finished"))
        self._launching = False

    @property
    def is_full(self) -> bool:
        """Whether all slots are taken, but for reserved ones, and there is enough to go on with."""
        return self._slots.open_to_all() + self._pace.prefetch() - len(self._waiting) <= 0

    @property
    def has_room_for_some(self) -> bool:
        """Whether, though it is full, there may be room: reserved slots, or work that yields."""
        return self._slots.has_unused() or bool(self._yielding)

    def room_for(self, place: Place) -> int:
        """Return how many more due executions may be claimed there: slots that they may take, a little to go on with
        and, where that is not enough, what would yield to them. Less urgent work that waits here stands behind them.
        """
        open_to_it = self._slots.open_to(place.queue)
        of_its_own = min(open_to_it, self._slots.unused_of(place.queue))
        room = self._pace.prefetch() + max(
            open_to_it - self._waiting.ahead_of(place.priority),
            of_its_own - self._waiting.ahead_of(place.priority, queue=place.queue),
        )
        if room <= 0 and self._yielding and not self._catalog.is_interruptible(place.queue):
            room += self._yielding.stopping() + len(self._yielding.willing(place.priority))
        return room

    def room_ahead(self, queue: str, leased: Mapping[str, int]) -> int:
        """Return how many of a queue may be leased ahead, where so many of each already are."""
        return self._slots.open_ahead(queue, leased)

    def __len__(self) -> int:
        """Return how many attempts are running."""
        return len(self._running)

    def is_overdue(self) -> bool:
        """Tell whether somebody's timeout has come, kept or not. From any thread."""
        now = self._clock.now()
        return any(
            (now - attempt.started_at).total_seconds() >= attempt.timeout_seconds
            for attempt in list(self._running.values())
        )

    def hold(self, claims: Iterable[Claim], lease_seconds: float, claimed_at: float) -> None:
        """Keep the leases of claims alive; `claimed_at` is from `time.monotonic()` before the claim was sent."""
        for claim in claims:
            self._leases.hold(HeldLease(claim, claim.lease, lease_seconds, claimed_at))

    def start(self, claims: Iterable[Claim]) -> None:
        """Start the attempts of claims that are RUNNING, at once or as soon as a slot is free."""
        for claim in claims:
            self._waiting.add(claim)
        self._launch_waiting()
        self.make_room()

    def make_room(self) -> None:
        """Interrupt what yields to more urgent work that waits here, one for each that has no slot in prospect."""
        if not self._waiting or not self._yielding:
            return
        without = -self._pace.prefetch() - self._yielding.stopping()
        for lane, count in self._waiting.counts():
            if self._catalog.is_interruptible(lane.queue):
                continue
            without += count
            for attempt in self._yielding.willing(lane.priority)[: max(0, without)]:
                self._yielding.interrupt(attempt)
                without -= 1

    def _launch_waiting(self) -> None:
        """Start what waits while there are slots for it. An attempt may end within its launch and free its slot:
        the launch under way goes on with it, another one within it would nest as deep as there are claims."""
        if self._launching:
            return
        self._launching = True
        try:
            while (claim := self._waiting.next(self._may_start)) is not None:
                self._launch(claim)
        finally:
            self._launching = False

    def _may_start(self, queue: str) -> bool:
        return self._slots.open_to_all() > 0 or self._slots.open_to(queue) > 0

    def _launch(self, claim: Claim) -> None:
        lease = claim.lease
        if not self._leases.allows_beginning(lease):
            _report_late(claim)
            self._leases.drop(lease)
            return
        attempt = self._attempt(claim, lease)
        self._running[lease] = attempt
        self._slots.take(claim.queue)
        attempt.work = work = start_at_once(self._runner.run(attempt))
        if work.done():
            self._on_done(attempt, work)
            return
        self._leases.began(lease, attempt.started_at)
        if self._catalog.is_interruptible(claim.queue):
            self._yielding.began(attempt)
        self._deadlines.set(time.monotonic() + attempt.timeout_seconds, attempt)
        work.add_done_callback(partial(self._on_done, attempt))

    def lose(self, lease: LeaseId) -> None:
        """End an attempt whose lease was lost."""
        attempt = self._running.get(lease)
        if attempt is None:
            self._waiting.remove(lease)
        else:
            log.warning("lease lost", extra={"event": "lease_lost", "execution_id": str(lease.execution_id)})
            self._end(attempt, Stop.LEASE_LOST)

    def cancel(self, execution_id: UUID) -> None:
        """End an attempt that somebody wants to stop, or never start it."""
        for attempt in list(self._running.values()):
            if attempt.claim.execution_id == execution_id:
                self._end(attempt, Stop.CANCELLED)
        for claim in self._waiting.remove_all_of(execution_id):
            self.drop_cancelled(claim)

    def drop_cancelled(self, claim: Claim) -> None:
        """Record a claim as cancelled that was RUNNING but has not begun."""
        self._settler.add(self._attempt(claim, claim.lease), Cancelled())
        self._on_settle()

    def collect_lines(self) -> None:
        """Hand the settler the log lines that running attempts have written so far."""
        for attempt in self._running.values():
            if attempt.log.has_lines:
                self._settler.collect_lines(attempt)

    def take_back(self) -> list[Claim]:
        """Return the claims that wait for a slot, and start none of them."""
        return self._waiting.take_all()

    async def drain(self, grace_seconds: float, *, hurry: asyncio.Event) -> None:
        """Wait for running attempts until the grace is over or `hurry` is set; end what is left and give it back."""
        await self._all_ended(grace_seconds, but_for=hurry)
        for attempt in list(self._running.values()):
            self._end(attempt, Stop.SHUTDOWN)
        clean_up_seconds = HURRIED_STOP_GRACE_SECONDS if hurry.is_set() else STOP_GRACE_SECONDS
        await self._all_ended(clean_up_seconds)
        for attempt in list(self._running.values()):
            self._finish(attempt, self._runner.stopped(attempt))

    async def _all_ended(self, seconds: float, *, but_for: asyncio.Event | None = None) -> None:
        """Wait until nothing runs any more, but no longer than so many seconds or for this."""
        ended = asyncio.create_task(self._until_idle())
        hurried = asyncio.create_task((but_for or asyncio.Event()).wait())
        await asyncio.wait({ended, hurried}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for waiting in (ended, hurried):
            waiting.cancel()

    async def _until_idle(self) -> None:
        while self._running:
            await asyncio.wait([attempt.work for attempt in self._running.values() if attempt.work])

    def _attempt(self, claim: Claim, lease: LeaseId) -> Attempt:
        task = self._catalog.task_of(claim)
        timeout_seconds = claim.timeout_seconds or (task.timeout_seconds if task else DEFAULT_TIMEOUT_SECONDS)
        effects = AttemptEffects(self._effects, claim)
        context = Context(
            execution_id=claim.execution_id,
            job_id=claim.job_id,
            attempt_number=claim.attempt_number,
            scheduled_time=claim.scheduled_time,
            parameters=msgspec.json.decode(claim.parameters),
            fencing_token=(self._timeline << 40) + claim.lease_epoch,
            timeout_seconds=timeout_seconds,
            logger=_task_log,
            effects=effects,
        )
        return Attempt(
            claim=claim,
            lease=lease,
            task=task,
            context=context,
            effects=effects,
            log=ExecutionLog(self._clock.now),
            started_at=max(self._clock.now(), claim.due_at),
            timeout_seconds=timeout_seconds,
        )

    def _on_done(self, attempt: Attempt, work: asyncio.Task[Outcome]) -> None:
        """Take the outcome; one that comes after its attempt was given up on counts no more."""
        if not attempt.finished:
            outcome = self._runner.stopped(attempt) if work.cancelled() else work.result()
            self._finish(attempt, outcome)

    def _ring(self, attempts: list[Attempt]) -> None:
        """A deadline has come: of an attempt that runs, end it; of one that was told to end, give up on it."""
        for attempt in attempts:
            if attempt.finished:
                continue
            if attempt.stop in {None, Stop.INTERRUPTED}:
                self._end(attempt, Stop.TIMEOUT)
            else:
                self._abandon(attempt)

    def _end(self, attempt: Attempt, reason: Stop) -> None:
        attempt.end(reason)
        if not attempt.finished:
            self._deadlines.set(time.monotonic() + STOP_GRACE_SECONDS, attempt)

    def _abandon(self, attempt: Attempt) -> None:
        log.warning(
            "the handler does not stop; its outcome stands without it",
            extra={"event": "handler_abandoned", "execution_id": str(attempt.claim.execution_id)},
        )
        self._finish(attempt, self._runner.stopped(attempt))

    def _finish(self, attempt: Attempt, outcome: Outcome) -> None:
        attempt.finished = True
        del self._running[attempt.lease]
        self._yielding.ended(attempt)
        # What ends in a reserved slot makes no room for others: nothing is held in advance for it.
        if self._slots.give_back(attempt.claim.queue):
            self._pace.note_ended()
        if attempt.stop is not Stop.LEASE_LOST:
            self._settler.add(attempt, outcome)
            self._on_settle()
        self._launch_waiting()
        self._on_free()


def _report_late(claim: Claim) -> None:
    """Say that a claim was not begun: its lease is over, and somebody else has the execution or soon will."""
    log.warning(
        "the lease lapsed before the attempt began",
        extra={"event": "begun_too_late", "execution_id": str(claim.execution_id)},
    )
