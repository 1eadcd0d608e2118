"""The statements behind queues and stats, on few rows with a low limit: what they count, and over which time."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.db.clock import DatabaseClock
from app.db.pools import Pool
from app.db.queries import load
from app.domain.ids import uuid7
from tests.factories import finished_row, insert, make_execution, make_finished, now_of

MOST = 10


async def finish(pool: Pool, queue: str, *, every_seconds: float, count: int, **columns: Any) -> None:
    now = await now_of(pool)
    rows = [
        finished_row(now, ended_seconds_ago=every_seconds * (n + 0.5), queue=queue, **columns)
        for n in range(count)
    ]
    await insert(pool, "execution_history", rows)


async def measured(pool: Pool, *, window_seconds: float) -> dict[str | None, asyncpg.Record]:
    rows = await pool.fetch(load("queue_paces"), window_seconds, MOST)
    return {row["queue"]: row for row in rows}


async def test_a_quiet_queue_is_measured_over_the_window(pool: Pool) -> None:
    await finish(pool, "general", every_seconds=10, count=9)
    found = await measured(pool, window_seconds=60)

    assert (found["general"]["completed"], found["general"]["span_seconds"]) == (6, 60)
    assert (found[None]["completed"], found[None]["span_seconds"]) == (6, 60)


async def test_a_busy_queue_is_measured_over_its_newest_ends(pool: Pool) -> None:
    await finish(pool, "bulk", every_seconds=0.5, count=100)
    found = (await measured(pool, window_seconds=60))["bulk"]

    assert found["completed"] == MOST
    assert 4.5 < found["span_seconds"] < 30, "ten ends, half a second apart"


async def test_a_busy_queue_outweighs_no_quiet_one(pool: Pool) -> None:
    await finish(pool, "bulk", every_seconds=0.5, count=100, lateness_ms=1.0)
    await finish(pool, "critical", every_seconds=6, count=5, lateness_ms=1000.0)
    found = await measured(pool, window_seconds=60)

    assert found["critical"]["lateness_ms"] == [1000.0, 1000.0]
    assert found["bulk"]["lateness_ms"] == [1.0, 1.0]
    # Over the 4.75 s that bulk's newest ten took, one of eleven was critical; over all rows read, five of fifteen.
    assert found[None]["completed"] == MOST + 1
    assert found[None]["lateness_ms"][0] == 1.0
    assert found[None]["lateness_max_ms"] == 1000.0


async def test_failures_are_counted_apart_and_the_rest_is_neither(pool: Pool) -> None:
    for status in ("COMPLETED", "FAILED", "FAILED", "CANCELLED", "SKIPPED"):
        await make_finished(pool, status=status, ended_seconds_ago=1)
    found = (await measured(pool, window_seconds=60))["general"]

    assert (found["completed"], found["failed"]) == (1, 2)


async def test_stages_begin_where_the_one_before_ends(pool: Pool) -> None:
    now = await now_of(pool)
    due = now - timedelta(seconds=20)
    at = {
        name: due + timedelta(milliseconds=ms)
        for name, ms in (("claimed", 30), ("started", 50), ("ended", 90))
    }
    await make_finished(
        pool,
        queue="general",
        due_at=due,
        claimed_at=at["claimed"],
        started_at=at["started"],
        completed_at=at["ended"],
    )
    # Leased two seconds ahead of its instant, and fired 1 ms after it.
    await make_finished(
        pool,
        queue="critical",
        due_at=due,
        claimed_at=due - timedelta(seconds=2),
        started_at=due + timedelta(milliseconds=1),
        completed_at=at["ended"],
    )
    found = await measured(pool, window_seconds=60)
    stages = {
        queue: [found[queue][f"{stage}_ms"][0] for stage in ("claim", "start", "run")] for queue in found
    }

    assert stages["general"] == pytest.approx([30, 20, 40])
    assert stages["critical"] == pytest.approx([0, 1, 89])


async def test_nothing_is_measured_where_nothing_ended(pool: Pool) -> None:
    assert await measured(pool, window_seconds=60) == {}


async def created_since(pool: Pool, clock: DatabaseClock, *, seconds: float) -> tuple[int, UUID | None]:
    least = UUID(int=int((clock.unix_seconds() - seconds) * 1000) << 80)
    row = await pool.fetchrow(load("created_lately"), least, seconds, MOST)
    assert row is not None
    return row["created"], row["oldest_id"]


async def test_created_counts_live_and_ended_executions_by_their_ids(
    pool: Pool, clock: DatabaseClock
) -> None:
    await make_execution(pool)
    await make_finished(pool)
    old_job = uuid7(clock.unix_microseconds() - 120_000_000, last_byte=7)
    await make_execution(pool, job_id=old_job, execution_id=old_job)

    assert (await created_since(pool, clock, seconds=60))[0] == 2
    assert await created_since(pool, clock, seconds=180) == (3, old_job)


async def test_created_is_counted_to_a_limit_and_names_the_oldest_counted(
    pool: Pool, clock: DatabaseClock
) -> None:
    made = [await make_execution(pool) for _ in range(MOST + 3)]

    assert await created_since(pool, clock, seconds=60) == (MOST, sorted(made)[3])


async def test_depth_and_running_are_per_queue(pool: Pool) -> None:
    await make_execution(pool, queue="bulk", due_in_seconds=-5)
    await make_execution(pool, queue="general", status="RUNNING", worker_id=uuid4())
    found = {
        row["queue"]: (row["depth"], row["running"]) for row in await pool.fetch(load("queue_loads"), MOST)
    }

    assert found == {
        "critical": (0, 0),
        "transactional": (0, 0),
        "general": (0, 1),
        "bulk": (1, 0),
        "maintenance": (0, 0),
    }
