"""A row about many recurring jobs: how fast they are planned, and what that takes from claims."""

import asyncio
import time

from benchmarks.bench import PATIENCE_SECONDS, Bench, Figure, Size
from benchmarks.rows.drains import fresh_drain, wait

_JOBS = """
INSERT INTO onthedot.jobs (shard, job_id, user_id, task_id, schedule_type, expression, timezone, timezone_requested,
                           materialized_until, materialize_at)
SELECT onthedot.shard_of(id), id, (SELECT min(user_id) FROM onthedot.users), 'noop', 'RECURRING',
       n % 60 || ' * * * *', zone, zone, now(), now()
  FROM (SELECT n, gen_random_uuid() AS id,
               (ARRAY['UTC', 'America/Los_Angeles', 'Europe/Berlin', 'Asia/Kolkata'])[n % 4 + 1] AS zone
          FROM generate_series(1, $1::int) AS n) AS made
"""
"""Hourly jobs: within the horizon, an hour, each has one instant. They share 60 expressions and 4 zones."""
_DUE = "SELECT EXISTS (SELECT FROM onthedot.jobs WHERE materialize_at <= now())"
_WAITING = "SELECT EXISTS (SELECT FROM onthedot.executions WHERE batch_id IS NOT NULL)"
_PLANNED = """
SELECT count(*) / extract(epoch FROM max(made) - min(made))
  FROM (SELECT uuid_extract_timestamp(execution_id) AS made FROM onthedot.executions) AS planned
"""


async def recurring(bench: Bench, size: Size) -> list[Figure]:
    """Half of them are planned while nothing else happens, the other half beside a drain.

    What it leaves waits for up to an hour, so it is the last row of a house.
    """
    alone = await fresh_drain(bench, size.jobs)
    await bench.database.execute(_JOBS, size.recurring // 2)
    await _while_both(bench, _DUE)
    planned = float(await bench.database.fetchval(_PLANNED))
    beside = await _drain_beside(bench, size)
    row = f"{size.recurring:,} recurring jobs"
    return [
        Figure(row, "materialised", planned, "/s", "≥ 20,000"),
        Figure(row, "drain before there were any", alone, "/s"),
        Figure(row, "drain while half of them are materialised", beside, "/s"),
        Figure(row, "so much slower", alone / beside, "times", "≤ 1.5"),
    ]


async def _drain_beside(bench: Bench, size: Size) -> float:
    """Return how many a second are drained as long as there is something to plan."""
    await wait(bench, "noop", size.jobs)
    await bench.database.execute(_JOBS, size.recurring - size.recurring // 2)
    await bench.post("/queues/general/actions/resume", {})
    await _while_both(bench, _DUE, _WAITING)
    if not (rate := await bench.rate()):
        raise SystemExit("all was planned before anything was drained: ask for more by --recurring")
    return rate


async def _while_both(bench: Bench, *statements: str) -> None:
    """Wait until one of some questions is answered no."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while all([await bench.database.fetchval(statement) for statement in statements]):
        if time.monotonic() > deadline:
            raise SystemExit("recurring jobs were not planned in time")
        await asyncio.sleep(0.1)
