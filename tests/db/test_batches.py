"""How far a batch has come: what it began with, by the ids of that, and what of it was run again."""

from datetime import datetime, timedelta
from itertools import count
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.pools import Pool
from app.db.reads.batches import BatchReads
from app.domain.ids import new_execution_id, uuid7
from tests.factories import insert, make_execution, make_finished, now_of

_made = count(1_700_000_000_000_000)


async def test_a_batch_counts_its_own_among_what_was_made_at_the_same_time(
    pool: Pool, engine: AsyncEngine
) -> None:
    now = await now_of(pool)
    ids = [_ids() for _ in range(6)]
    mixed, ended = await _batch(pool, now, ids[::2]), await _batch(pool, now, ids[1::2])
    await make_execution(pool, batch_id=mixed, **ids[0])
    await make_finished(pool, batch_id=mixed, status="FAILED", **ids[2])
    await make_finished(pool, batch_id=mixed, **ids[4])
    await make_finished(pool, batch_id=mixed, run_key="retry:1", **_ids(ids[2]["job_id"]))
    await make_execution(pool, batch_id=mixed, run_key="retry:2", trigger="retry", **_ids(ids[2]["job_id"]))
    for seconds_ago, its in enumerate(ids[1::2]):
        await make_finished(pool, batch_id=ended, ended_seconds_ago=seconds_ago, **its)
    newest = await pool.fetchval(
        "SELECT max(completed_at) FROM onthedot.execution_history WHERE batch_id = $1", ended
    )
    found = [await BatchReads(engine).get(batch_id) for batch_id in (mixed, ended)]

    assert [one.by_status for one in found] == [
        {"PENDING": 2, "COMPLETED": 2, "FAILED": 1},
        {"COMPLETED": 3},
    ]
    assert found[1].completed_at == newest


def _ids(job_id: UUID | None = None) -> dict[str, UUID]:
    job_id = job_id or uuid7(next(_made))
    return {"job_id": job_id, "execution_id": new_execution_id(job_id, next(_made))}


async def _batch(pool: Pool, now: datetime, ids: list[dict[str, UUID]]) -> UUID:
    batch_id, began_with = uuid4(), [its["execution_id"] for its in ids]
    row = {
        "batch_id": batch_id,
        "user_id": "ada",
        "total": len(ids),
        "created_at": now - timedelta(hours=1),
        "first_execution_id": min(began_with),
        "last_execution_id": max(began_with),
    }
    await insert(pool, "batches", [row])
    return batch_id
