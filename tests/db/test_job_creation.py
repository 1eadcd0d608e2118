"""Keeping jobs from being created for a moment, by whatever means."""

import asyncio

import pytest
from asyncpg.exceptions import NoDataFoundError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.job_creation import without_new_jobs
from app.db.pools import Pool
from app.domain.access import Principal, Role
from tests.factories import make_task
from tests.polling import eventually

ADA = Principal("ada", Role.ADMIN, request_id="r1", client="curl/8 10.0.0.1")
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'onthedot.jobs'::regclass"


async def test_who_enqueues_a_job_waits_and_finds_its_task_gone(pool: Pool, engine: AsyncEngine) -> None:
    await make_task(pool)

    async def waits() -> bool:
        return bool(await pool.fetchval(WAITING))

    async with without_new_jobs(engine, ADA) as connection:
        creating = asyncio.create_task(pool.execute("SELECT onthedot.enqueue('report')"))
        await eventually(waits)
        await connection.exec_driver_sql("DELETE FROM onthedot.tasks")
        assert not creating.done()

    with pytest.raises(NoDataFoundError):
        await creating
    rows = await pool.fetch(
        "SELECT actor, request_id, client FROM audit.changes WHERE action = 'task.delete'"
    )
    assert [tuple(row) for row in rows] == [("user:ada", "r1", "curl/8 10.0.0.1")]


async def test_what_fails_within_it_has_not_happened(pool: Pool, engine: AsyncEngine) -> None:
    await make_task(pool)

    async def fail() -> None:
        async with without_new_jobs(engine, ADA) as connection:
            await connection.exec_driver_sql("DELETE FROM onthedot.tasks")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await pool.fetchval("SELECT onthedot.enqueue('report')")


async def test_vacuum_of_a_partition_is_not_in_the_way(pool: Pool, engine: AsyncEngine) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("LOCK TABLE onthedot.jobs_p00 IN SHARE UPDATE EXCLUSIVE MODE")  # as it does
        async with without_new_jobs(engine, ADA) as deleting:
            assert await deleting.exec_driver_sql("SELECT 1")
