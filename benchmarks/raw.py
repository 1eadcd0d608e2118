"""The limit: the same statements, claimed and settled by a bare loop that runs nothing, one process a worker."""

import asyncio
import multiprocessing
from uuid import uuid4

from app.db.pools import open_pool
from app.db.stores.executions import ExecutionStore, Settlement
from app.domain.claims import Claim
from app.domain.hints import Ready
from app.domain.ids import SHARDS
from app.worker.marks import START

BATCH = 500
LEASE_SECONDS = 60.0


def drain(dsn: str, queue: str, *, processes: int) -> None:
    """Claim and settle all that waits in a queue, from every shard, until nothing is left."""
    context = multiprocessing.get_context("spawn")
    each = [context.Process(target=_drain, args=(dsn, queue, number)) for number in range(processes)]
    for process in each:
        process.start()
    for process in each:
        process.join()


def _drain(dsn: str, queue: str, number: int) -> None:
    asyncio.run(_work(dsn, queue, number))


async def _work(dsn: str, queue: str, number: int) -> None:
    pool = await open_pool(dsn, size=3, application_name="bench", by_index_only=True)
    store, worker_id, settling = ExecutionStore(pool), uuid4(), asyncio.create_task(asyncio.sleep(0))
    shards = SHARDS[number * 5 :] + SHARDS[: number * 5]
    busy = True
    while busy:
        busy = False
        for shard in shards:
            claims = await store.claim_due(
                Ready(shard, queue, 2, START),
                limit=BATCH,
                worker_id=worker_id,
                lease_seconds=LEASE_SECONDS,
                mark=START,
            )
            if claims:
                busy = True
                await settling
                settling = asyncio.create_task(_settle(store, claims))
    await settling
    await pool.close()


async def _settle(store: ExecutionStore, claims: list[Claim]) -> None:
    await store.settle(
        Settlement(claim, "COMPLETED", "ran", claim.claimed_at, claim.claimed_at, 0.0) for claim in claims
    )
