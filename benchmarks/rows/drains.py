"""Rows about backlogs: how fast what waits is drained."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from app.db.pools import connect
from benchmarks import raw
from benchmarks.bench import Bench, Figure, Size
from benchmarks.seed import PARTITIONS

WORKERS = 2
WARM_UP = 10_000
DAYS = 7
"""How far back the history goes."""
_AGAIN = """
INSERT INTO onthedot.execution_history
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
        scheduled_time, due_at, first_due_at, parameters, max_attempts, attempt_number, lease_epoch,
        worker_id, claimed_at, started_at, completed_at, lateness_ms, batch_id)
SELECT shard, uuidv7(-$1::interval), job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
       scheduled_time - $1, due_at - $1, first_due_at - $1, parameters, max_attempts, attempt_number, lease_epoch,
       worker_id, claimed_at - $1, started_at - $1, completed_at - $1, lateness_ms, batch_id
  FROM onthedot.execution_history
 WHERE completed_at >= $2
 ORDER BY completed_at
"""
"""What has ended since $2 ended once more, $1 earlier: in the order of time, as it does in life."""


async def drains(bench: Bench, size: Size) -> list[Figure]:
    """What waits is drained: by bare statements, by two workers, and by two workers beside ten thousand keys."""
    bare = await _bare(bench, size.jobs)
    await bench.forget()
    plain, spent = await drain(bench, "noop", size.jobs)
    await bench.forget()
    keyed, keyed_spent = await drain(bench, "keyed", size.jobs)
    return [
        Figure("drain", "bare statements, two processes", bare, "/s"),
        Figure("drain", "two workers", plain, "/s", "≥ 38,000"),
        Figure("drain", "of the bare statements", plain / bare, "of it", "≥ 0.58"),
        Figure("drain", "processor time of workers", spent[0], "µs/job", "≤ 16"),
        Figure("drain", "processor time of PostgreSQL", spent[1], "µs/job"),
        Figure("keyed", "each with one of 10,000 keys", keyed, "/s", "≥ 20,000"),
        Figure("keyed", "of the drain without keys", keyed / plain, "of it", "≥ 0.5"),
        Figure("keyed", "processor time of workers", keyed_spent[0], "µs/job"),
        Figure("keyed", "processor time of PostgreSQL", keyed_spent[1], "µs/job"),
    ]


async def history(bench: Bench, size: Size) -> list[Figure]:
    """A drain beside millions of finished executions and a snapshot that keeps vacuum from all of it, twice."""
    fresh = await fresh_drain(bench, size.jobs)
    await _grow(bench, size.history // size.jobs)
    async with _snapshot(bench.house.dsn):
        first, _ = await drain(bench, "noop", size.jobs)
        second, _ = await drain(bench, "noop", size.jobs)
    row = f"{size.history:,} in the history"
    return [
        Figure(row, "drain of a fresh house", fresh, "/s"),
        Figure(row, "drain beside them and an old snapshot", first, "/s"),
        Figure(row, "of the fresh drain", first / fresh, "of it", "≥ 0.8"),
        Figure(row, "a second drain, of the fresh one", second / fresh, "of it", "≥ 0.8"),
    ]


async def fresh_drain(bench: Bench, number: int) -> float:
    """Return how many a second are drained while there is nothing else, in a house that has drained before."""
    await drain(bench, "noop", WARM_UP)
    await bench.forget()
    rate, _ = await drain(bench, "noop", number)
    return rate


async def _grow(bench: Bench, times: int) -> None:
    """Make the history so many times as long."""
    await bench.database.execute(PARTITIONS % (DAYS + 1))
    for i in range(1, times):
        await bench.database.execute(_AGAIN, i * timedelta(days=DAYS) / times, bench.since)
    await bench.database.execute("VACUUM ANALYZE onthedot.execution_history")


async def wait(bench: Bench, task_id: str, number: int) -> None:
    """Have jobs wait in a queue that is paused."""
    await bench.post("/queues/general/actions/pause", {})
    await bench.enqueue(task_id, number)
    await bench.ready()


async def drain(bench: Bench, task_id: str, number: int) -> tuple[float, tuple[float, float]]:
    """Return how many a second were drained, and µs of processor time a job, of workers and of PostgreSQL."""
    await wait(bench, task_id, number)
    before = bench.house.spent()
    await bench.post("/queues/general/actions/resume", {})
    await bench.settled()
    spent = bench.house.spent().since(before)
    per_job = (1e6 * spent.workers / number, 1e6 * spent.database / number)
    return await bench.rate(), per_job


async def _bare(bench: Bench, number: int) -> float:
    await bench.forget()
    await bench.enqueue("noop", number, queue="bare")
    await bench.ready()
    began = time.perf_counter()
    await asyncio.to_thread(raw.drain, bench.house.dsn, "bare", processes=WORKERS)
    took = time.perf_counter() - began
    statement = "SELECT extract(epoch FROM max(started_at) - min(started_at)) FROM onthedot.execution_history"
    return number / min(took, float(await bench.database.fetchval(statement)))


@asynccontextmanager
async def _snapshot(dsn: str) -> AsyncIterator[None]:
    """Keep a snapshot open: of what is updated or deleted from now on nothing can be vacuumed away."""
    connection = await connect(dsn, application_name="bench")
    await connection.execute("SET idle_in_transaction_session_timeout = 0")
    async with connection.transaction(isolation="repeatable_read"):
        await connection.execute("SELECT FROM onthedot.execution_history LIMIT 1")
        yield
    await connection.close()
