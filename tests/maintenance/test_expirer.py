"""What has not begun by its start deadline never runs, whether or not anybody sweeps; a retry is no start."""

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.db.pools import Pool
from app.db.stores.executions import ExecutionStore
from app.db.stores.expiry import ExpiryStore
from app.db.stores.job_control import JobControl
from app.domain.access import Actor
from app.domain.hints import Ready
from app.domain.ids import shard_of
from app.domain.job_changes import Change, pause, resume
from app.domain.statuses import Status
from app.maintenance import expirer
from app.maintenance.expirer import Expirer
from app.worker.marks import START
from tests.factories import make_execution, make_executions, make_job, make_task, now_of

ADA = Actor("user:ada")
ONCE = {"schedule_type": "IMMEDIATE", "every_seconds": None, "starts_at": None, "materialize_at": None}


@pytest.fixture
def loop(pool: Pool) -> Expirer:
    """Return the loop under test."""
    return Expirer(expiries=ExpiryStore(pool))


async def waiting(pool: Pool, *, expires_in_seconds: float, **columns: Any) -> UUID:
    """Make an execution that has been due for a minute and has a deadline."""
    deadline = await now_of(pool) + timedelta(seconds=expires_in_seconds)
    return await make_execution(pool, **{"due_in_seconds": -60, "expires_at": deadline} | columns)


async def live(pool: Pool) -> set[UUID]:
    """Return what has not ended."""
    return {row[0] for row in await pool.fetch("SELECT execution_id FROM onthedot.executions")}


async def claimed(pool: Pool, execution_id: UUID) -> set[UUID]:
    """Return what each kind of claim takes where the execution is."""
    store, place = ExecutionStore(pool), Ready(shard_of(execution_id), "general", 2, START)
    lease = {"worker_id": uuid4(), "lease_seconds": 30.0}
    taken = await store.claim_due(place, limit=5, mark=START, **lease)  # type: ignore[arg-type]
    taken += await store.claim_ahead(place, limit=5, lookahead_seconds=60, **lease)  # type: ignore[arg-type]
    taken += await store.claim_suspect(place, **lease)  # type: ignore[arg-type]
    return {claim.execution_id for claim in taken}


async def job_row(pool: Pool, job_id: UUID) -> asyncpg.Record:
    """Return the live execution of a job."""
    row = await pool.fetchrow("SELECT * FROM onthedot.executions WHERE job_id = $1", job_id)
    assert row is not None
    return row


async def test_what_is_too_late_stands_in_the_history_and_the_ledger_as_expired(
    pool: Pool, loop: Expirer
) -> None:
    late = await waiting(pool, expires_in_seconds=-1, batch_id=uuid4())
    in_time = await waiting(pool, expires_in_seconds=60)
    without = await make_execution(pool, due_in_seconds=-3600)

    assert await loop.tick() is False

    row = await pool.fetchrow("SELECT * FROM onthedot.execution_history WHERE execution_id = $1", late)
    noted = await pool.fetchrow("SELECT * FROM audit.occurrences WHERE execution_id = $1", late)
    assert await live(pool) == {in_time, without}
    assert row is not None
    assert noted is not None
    assert (row["status"], row["disposition"], row["attempt_number"]) == ("SKIPPED", "expired", 0)
    assert row["batch_id"] is not None
    message = json.loads(row["error"])["message"]
    assert message.startswith("its first attempt had to begin within expires_after_seconds of its job, by 20")
    assert message.endswith("Z")
    assert (noted["disposition"], noted["cause"]) == ("expired", message)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"held": True},
        {"status": Status.BLOCKED},
        {"worker_deaths": 2},
        {"due_in_seconds": 1.0},
    ],
)
async def test_nobody_claims_what_is_too_late_before_it_is_swept(
    pool: Pool, loop: Expirer, columns: dict[str, Any]
) -> None:
    await make_task(pool)
    late = await waiting(pool, expires_in_seconds=-1, **columns)

    assert await claimed(pool, late) == set()
    await loop.tick()
    assert await live(pool) == set()


