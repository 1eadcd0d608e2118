"""What ended is counted once, a moment later, whoever counts and however often."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.db.pools import Pool
from app.db.queries import load
from app.db.stores.retention import RetentionStore
from app.db.stores.rollups import RollupStore
from app.maintenance.rollups import BEHIND_SECONDS, GAP_SECONDS, Rollups
from tests.db.test_query_plans import _explain, _nodes
from tests.factories import finished_row, insert, make_execution, make_finished, now_of


@pytest.fixture
def rollups(pool: Pool) -> Rollups:
    """Return what counts."""
    return Rollups(RollupStore(pool))


async def test_what_ended_is_counted_by_minute_and_quarter_queue_task_and_status(
    pool: Pool, rollups: Rollups
) -> None:
    at = await _begin(pool, minutes_ago=30)
    kinds: list[dict[str, Any]] = [
        {"lateness_ms": 10.0},
        {"lateness_ms": 30.0},
        {"lateness_ms": 5000.0, "disposition": "late"},
        {"status": "FAILED"},
        {"queue": "bulk"},
        {"task_id": "another"},
        {"status": "SKIPPED"},
    ]
    for columns in kinds:
        await _end(pool, at + timedelta(seconds=61), **columns)
    await _end(pool, at + timedelta(minutes=2))
    await _count_all(rollups)
    found = await pool.fetch(
        "SELECT grain_seconds, bucket, queue, task_id, status, executions, late, lateness_ms_sum, lateness_ms_max,"
        " run_ms_sum FROM onthedot.rollups ORDER BY 1, 2, 3, 4, 5"
    )
    minute, quarter = at + timedelta(minutes=1), at

    assert [tuple(row) for row in found] == [
        (60, minute, "bulk", "report", "COMPLETED", 1, 0, 0, None, 1000),
        (60, minute, "general", "another", "COMPLETED", 1, 0, 0, None, 1000),
        (60, minute, "general", "report", "COMPLETED", 3, 1, 5040, 5000, 3000),
        (60, minute, "general", "report", "FAILED", 1, 0, 0, None, 1000),
        (60, minute, "general", "report", "SKIPPED", 1, 0, 0, None, 0),
        (60, minute + timedelta(minutes=1), "general", "report", "COMPLETED", 1, 0, 0, None, 1000),
        (900, quarter, "bulk", "report", "COMPLETED", 1, 0, 0, None, 1000),
        (900, quarter, "general", "another", "COMPLETED", 1, 0, 0, None, 1000),
        (900, quarter, "general", "report", "COMPLETED", 4, 1, 5040, 5000, 4000),
        (900, quarter, "general", "report", "FAILED", 1, 0, 0, None, 1000),
        (900, quarter, "general", "report", "SKIPPED", 1, 0, 0, None, 0),
    ]


async def test_each_is_counted_once_by_whoever_counts(pool: Pool) -> None:
    at = await _begin(pool, minutes_ago=45)
    now = await now_of(pool)
    await insert(
        pool, "execution_history", [finished_row(now, ended_seconds_ago=20 + i / 2) for i in range(3000)]
    )
    counters = [Rollups(RollupStore(pool)) for _ in range(4)]
    await asyncio.gather(*(_count_all(one) for one in counters))
    await _count_all(counters[0])
    per_grain = await pool.fetch(
        "SELECT grain_seconds, sum(executions)::int FROM onthedot.rollups WHERE bucket >= $1 GROUP BY 1 ORDER BY 1",
        at,
    )

    assert [tuple(row) for row in per_grain] == [(60, 3000), (900, 3000)]


async def test_what_ended_just_now_waits_for_those_that_are_being_written(
    pool: Pool, rollups: Rollups
) -> None:
    await _begin(pool, minutes_ago=1)
    await make_finished(pool, ended_seconds_ago=BEHIND_SECONDS - 5)
    await make_finished(pool, ended_seconds_ago=BEHIND_SECONDS + 1)
    await _count_all(rollups)

    assert await _counted(pool) == 1


async def test_what_has_not_ended_is_not_counted(pool: Pool, rollups: Rollups) -> None:
    await _begin(pool, minutes_ago=1)
    await make_execution(pool, due_in_seconds=-40)
    await _count_all(rollups)

    assert await _counted(pool) == 0


async def test_long_spans_are_counted_piece_by_piece(pool: Pool, rollups: Rollups) -> None:
    await _begin(pool, minutes_ago=30)
    first = await rollups.tick()
    until = await pool.fetchval("SELECT rolled_until < now() - interval '28 min' FROM onthedot.rollup_state")
    await _count_all(rollups)
    caught_up = await pool.fetchval(
        "SELECT rolled_until > now() - interval '20 s' FROM onthedot.rollup_state"
    )

    assert (first, until, caught_up, await rollups.tick()) == (True, True, True, False)


async def test_the_day_is_not_read_again_for_the_last_seconds_of_it(pool: Pool) -> None:
    """Also where the day is so young that nobody knows yet how much is in it."""
    now = await now_of(pool)
    rows = (finished_row(now, ended_seconds_ago=60 + i / 20, queue="general") for i in range(4000))
    await insert(pool, "execution_history", rows)
    await pool.execute("UPDATE onthedot.rollup_state SET rolled_until = $1", now - timedelta(seconds=62))
    plan = await _explain(pool, load("roll_up"), (60.0, BEHIND_SECONDS), analyze=True)
    read = [
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in _nodes(plan)
        if node.get("Relation Name", "").startswith("execution_history")
    ]

    assert sum(read) == 41
    assert await _counted(pool) == 41


async def test_after_a_gap_of_its_own_it_lets_those_that_come_back_write_first(pool: Pool) -> None:
    await _begin(pool, minutes_ago=1)
    await make_finished(pool, ended_seconds_ago=30)
    times = iter([0.0, GAP_SECONDS + 1, GAP_SECONDS + 2, GAP_SECONDS + 2 + BEHIND_SECONDS])
    rollups = Rollups(RollupStore(pool), lambda: next(times))
    await pool.execute("UPDATE onthedot.rollup_state SET rolled_until = now() - interval '10 s'")
    await rollups.tick()
    await pool.execute("UPDATE onthedot.rollup_state SET rolled_until = now() - interval '60 s'")
    waited = [(await rollups.tick(), await _counted(pool)) for _ in range(2)]
    await rollups.tick()

    assert waited == [(False, 0), (False, 0)]
    assert await _counted(pool) == 1


async def test_counts_that_nobody_looks_at_go(pool: Pool) -> None:
    rows = [(60, 23), (60, 25), (900, 25), (900, 24 * 29), (900, 24 * 31)]
    for grain, hours in rows:
        await pool.execute(
            "INSERT INTO onthedot.rollups"
            " VALUES ($1, now() - make_interval(hours => $2), 'q', 't', 'FAILED', 1, 0, 0, NULL, 0)",
            grain,
            hours,
        )
    deleted = await RetentionStore(pool, days=30).expire_rollups()
    left = await pool.fetch("SELECT grain_seconds FROM onthedot.rollups ORDER BY 1, bucket DESC")

    assert (deleted, [row[0] for row in left]) == (2, [60, 900, 900])


async def _begin(pool: Pool, *, minutes_ago: int) -> datetime:
    """Count from a full quarter of an hour on, at least so long ago; return it."""
    begin: datetime = await pool.fetchval(
        "UPDATE onthedot.rollup_state SET rolled_until ="
        " date_bin('15 min', now() - make_interval(mins => $1), '2000-01-01Z') RETURNING rolled_until",
        minutes_ago,
    )
    return begin


async def _end(pool: Pool, at: datetime, **columns: Any) -> None:
    row = finished_row(at, **columns)
    await insert(pool, "execution_history", [row])


async def _count_all(rollups: Rollups) -> None:
    while await rollups.tick():
        pass


async def _counted(pool: Pool) -> int:
    count: int = await pool.fetchval(
        "SELECT coalesce(sum(executions), 0)::int FROM onthedot.rollups WHERE grain_seconds = 60"
    )
    return count
