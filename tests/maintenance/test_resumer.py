"""Jobs and queues whose pause has an end resume by themselves, once, and lose no instant."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.db.notifier import HintSender
from app.db.pools import Pool
from app.db.stores.job_control import JobControl
from app.db.stores.pauses import PauseStore
from app.db.stores.schedules import ScheduleStore
from app.domain.access import Actor
from app.domain.job_changes import Change, pause
from app.maintenance import resumer
from app.maintenance.resumer import Resumer
from app.scheduler.materializer import Materializer
from tests.factories import make_execution, make_job, make_task, now_of

HORIZON_SECONDS = 600.0
ONCE = {"schedule_type": "IMMEDIATE", "every_seconds": None, "starts_at": None}


@pytest.fixture
async def loop(pool: Pool) -> Resumer:
    """Return the loop under test."""
    jobs = JobControl(pool, horizon_seconds=HORIZON_SECONDS)
    return Resumer(pauses=PauseStore(pool), jobs=jobs, hints=HintSender(pool))


async def paused(pool: Pool, *, until_seconds: float | None, **columns: Any) -> UUID:
    """Make a job that has been paused for ten minutes and a half; by default it would run each minute."""
    now = await now_of(pool)
    since = now - timedelta(minutes=10, seconds=30)
    until = None if until_seconds is None else now + timedelta(seconds=until_seconds)
    pause_columns = {"is_active": False, "paused_until": until, "pause_reason": "freeze"}
    schedule = {"starts_at": since, "materialized_until": since, "materialize_at": None}
    return await make_job(pool, **(schedule | pause_columns | columns))


async def job(pool: Pool, job_id: UUID) -> asyncpg.Record:
    """Return a job."""
    row = await pool.fetchrow("SELECT * FROM onthedot.jobs WHERE job_id = $1", job_id)
    assert row is not None
    return row


async def dispositions(pool: Pool, job_id: UUID, *, until: datetime) -> dict[str, int]:
    """Return what became of a job's instants up to one."""
    rows = await pool.fetch(
        "SELECT disposition, sum(occurrences)::int AS n FROM audit.occurrences WHERE job_id = $1 AND last_time <= $2"
        " GROUP BY disposition",
        job_id,
        until,
    )
    return {row["disposition"]: row["n"] for row in rows}


async def test_a_job_resumes_when_its_pause_is_over_and_no_sooner(pool: Pool, loop: Resumer) -> None:
    await make_task(pool)
    over = await paused(pool, until_seconds=-0.1)
    later = await paused(pool, until_seconds=3600)
    open_end = await paused(pool, until_seconds=None)

    assert not await loop.tick()

    resumed = await job(pool, over)
    assert (resumed["is_active"], resumed["paused_until"], resumed["pause_reason"]) == (True, None, None)
    assert resumed["materialize_at"] is not None
    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions WHERE job_id = $1", over) == 10
    for job_id in (later, open_end):
        assert not (await job(pool, job_id))["is_active"]
    log = await pool.fetch("SELECT actor FROM audit.changes WHERE action = 'job.update'")
    assert [row["actor"] for row in log] == ["system:resumer"]


@pytest.mark.parametrize("misfire", ["skip", "run_once", "run_all"])
async def test_a_pause_whose_end_is_noticed_late_ended_when_it_should(
    pool: Pool, loop: Resumer, misfire: str
) -> None:
    """Of ten instants five fell into the pause; the others are late, as if the scheduler had been away."""
    await make_task(pool)
    job_id = await paused(pool, until_seconds=-290, misfire=misfire, misfire_grace_seconds=60.0)

    await loop.tick()

    until = await now_of(pool)
    late = {"skip": {"skipped_misfire": 4, "pending": 1}, "run_once": {"coalesced": 4, "pending": 1}}
    assert await dispositions(pool, job_id, until=until) == {"paused": 5} | late.get(misfire, {"pending": 5})


async def test_a_pause_that_is_prolonged_loses_no_instant(pool: Pool, loop: Resumer) -> None:
    await make_task(pool)
    job_id = await paused(pool, until_seconds=-290)
    control = JobControl(pool, horizon_seconds=HORIZON_SECONDS)
    later = pause(reason="freeze", until=await now_of(pool) + timedelta(hours=1))
    await control.change(job_id, later, if_version=None, actor=Actor("user:ada"))
    await control.change(job_id, Change({"priority": 0}), if_version=None, actor=Actor("user:ada"))

    await loop.tick()

    assert not (await job(pool, job_id))["is_active"]
    assert await dispositions(pool, job_id, until=await now_of(pool)) == {"paused": 10}