@pytest.mark.parametrize(
    "columns",
    [
        {"status": Status.RETRYING},
        {"status": Status.RETRYING, "worker_deaths": 2},
        {"status": Status.RETRYING, "due_in_seconds": 1.0},
    ],
)
async def test_a_retry_is_no_start(pool: Pool, loop: Expirer, columns: dict[str, Any]) -> None:
    await make_task(pool)
    again = await waiting(pool, expires_in_seconds=-1, **columns)

    await loop.tick()

    assert await claimed(pool, again) == {again}


@pytest.mark.parametrize("status", [Status.SCHEDULED, Status.RUNNING])
async def test_what_a_worker_holds_is_left_to_it(pool: Pool, loop: Expirer, status: Status) -> None:
    held = await waiting(pool, expires_in_seconds=-1, status=status)

    await loop.tick()

    assert await live(pool) == {held}


async def test_a_full_batch_asks_for_another_look(
    pool: Pool, loop: Expirer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expirer, "BATCH", 2)
    now = await now_of(pool)
    job_id = await make_job(pool)
    rows = [{"job_id": job_id, "due_in_seconds": -60 - i, "expires_at": now} for i in range(3)]
    await make_executions(pool, rows)

    assert await loop.tick() is True
    assert await loop.tick() is False
    assert await live(pool) == set()


async def test_any_number_of_expirers_end_each_once(pool: Pool) -> None:
    made = {await waiting(pool, expires_in_seconds=-1) for _ in range(30)}

    await asyncio.gather(*(Expirer(expiries=ExpiryStore(pool)).tick() for _ in range(4)))

    rows = await pool.fetch("SELECT execution_id FROM onthedot.execution_history")
    assert sorted(row[0] for row in rows) == sorted(made)


async def test_a_pause_moves_no_deadline(pool: Pool, loop: Expirer) -> None:
    """What is worth nothing after an hour is worth nothing then, paused or not."""
    await make_task(pool)
    jobs = JobControl(pool, horizon_seconds=600)
    job_id = await make_job(pool, **ONCE, expires_after_seconds=3600.0)
    now = await now_of(pool)
    await make_execution(pool, job_id=job_id, due_in_seconds=-60, expires_at=now + timedelta(hours=1))
    for change in (pause(reason=None, until=None), resume(), pause(reason=None, until=None)):
        await jobs.change(job_id, change, if_version=None, actor=ADA)

    row = await job_row(pool, job_id)
    assert row["expires_at"] == now + timedelta(hours=1)

    await pool.execute("UPDATE onthedot.executions SET expires_at = now()")
    await loop.tick()
    assert await live(pool) == set()


async def test_a_new_deadline_and_a_new_instant_move_it(pool: Pool) -> None:
    await make_task(pool)
    jobs = JobControl(pool, horizon_seconds=600)
    job_id = await make_job(pool, **ONCE)
    await make_execution(pool, job_id=job_id, due_in_seconds=-60)
    before = await job_row(pool, job_id)
    assert before["expires_at"] is None

    await jobs.change(job_id, Change({"expires_after_seconds": 90.5}), if_version=None, actor=ADA)
    assert (await job_row(pool, job_id))["expires_at"] == before["first_due_at"] + timedelta(seconds=90.5)

    later = before["first_due_at"] + timedelta(hours=5)
    moved = Change({"schedule_type": "ONCE", "scheduled_time": later})
    await jobs.change(job_id, moved, if_version=None, actor=ADA)
    assert (await job_row(pool, job_id))["expires_at"] == later + timedelta(seconds=90.5)

    await jobs.change(job_id, Change({"expires_after_seconds": None}), if_version=None, actor=ADA)
    assert (await job_row(pool, job_id))["expires_at"] is None
