"""Claims do not wait for each other: one that takes its time holds up nobody."""

import asyncio

from app.db.pools import Pool, connect
from app.db.queries import load
from app.db.stores.executions import ExecutionStore
from app.domain.hints import Ready
from tests.factories import make_executions, make_job, make_task, now_of
from tests.reliability.one_execution import FIRST, LONG_SECONDS, Subject

PATIENCE_SECONDS = 5.0


async def test_a_claim_passes_over_what_another_one_is_taking(pool: Pool, dsn: str) -> None:
    subject = Subject.of(0)
    await make_task(pool, subject.task_id)
    await make_job(pool, job_id=subject.job_id, task_id=subject.task_id)
    now = await now_of(pool)
    rows = ({"job_id": subject.job_id, "due_in_seconds": -1 - number} for number in range(2))
    await make_executions(pool, rows)
    place = Ready(subject.shard, "general", 2, now)
    other = await connect(dsn, application_name="slow claim")
    transaction = other.transaction()
    await transaction.start()
    where = (place.shard, place.queue, place.priority)
    slow = await other.fetch(load("claim_due"), *where, 1, FIRST, LONG_SECONDS, now.replace(year=1970))

    async with asyncio.timeout(PATIENCE_SECONDS):
        quick = await ExecutionStore(pool).claim_due(
            place, limit=2, worker_id=FIRST, lease_seconds=LONG_SECONDS, mark=now.replace(year=1970)
        )

    assert len(slow) == len(quick) == 1
    assert slow[0]["execution_id"] != quick[0].execution_id
    await transaction.rollback()
    await other.close()
