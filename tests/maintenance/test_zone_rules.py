"""A newer tzdata plans anew what was planned, and says what moved."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.db.notifier import HintSender
from app.db.pools import Pool
from app.db.stores.schedules import ScheduleStore
from app.db.stores.zone_rules import ZoneRulesStore
from app.domain.ids import SHARDS
from app.domain.statuses import Status
from app.domain.timezones import tzdata_version
from app.maintenance import zone_rules
from app.maintenance.zone_rules import ZoneRules
from app.scheduler.materializer import Materializer
from tests.factories import make_execution, make_job, make_task, now_of

HORIZON_SECONDS = 7200.0
OLD, NEW = "2000a", "2099z"
BERLIN: dict[str, Any] = {
    "schedule_type": "RECURRING", "expression": None, "timezone": "Europe/Berlin", "every_seconds": None,
    "starts_at": None,
}  # fmt: skip


def rules(pool: Pool, version: str = NEW) -> ZoneRules:
    """Return the loop under test, of a program that brings this version."""
    hints = HintSender(pool)
    materializer = Materializer(schedules=ScheduleStore(pool), hints=hints, horizon_seconds=HORIZON_SECONDS)
    return ZoneRules(ZoneRulesStore(pool), hints=hints, plan=materializer.plan, version=version)


async def run(loop: ZoneRules) -> int:
    """Tick until nothing is left; return how often that was."""
    ticks = 1
    while await loop.tick():
        ticks += 1
    return ticks


async def planned(pool: Pool, job_id: UUID) -> list[datetime]:
    """Return the instants that a job has planned."""
    rows = await pool.fetch(
        "SELECT scheduled_time FROM onthedot.executions WHERE job_id = $1 ORDER BY scheduled_time", job_id
    )
    return [row[0] for row in rows]


def each_half_hour(now: datetime) -> str:
    """Return an expression whose next instant is a quarter of an hour away: none comes while a test runs."""
    minute = (now.minute + 15) % 30
    return f"{minute},{minute + 30} * * * *"


async def shifted_job(pool: Pool, *, seconds: float = 600, **columns: Any) -> tuple[UUID, list[datetime]]:
    """Make a job that is planned as if its zone were some minutes off; return what it ought to have planned."""
    now = await now_of(pool)
    horizon = now + timedelta(seconds=HORIZON_SECONDS)
    times = {"expression": each_half_hour(now), "materialized_until": horizon, "materialize_at": horizon}
    job_id = await make_job(pool, **BERLIN | times | columns)
    first = (now + timedelta(minutes=15)).replace(second=0, microsecond=0)
    right = [first + n * timedelta(minutes=30) for n in range(4)]
    for instant in right:
        at = instant + timedelta(seconds=seconds)
        await make_execution(pool, job_id=job_id, scheduled_time=at, due_at=at, first_due_at=at)
    return job_id, right


@pytest.fixture(autouse=True)
async def task(pool: Pool) -> None:
    """Make the task of the jobs."""
    await make_task(pool)


async def test_what_is_planned_follows_the_new_rules_and_what_moved_is_told(pool: Pool) -> None:
    await ZoneRulesStore(pool).write_version(OLD)
    job_id, right = await shifted_job(pool)
    was = await planned(pool, job_id)
    await run(rules(pool))
    entry = await pool.fetchrow(
        "SELECT actor, reason, before ->> 'planned' AS gone, after ->> 'planned' AS new FROM onthedot.audit_log"
        " WHERE action = 'job.replan' AND target_id = $1",
        str(job_id),
    )

    assert await planned(pool, job_id) == right
    assert entry is not None
    assert (entry["actor"], entry["reason"]) == (
        "system:zone_rules",
        f"the rules of time zones changed: {NEW}",
    )
    assert msgspec.json.decode(entry["gone"], type=list[datetime]) == was
    assert msgspec.json.decode(entry["new"], type=list[datetime]) == right
    assert await ZoneRulesStore(pool).version() == NEW


async def test_what_stays_as_it_was_is_not_told(pool: Pool) -> None:
    await ZoneRulesStore(pool).write_version(OLD)
    job_id, right = await shifted_job(pool, seconds=0)
    await run(rules(pool))

    assert await planned(pool, job_id) == right
    assert await pool.fetchval("SELECT count(*) FROM onthedot.audit_log WHERE action = 'job.replan'") == 0


async def test_what_has_begun_is_left_alone_and_comes_no_second_time(pool: Pool) -> None:
    await ZoneRulesStore(pool).write_version(OLD)
    job_id, right = await shifted_job(pool)
    begun = right[0] + timedelta(seconds=600)
    await pool.execute(
        "UPDATE onthedot.executions SET status = 'RUNNING', attempt_number = 1, lease_epoch = 1, claimed_at = now(),"
        " worker_id = gen_random_uuid(), lease_expires_at = now() + interval '1 min' WHERE scheduled_time = $1",
        begun,
    )
    await run(rules(pool))

    assert await planned(pool, job_id) == [begun, *right[1:]]


async def test_what_is_due_or_missed_is_not_passed_over(pool: Pool) -> None:
    await ZoneRulesStore(pool).write_version(OLD)
    now = await now_of(pool)
    behind = now - timedelta(hours=3)
    times = {"expression": each_half_hour(now), "materialized_until": behind, "materialize_at": now}
    job_id = await make_job(pool, **BERLIN | times | {"misfire": "run_all"})
    due = await make_execution(pool, job_id=job_id, due_in_seconds=-1, scheduled_time=behind)
    await run(rules(pool))
    instants = await planned(pool, job_id)

    assert (
        await pool.fetchval("SELECT status FROM onthedot.executions WHERE execution_id = $1", due)
        == Status.PENDING
    )
    assert len([one for one in instants if behind < one <= now]) == 6


async def test_pauses_other_kinds_and_utc_are_none_of_its_business(pool: Pool) -> None:
    await ZoneRulesStore(pool).write_version(OLD)
    others = [
        {"timezone": "UTC"},
        {"is_active": False, "materialize_at": None},
        {
            "schedule_type": "INTERVAL",
            "expression": None,
            "every_seconds": 1800.0,
            "starts_at": await now_of(pool),
        },
    ]
    made = [(await shifted_job(pool, **columns))[0] for columns in others]
    before = [await planned(pool, job_id) for job_id in made]
    await run(rules(pool))

    assert [await planned(pool, job_id) for job_id in made] == before


async def test_a_version_is_never_taken_back(pool: Pool) -> None:
    await ZoneRulesStore(pool).write_version(NEW)
    job_id, _ = await shifted_job(pool)
    before = await planned(pool, job_id)

    assert await run(rules(pool, "2050a")) == 1
    await ZoneRulesStore(pool).write_version("2050a")
    assert await planned(pool, job_id) == before
    assert await ZoneRulesStore(pool).version() == NEW


async def test_a_new_database_gets_the_version_of_the_program(pool: Pool) -> None:
    assert await run(rules(pool, tzdata_version())) == 1
    assert await ZoneRulesStore(pool).version() == tzdata_version()


async def test_many_jobs_are_planned_in_batches(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_rules, "BATCH", 2)
    await ZoneRulesStore(pool).write_version(OLD)
    made = [await shifted_job(pool) for _ in range(12)]
    ticks = await run(rules(pool))

    assert [await planned(pool, job_id) for job_id, _ in made] == [right for _, right in made]
    assert ticks > len(SHARDS) + 1
