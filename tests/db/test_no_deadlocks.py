"""One job's executions run while people change that job: nobody waits in a circle."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

from app.db.pools import Pool, open_pool
from app.db.stores.executions import ExecutionStore, Settlement
from app.db.stores.job_control import JobControl
from app.domain.access import Actor
from app.domain.hints import Ready
from app.domain.ids import shard_of
from app.domain.job_changes import Change, pause, resume
from app.worker.marks import START
from tests.factories import make_executions, make_job, make_task, now_of

ADA = Actor("user:ada")
ROUNDS, WORKERS, PEOPLE = 25, 8, 4


async def test_changing_a_job_whose_executions_run_deadlocks_nobody(dsn: str) -> None:
    async with await open_pool(dsn, size=WORKERS + PEOPLE, application_name="test") as pool:
        await make_task(pool)
        job_id = await make_job(pool)
        now = await now_of(pool)
        rows = (
            {"job_id": job_id, "run_key": str(n), "due_in_seconds": -1} for n in range(WORKERS * ROUNDS * 4)
        )
        await make_executions(pool, rows)
        place = Ready(shard_of(job_id), "general", 2, now)
        people = [_pause_and_resume, _edit, _limit, _edit]
        done = await asyncio.gather(
            *(_work(pool, place) for _ in range(WORKERS)),
            *(_repeat(change, JobControl(pool, horizon_seconds=600), job_id) for change in people[:PEOPLE]),
        )
        deadlocks = await pool.fetchval(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        )

    assert sum(done[:WORKERS]) > 0
    assert deadlocks == 0


async def _work(pool: Pool, place: Ready) -> int:
    """Claim and settle, a few at a time; return how many."""
    store, settled = ExecutionStore(pool), 0
    for _ in range(ROUNDS):
        claims = await store.claim_due(place, limit=4, worker_id=uuid4(), lease_seconds=30, mark=START)
        now = await now_of(pool)
        ends = [Settlement(claim, "COMPLETED", "ran", now, now, 0.0) for claim in claims]
        settled += len(await store.settle(ends))
    return settled


async def _repeat(
    change: Callable[[JobControl, UUID], Awaitable[None]], control: JobControl, job_id: UUID
) -> int:
    for _ in range(ROUNDS):
        await change(control, job_id)
    return ROUNDS


async def _pause_and_resume(control: JobControl, job_id: UUID) -> None:
    await control.change(job_id, pause(reason=None, until=None), if_version=None, actor=ADA)
    await control.change(job_id, resume(), if_version=None, actor=ADA)


async def _edit(control: JobControl, job_id: UUID) -> None:
    change = Change({"schedule_type": "INTERVAL", "every_seconds": 90.0, "priority": 2})
    await control.change(job_id, change, if_version=None, actor=ADA)


async def _limit(control: JobControl, job_id: UUID) -> None:
    """What runs counts from then on, and is written for that."""
    for overlap in ("queue", "allow"):
        await control.change(job_id, Change({"overlap": overlap}), if_version=None, actor=ADA)