async def test_a_held_execution_runs_when_the_pause_of_its_job_is_over(pool: Pool, loop: Resumer) -> None:
    await make_task(pool)
    job_id = await paused(pool, until_seconds=-0.1, **ONCE)
    await make_execution(pool, job_id=job_id, held=True, due_in_seconds=-60)
    now = await now_of(pool)

    await loop.tick()

    execution = await pool.fetchrow("SELECT * FROM onthedot.executions WHERE job_id = $1", job_id)
    assert execution is not None
    assert not execution["held"]
    assert execution["first_due_at"] == execution["due_at"] >= now


async def test_what_somebody_has_changed_meanwhile_is_left_to_them(pool: Pool, loop: Resumer) -> None:
    """The pause is prolonged after it was found to be over."""
    await make_task(pool)
    job_id = await paused(pool, until_seconds=-0.1)
    [found] = await PauseStore(pool).lapsed(limit=10)
    later = pause(reason=None, until=await now_of(pool) + timedelta(hours=1))
    control = JobControl(pool, horizon_seconds=HORIZON_SECONDS)
    await control.change(job_id, later, if_version=None, actor=Actor("user:ada"))

    assert not await loop._resume(found)
    assert not (await job(pool, job_id))["is_active"]
    await control.delete(job_id, error="{}", actor=Actor("user:ada"))
    assert not await loop._resume(found)


async def test_many_resumers_resume_each_job_once(
    pool: Pool, loop: Resumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumer, "BATCH", 5)
    await make_task(pool)
    jobs = [await paused(pool, until_seconds=-1) for _ in range(12)]

    async def run() -> None:
        while await loop.tick():
            pass

    await asyncio.gather(*(run() for _ in range(3)))
    while await PauseStore(pool).lapsed(limit=1):
        await loop.tick()

    rows = await pool.fetch("SELECT version FROM onthedot.jobs WHERE job_id = ANY ($1::uuid[])", jobs)
    assert [row["version"] for row in rows] == [2] * len(jobs)
    assert await pool.fetchval("SELECT count(*) FROM audit.changes WHERE action = 'job.update'") == len(jobs)


async def test_one_job_that_cannot_be_resumed_stops_no_other(pool: Pool, loop: Resumer) -> None:
    await make_task(pool)
    broken = await paused(
        pool,
        until_seconds=-10,
        schedule_type="RECURRING",
        every_seconds=None,
        expression="no cron",
        starts_at=None,
    )
    whole = await paused(pool, until_seconds=-1)

    assert not await loop.tick()

    assert not (await job(pool, broken))["is_active"]
    assert (await job(pool, whole))["is_active"]


async def test_a_queue_resumes_when_its_pause_is_over_and_no_sooner(pool: Pool, loop: Resumer) -> None:
    await pool.execute(
        "UPDATE onthedot.queues SET paused_at = now(), paused_by = 'ada', paused_reason = 'freeze', paused_until ="
        " CASE queue WHEN 'bulk' THEN now() - interval '1 s' WHEN 'critical' THEN now() + interval '1 hour' END"
        " WHERE queue IN ('bulk', 'critical', 'general')"
    )

    await loop.tick()

    rows = await pool.fetch("SELECT * FROM onthedot.queues ORDER BY queue")
    assert [row["queue"] for row in rows if row["paused_at"]] == ["critical", "general"]
    [bulk] = [row for row in rows if row["queue"] == "bulk"]
    assert [bulk[name] for name in ("paused_by", "paused_reason", "paused_until")] == [None] * 3
    assert bulk["version"] == 2
    last = "SELECT actor, target_id FROM audit.changes ORDER BY audit_id DESC LIMIT 1"
    assert tuple(await pool.fetchrow(last) or ()) == ("system:resumer", "bulk")


async def test_the_materializer_goes_on_where_the_resumer_left_off(pool: Pool, loop: Resumer) -> None:
    await make_task(pool)
    job_id = await paused(pool, until_seconds=-0.1)
    await loop.tick()
    before = await pool.fetch("SELECT scheduled_time FROM onthedot.executions ORDER BY 1")
    await pool.execute("UPDATE onthedot.jobs SET materialize_at = now() WHERE job_id = $1", job_id)

    store, hints = ScheduleStore(pool), HintSender(pool)
    materializer = Materializer(schedules=store, hints=hints, horizon_seconds=2 * HORIZON_SECONDS)
    await materializer.tick()

    after = await pool.fetch("SELECT scheduled_time FROM onthedot.executions ORDER BY 1")
    assert after[: len(before)] == before
    gaps = {later[0] - sooner[0] for sooner, later in pairwise(after)}
    assert (len(after), gaps) == (20, {timedelta(minutes=1)})
