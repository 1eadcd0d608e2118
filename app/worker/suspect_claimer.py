"""Claims what must run alone: executions that were running when two workers ended, or stopped answering."""

import logging
import time
from collections.abc import Callable, Sequence
from uuid import UUID

from app.db.stores.admissions import AdmissionStore
from app.db.stores.catalog import Catalog
from app.db.stores.executions import ExecutionStore
from app.domain.claims import Claim
from app.domain.hints import Ready
from app.worker.leases import LeaseKeeper
from app.worker.pool import WorkerPool
from app.worker.settler import Settler

log = logging.getLogger(__name__)

IDLE_SECONDS = 5.0
"""A process that has found nothing for this long ends: another one is begun quickly, and this one holds memory."""
PLACES = 20
"""Others claim, too: the first places may be empty when we come."""


class SuspectClaimer:
    """Stands where the `Claimer` stands, in a process that runs one execution at a time.

    One `tick`: claim one, unless something is under way. It is until it is written down: the next one may end this
    process, and what had ended and was not recorded would be taken for lost with it.
    """

    def __init__(
        self,
        *,
        executions: ExecutionStore,
        admissions: AdmissionStore,
        catalog: Catalog,
        pool: WorkerPool,
        settler: Settler,
        leases: LeaseKeeper,
        worker_id: UUID,
        queues: Sequence[str],
        lease_seconds: float,
        on_idle: Callable[[], object],
    ) -> None:
        self._executions = executions
        self._admissions = admissions
        self._catalog = catalog
        self._pool = pool
        self._settler = settler
        self._leases = leases
        self._worker_id = worker_id
        self._queues = queues
        self._lease_seconds = lease_seconds
        self._on_idle = on_idle
        self._busy_at = time.monotonic()
        self.starved = False
        """Something is under way: its end is worth another look."""

    async def tick(self) -> bool:
        """Claim one execution if nothing is under way and this process does not drain; tell whether it did."""
        if self._leases.draining or self._leases.are_all_lapsed():
            return False
        self.starved = len(self._pool) > 0 or self._settler.waiting > 0
        if self.starved or await self._claim_one():
            self._busy_at = time.monotonic()
            return not self.starved
        if time.monotonic() - self._busy_at >= IDLE_SECONDS:
            self._on_idle()
        return False

    def on_freed(self) -> None:
        """Something counts against its limits no more: the end of what ran is a reason to look already."""

    def hint(self, _places: Sequence[Ready]) -> bool:
        """Hints are of work for any worker."""
        return False

    def has_room_for(self, _places: Sequence[Ready]) -> bool:
        """New work is for any other worker."""
        return False

    async def _claim_one(self) -> bool:
        places = await self._admissions.suspects(self._queues, limit=PLACES)
        if places:
            await self._catalog.refresh_queues()
        for place in places:
            if await self._claim(place):
                return True
        return False

    async def _claim(self, place: Ready) -> bool:
        lease_seconds = self._catalog.lease_seconds(place.queue, most=self._lease_seconds)
        before = time.monotonic()
        claims = await self._claim_at(place, lease_seconds)
        await self._catalog.load_tasks_of(claims)
        for claim in claims:
            self._begin(claim, lease_seconds, before)
        return bool(claims)

    async def _claim_at(self, place: Ready, lease_seconds: float) -> list[Claim]:
        if place.limited:
            return (await self._admissions.claim_alone(place, lease_seconds=lease_seconds)).claims
        return await self._executions.claim_suspect(
            place, worker_id=self._worker_id, lease_seconds=lease_seconds
        )

    def _begin(self, claim: Claim, lease_seconds: float, claimed_at: float) -> None:
        log.warning(
            "an execution runs alone: workers have ended while it ran",
            extra={"event": "suspect_started", "execution_id": str(claim.execution_id)},
        )
        self._pool.hold([claim], lease_seconds, claimed_at)
        self._pool.start([claim])
