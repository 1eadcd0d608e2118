"""Claims beside limits, as a worker makes them, for tests that say when."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from app.db.pools import Pool
from app.db.stores.admissions import AdmissionStore, Claimant, LaneCursor
from app.db.stores.executions import ExecutionStore, FailedAttempt, Settlement
from app.db.stores.limits import LimitStore
from app.domain.admission import Host
from app.domain.claims import Claim
from app.domain.hints import Ready
from app.domain.ids import SHARDS
from app.worker.marks import START
from tests.factories import make_executions, now_of

HOST = Host("ant", 4.0, 4096)


class Bench:
    """A worker's claims beside limits, and its ends."""

    def __init__(self, pool: Pool, *, labels: str = "{}", host: Host = HOST) -> None:
        self.pool = pool
        self.worker_id = uuid4()
        self.admissions = AdmissionStore(pool, Claimant(self.worker_id, host, labels))
        self.executions = ExecutionStore(pool)
        self.limits = LimitStore(pool)

    async def oldest(self, *, limit: int = 100, queue: str = "general") -> list[Claim]:
        """Claim the oldest in every shard."""
        found = []
        for place in await self.places(queue):
            claims = await self.admissions.claim_oldest(
                place, limit=limit - len(found), lease_seconds=30, mark=START
            )
            found += claims.claims
        return found

    async def by_lane(self, *, limit: int = 100) -> list[Claim]:
        """Claim lane by lane in every shard."""
        found: list[Claim] = []
        for place in await self.places("general"):
            claims = await self.admissions.claim_by_lane(
                place, LaneCursor(), limit=limit, lease_seconds=30, mark=START
            )
            found += claims.claims
        return found

    async def begin(self, shard: int, *, limit: int) -> list[Claim]:
        """Claim in one shard what comes under no limit."""
        place = Ready(shard, "general", 2, await now_of(self.pool))
        return await self.executions.claim_due(
            place, limit=limit, worker_id=self.worker_id, lease_seconds=30, mark=START
        )

    async def places(self, queue: str) -> list[Ready]:
        """Return where work of a queue may lie."""
        now = await now_of(self.pool)
        return [Ready(shard, queue, 2, now, limited=True) for shard in SHARDS]

    async def settle(self, claims: Sequence[Claim]) -> None:
        """End what was claimed."""
        kept = await self.executions.settle([await self.settlement(claim) for claim in claims])
        await self.limits.free([claim.lease for claim in claims if claim.execution_id in kept])

    async def settlement(self, claim: Claim) -> Settlement:
        """Return the good end of an execution."""
        now = await now_of(self.pool)
        return Settlement(claim, "COMPLETED", "ran", claim.claimed_at, now, 0.0)

    async def retry(self, claim: Claim) -> None:
        """Have an attempt fail; the next one is due."""
        now = await now_of(self.pool)
        failed = FailedAttempt(claim, now, claim.claimed_at, now, 0.0, "failed", "{}")
        await self.executions.retry([failed], worker_id=self.worker_id)
        await self.limits.free([claim.lease])


async def limited(pool: Pool, count: int, **columns: Any) -> list[UUID]:
    """Make executions that come under limits and have been due for a second."""
    row = {"limited": True, "due_in_seconds": -1.0} | columns
    return await make_executions(pool, [row | {"run_key": str(i)} for i in range(count)])


async def held(pool: Pool) -> dict[str, int]:
    """Return how many count against each limit."""
    rows = await pool.fetch("SELECT key, count(*) FROM onthedot.limit_holders GROUP BY key")
    return {row[0]: row[1] for row in rows}
