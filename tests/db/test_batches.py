"""How far a batch has come, by the ids of its jobs."""

from datetime import datetime, timedelta
from itertools import count
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.pools import Pool
from app.db.reads.batches import BatchReads
from app.domain.ids import uuid7
from tests.factories import insert, make_execution, make_finished, now_of

_made = count(1_700_000_000_000_000)


async def test_a_batch_counts_its_own_among_what_was_made_at_the_same_time(
    pool: Pool, engine: AsyncEngine
) -> None:
    now = await now_of(pool)
    jobs = [uuid7(next(_made)) for _ in range(6)]
    mixed, ended = await _batch(pool, now, jobs[::2]), await _batch(pool, now, jobs[1::2])
    await make_execution(pool, job_id=jobs[0], batch_id=mixed)
    await make_finished(pool, job_id=jobs[2], batch_id=mixed, status="FAILED")
    await make_finished(pool, job_id=jobs[4], batch_id=mixed)
    for seconds_ago, job_id in enumerate(jobs[1::2]):
        await make_finished(pool, job_id=job_id, batch_id=ended, ended_seconds_ago=seconds_ago)
    newest = await pool.fetchval(
        "SELECT max(completed_at) FROM onthedot.execution_history WHERE batch_id = $1", ended
    )
    found = [await BatchReads(engine).get(batch_id) for batch_id in (mixed, ended)]

    assert [one.by_status for one in found] == [{"PENDING": 1, "COMPLETED": 1, "FAILED": 1}, {"COMPLETED": 3}]
    assert [one.completed_at for one in found] == [None, newest]


async def _batch(pool: Pool, now: datetime, jobs: list[UUID]) -> UUID:
    row = {
        "batch_id": uuid4(),
        "user_id": "ada",
        "total": len(jobs),
        "created_at": now - timedelta(hours=1),
        "first_job_id": min(jobs),
        "last_job_id": max(jobs),
    }
    await insert(pool, "batches", [row])
    return row["batch_id"]  # type: ignore[return-value]
