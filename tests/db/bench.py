"""The store of executions over a database, and what its tests ask of it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from app.db.pools import Pool
from app.db.stores.admissions import AdmissionStore, Claimant
from app.db.stores.executions import ExecutionStore, FailedAttempt, Settlement
from app.domain.admission import Host
from app.domain.claims import Claim
from app.domain.hints import Ready
from app.domain.ids import SHARDS, uuid7
from app.domain.statuses import Disposition, Status
from app.worker.marks import START
from tests.factories import FAILURE, make_executions, now_of

PLACE = Ready(SHARDS[0], "general", 2, datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True)
class Bench:
    """The store over a database, and executions in the first shard."""

    pool: Pool
    store: ExecutionStore
    worker_id: UUID

    @property
    def admissions(self) -> AdmissionStore:
        """Return the store of claims beside limits."""
        return AdmissionStore(self.pool, Claimant(self.worker_id, Host("ant", 4.0, 4096), "{}"))

    async def make(self, *rows: dict[str, Any]) -> list[UUID]:
        """Make executions of jobs of the first shard."""
        return await make_executions(self.pool, ({"job_id": uuid7(0, last_byte=0)} | row for row in rows))

    async def claim(self, *, limit: int = 1000, worker_id: UUID | None = None) -> list[Claim]:
        """Claim what is due."""
        worker_id = worker_id or self.worker_id
        return await self.store.claim_due(
            PLACE, limit=limit, worker_id=worker_id, lease_seconds=30, mark=START
        )

    async def claim_ahead(self, *, lookahead_seconds: float = 30) -> list[Claim]:
        """Lease what falls due soon."""
        return await self.store.claim_ahead(
            PLACE, limit=1000, worker_id=self.worker_id, lease_seconds=30, lookahead_seconds=lookahead_seconds
        )

    async def settle(self, *claims: Claim) -> set[UUID]:
        """Settle executions that completed just now."""
        now = await now_of(self.pool)
        return await self.store.settle(
            Settlement(claim, Status.COMPLETED, Disposition.RAN, now, now, 1.5, result='{"n": 1}')
            for claim in claims
        )

    async def retry(self, *claims: Claim) -> set[UUID]:
        """Let executions that failed just now wait a minute for their next attempt."""
        now = await now_of(self.pool)
        due_at = now + timedelta(minutes=1)
        failed = (FailedAttempt(claim, due_at, now, now, 1.5, "failed", FAILURE) for claim in claims)
        return await self.store.retry(failed, worker_id=self.worker_id)

    async def live(self, execution_id: UUID) -> dict[str, Any]:
        """Return the live row of an execution; empty: there is none."""
        return await self._row("SELECT * FROM onthedot.executions WHERE execution_id = $1", execution_id)

    async def finished(self, execution_id: UUID) -> dict[str, Any]:
        """Return the history's row of an execution; empty: there is none."""
        return await self._row(
            "SELECT * FROM onthedot.execution_history WHERE execution_id = $1", execution_id
        )

    async def _row(self, query: str, execution_id: UUID) -> dict[str, Any]:
        return dict(await self.pool.fetchrow(query, execution_id) or {})

    async def attempts(self) -> list[tuple[object, ...]]:
        """Return what is recorded of all attempts that did not end their execution."""
        rows = await self.pool.fetch(
            "SELECT execution_id, attempt_number, lease_epoch, worker_id, outcome FROM onthedot.attempts"
        )
        return [tuple(row) for row in rows]

    async def make_due(self) -> None:
        """Let the time come for everything that waits."""
        await self.pool.execute("UPDATE onthedot.executions SET due_at = now() WHERE worker_id IS NULL")

    async def lapse(self) -> None:
        """Let every lease lapse."""
        await self.pool.execute(
            "UPDATE onthedot.executions SET lease_expires_at = now() - interval '1 s' WHERE worker_id IS NOT NULL"
        )
