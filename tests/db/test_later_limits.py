"""Limits that are set while executions wait and run already: from then on no more run than they say."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.pools import Pool
from app.db.stores.job_control import JobControl
from app.db.stores.limits import LIMIT_BEGUN
from app.db.stores.tasks import TaskStore
from app.domain.access import Actor, Principal, Role
from app.domain.job_changes import Change
from app.maintenance.limits import LimitKeeper
from tests.db.limit_bench import Bench, held
from tests.factories import make_executions, make_job, make_task
from tests.polling import eventually

ADA = Principal("ada", Role.ADMIN)
KEY: dict[str, Any] = {"concurrency_key": "tenant:{{parameters.tenant}}", "concurrency_limit": 2}
Setting = Callable[[Pool, AsyncEngine, UUID], Awaitable[None]]


@pytest.fixture
async def bench(pool: Pool) -> Bench:
    await make_task(pool)
    return Bench(pool)


async def of_job(pool: Pool, job_id: UUID, count: int, **columns: Any) -> list[UUID]:
    """Make executions of a job that have been due for a second."""
    row = {"job_id": job_id, "due_in_seconds": -1.0, "parameters": '{"tenant": "a"}'} | columns
    return await make_executions(pool, [row | {"run_key": str(i)} for i in range(count)])


async def _by_task(_pool: Pool, engine: AsyncEngine, _job_id: UUID) -> None:
    await TaskStore(engine).change("report", KEY, by=ADA, if_version=None)


async def _by_job(pool: Pool, _engine: AsyncEngine, job_id: UUID) -> None:
    control = JobControl(pool, horizon_seconds=600)
    await control.change(job_id, Change(KEY), if_version=None, actor=Actor("user:ada"))


async def _by_psql(pool: Pool, _engine: AsyncEngine, _job_id: UUID) -> None:
    await pool.execute(
        "UPDATE onthedot.tasks SET concurrency_key = $1, concurrency_limit = $2", *KEY.values()
    )
    await LimitKeeper(Bench(pool).limits).tick()


@pytest.mark.parametrize("set_key", [_by_task, _by_job, _by_psql])
@pytest.mark.parametrize("cpu_cores", [0.0, 0.5])
async def test_a_key_that_is_set_counts_what_runs_already(
    bench: Bench, pool: Pool, engine: AsyncEngine, set_key: Setting, cpu_cores: float
) -> None:
    """Without a limit before, and with another one."""
    await pool.execute("UPDATE onthedot.tasks SET cpu_cores = $1", cpu_cores)
    job_id = await make_job(
        pool, schedule_type="IMMEDIATE", every_seconds=None, materialize_at=None, parameters='{"tenant": "a"}'
    )
    await of_job(pool, job_id, 6, limited=cpu_cores > 0)
    begun = [
        claim for place in await bench.places("general") for claim in await bench.begin(place.shard, limit=3)
    ]
    begun += await bench.oldest(limit=3)
    assert len(begun) == 3

    await set_key(pool, engine, job_id)
    assert (await held(pool))["key:tenant:a"] == 3
    assert await bench.oldest() == []

    await bench.retry(begun[0])  # its next attempt comes under the key, as those that never began
    assert await bench.oldest() == []
    await bench.settle(begun[1:])
    await bench.limits.sweep()
    assert len(await bench.oldest()) == 2
    assert (await held(pool))["key:tenant:a"] == 2


@pytest.mark.parametrize("way", ["running", "retrying"])
async def test_overlap_that_is_set_counts_what_is_under_way(bench: Bench, pool: Pool, way: str) -> None:
    job_id = await make_job(pool, schedule_type="IMMEDIATE", every_seconds=None, materialize_at=None)
    await of_job(pool, job_id, 2)
    (begun,) = [
        claim for place in await bench.places("general") for claim in await bench.begin(place.shard, limit=1)
    ]
    if way == "retrying":
        await bench.retry(begun)
    control = JobControl(pool, horizon_seconds=600)
    await control.change(job_id, Change({"overlap": "queue"}), if_version=None, actor=Actor("user:ada"))

    assert await held(pool) == {f"job:{job_id}": 1}
    await bench.limits.sweep()
    claims = await bench.oldest()
    assert [claim.execution_id for claim in claims] == ([begun.execution_id] if way == "retrying" else [])
    await bench.settle(claims or [begun])
    await bench.limits.sweep()
    assert len(await bench.oldest()) == 1


async def test_a_key_that_is_taken_away_counts_nothing_any_more(
    bench: Bench, pool: Pool, engine: AsyncEngine
) -> None:
    job_id = await make_job(pool, parameters='{"tenant": "a"}')
    await TaskStore(engine).change("report", KEY, by=ADA, if_version=None)
    await of_job(pool, job_id, 3, limited=True, concurrency_key="tenant:a", concurrency_limit=2)
    begun = await bench.oldest()
    await TaskStore(engine).change("report", {"concurrency_key": None}, by=ADA, if_version=None)
    places = await bench.places("general")

    assert len(begun) == 2
    assert len([claim for place in places for claim in await bench.begin(place.shard, limit=5)]) == 1
    await bench.settle(begun)
    await bench.limits.sweep()
    assert await held(pool) == {}


async def test_what_is_left_of_a_user_who_was_deleted_comes_under_the_quota_of_the_next_one(
    bench: Bench, pool: Pool
) -> None:
    await make_executions(pool, [{"due_in_seconds": -1.0, "user_id": "eve"}] * 5)
    await pool.execute(
        "INSERT INTO onthedot.users (user_id, name, role, max_concurrent_jobs) VALUES ('eve', 'x', 'viewer', 2)"
    )
    await LimitKeeper(bench.limits).tick()
    places = await bench.places("general")

    assert [claim for place in places for claim in await bench.begin(place.shard, limit=5)] == []
    assert len(await bench.oldest()) == 2


async def test_what_has_begun_is_locked_in_the_order_in_which_ends_lock_it(bench: Bench, pool: Pool) -> None:
    del bench
    job_id = await make_job(pool)
    lock = "SELECT FROM onthedot.executions WHERE execution_id = $1 FOR UPDATE"
    first, second = sorted(await of_job(pool, job_id, 2, status="RUNNING"))

    async def waits() -> bool:
        found: bool = await pool.fetchval(
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            "                WHERE wait_event_type = 'Lock' AND datname = current_database())"
        )
        return found

    async with pool.acquire() as ending:
        async with ending.transaction():
            await ending.execute(lock, first)
            telling = asyncio.ensure_future(pool.execute(LIMIT_BEGUN, [second, first]))
            await eventually(waits)
            await ending.execute(f"{lock} NOWAIT", second)
        await telling
