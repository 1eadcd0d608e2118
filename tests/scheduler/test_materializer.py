"""Occurrences become executions: once each, ahead of time, whatever happens to the materializer."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.pools import Pool
from app.db.stores.jobs import JobStore, Submission
from app.db.stores.schedules import ScheduleStore
from app.domain.access import Actor
from app.domain.jobs import JobRequest, plan_job
from app.domain.stored_schedule import schedule_columns
from app.scheduler.materializer import Materializer

TASK = """INSERT INTO onthedot.tasks (task_id, name, execution_handler, created_by, queue, priority, max_retries)
          VALUES ('t', 't', 'builtin:noop', 'u', 'bulk', 1, 7) ON CONFLICT DO NOTHING"""


OWNER = (
    "INSERT INTO onthedot.users (user_id, name, role) VALUES ('u', 'u', 'operator') ON CONFLICT DO NOTHING"
)


def materializer(pool: Pool, *, horizon_seconds: float = 3600) -> Materializer:
    return Materializer(
        schedules=ScheduleStore(pool), hints=HintSender(pool), horizon_seconds=horizon_seconds
    )


async def make_job(pool: Pool, clock: DatabaseClock, schedule: dict[str, Any], **request: Any) -> UUID:
    await pool.execute(TASK)
    await pool.execute(OWNER)
    revision = await pool.fetchval("SELECT revision FROM onthedot.tasks WHERE task_id = 't'")
    wanted, now = msgspec.convert({"task_id": "t", "schedule": schedule} | request, JobRequest), clock.now()
    job = plan_job(
        wanted,
        schedule=schedule_columns(wanted.schedule, now=now, aliases={}),
        user_id="u",
        task_revision=revision,
        now=now,
        unix_microseconds=clock.unix_microseconds(),
    )
    await JobStore(pool).create([Submission(jobs=[job], actor=Actor("user:ada"))])
    return job.job_id


async def backdate(pool: Pool, by: timedelta) -> None:
    """Let the watermark lie in the past, as after an outage of the materializer."""
    await pool.execute(
        "UPDATE onthedot.jobs SET materialized_until = materialized_until - $1::interval, materialize_at = now()",
        by,
    )


async def instants(pool: Pool) -> list[datetime]:
    return [row[0] for row in await pool.fetch("SELECT scheduled_time FROM onthedot.executions ORDER BY 1")]


async def test_creates_each_occurrence_once_with_what_the_claim_decides_by(
    pool: Pool, clock: DatabaseClock
) -> None:
    await make_job(pool, clock, {"type": "INTERVAL", "every": 600}, parameters={"n": 1}, priority=0)

    for _ in range(3):
        await pool.execute("UPDATE onthedot.jobs SET materialize_at = now()")
        await materializer(pool).tick()

    rows = await pool.fetch("SELECT * FROM onthedot.executions ORDER BY scheduled_time")
    assert len(rows) == 6
    assert {b["scheduled_time"] - a["scheduled_time"] for a, b in pairwise(rows)} == {timedelta(minutes=10)}
    row = rows[0]
    assert (row["queue"], row["priority"], row["max_attempts"]) == ("bulk", 0, 8)
    assert row["due_at"] == row["first_due_at"] == row["scheduled_time"]
    assert msgspec.json.decode(row["parameters"]) == {"n": 1}


async def test_any_number_of_materializers_create_each_occurrence_once(
    pool: Pool, clock: DatabaseClock
) -> None:
    for _ in range(40):
        await make_job(pool, clock, {"type": "RECURRING", "expression": "*/5 * * * *"})

    await asyncio.gather(*(materializer(pool).tick() for _ in range(5)))

    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions") == 40 * 12
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs WHERE materialize_at <= now()") == 0


async def test_plans_a_hundred_rows_ahead_at_most_and_looks_again_in_time(
    pool: Pool, clock: DatabaseClock
) -> None:
    await make_job(pool, clock, {"type": "INTERVAL", "every": 1})

    await materializer(pool).tick()

    assert len(await instants(pool)) == 100
    again = await pool.fetchval("SELECT extract(epoch FROM materialize_at - now()) FROM onthedot.jobs")
    assert 40 <= again <= 60


async def test_a_daily_job_is_looked_at_when_its_instant_comes_near(pool: Pool, clock: DatabaseClock) -> None:
    start = clock.now() + timedelta(days=3)
    await make_job(
        pool, clock, {"type": "RECURRING", "expression": "0 0 * * *", "starts_at": start.isoformat()}
    )

    await materializer(pool).tick()

    row = await pool.fetchrow("SELECT materialize_at, materialized_until FROM onthedot.jobs")
    assert row is not None
    assert await instants(pool) == []
    assert row["materialize_at"] > start - timedelta(hours=1)


async def test_a_schedule_that_has_ended_is_not_looked_at_again(pool: Pool, clock: DatabaseClock) -> None:
    end = clock.now() + timedelta(seconds=150)
    await make_job(pool, clock, {"type": "INTERVAL", "every": 60, "ends_at": end.isoformat()})

    await materializer(pool).tick()

    assert len(await instants(pool)) == 2
    assert await pool.fetchval("SELECT materialize_at FROM onthedot.jobs") is None


@pytest.mark.parametrize(
    ("misfire", "made_up", "disposition", "passed_over"),
    [("skip", 0, "skipped_misfire", 4), ("run_once", 0, "coalesced", 4), ("run_all", 4, None, 0)],
)
async def test_instants_missed_in_an_outage_follow_the_misfire_policy(
    pool: Pool, clock: DatabaseClock, misfire: str, made_up: int, disposition: str | None, passed_over: int
) -> None:
    # Five instants lie in the past: four beyond the grace of 60 s, one within it, which simply runs.
    anchor = clock.now() - timedelta(seconds=630)
    await make_job(
        pool, clock, {"type": "INTERVAL", "every": 120, "starts_at": anchor.isoformat(), "misfire": misfire}
    )
    await backdate(pool, timedelta(seconds=630))

    await materializer(pool, horizon_seconds=60).tick()

    late = await pool.fetch("SELECT * FROM onthedot.executions WHERE scheduled_time < now()")
    ledger = await pool.fetchrow("SELECT disposition, occurrences FROM onthedot.ledger_ranges")
    assert len(late) == made_up + 1
    assert all(row["due_at"] > row["scheduled_time"] == row["first_due_at"] for row in late)
    assert (tuple(ledger) if ledger else (None, 0)) == (disposition, passed_over)


async def test_run_once_makes_up_for_the_latest_missed_instant(pool: Pool, clock: DatabaseClock) -> None:
    anchor = clock.now() - timedelta(seconds=700)
    await make_job(pool, clock, {"type": "INTERVAL", "every": 120, "starts_at": anchor.isoformat()})
    await backdate(pool, timedelta(seconds=700))

    await materializer(pool, horizon_seconds=60).tick()

    [late] = await pool.fetch("SELECT scheduled_time FROM onthedot.executions WHERE scheduled_time < now()")
    assert late["scheduled_time"] == anchor + timedelta(seconds=600)
    assert await pool.fetchval("SELECT occurrences FROM onthedot.ledger_ranges") == 4


async def test_a_job_that_cannot_be_read_holds_up_nobody_and_loses_nothing(
    pool: Pool, clock: DatabaseClock
) -> None:
    broken = await make_job(pool, clock, {"type": "RECURRING", "expression": "* * * * *"})
    await make_job(pool, clock, {"type": "INTERVAL", "every": 600})
    await pool.execute("UPDATE onthedot.jobs SET timezone = 'Mars/Olympus' WHERE job_id = $1", broken)
    before = await pool.fetchval("SELECT materialized_until FROM onthedot.jobs WHERE job_id = $1", broken)

    await materializer(pool).tick()

    assert len(await instants(pool)) == 6
    row = await pool.fetchrow(
        "SELECT materialized_until, materialize_at > now() FROM onthedot.jobs WHERE job_id = $1", broken
    )
    assert row is not None
    assert tuple(row) == (before, True)
