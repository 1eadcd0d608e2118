"""The reaper frees what has lapsed, and after an outage waits for those who come back and blames nobody."""

import time
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.pools import Pool, open_pool
from app.db.stores.executions import ExecutionStore
from app.db.stores.limits import LimitStore
from app.maintenance.reaper import Reaper
from tests.factories import make_execution, make_task
from tests.polling import eventually

LEASE_SECONDS = 0.4


def reaper(pool: Pool, clock: DatabaseClock) -> Reaper:
    """Return the loop under test."""
    return Reaper(
        executions=ExecutionStore(pool),
        limits=LimitStore(pool),
        hints=HintSender(pool),
        clock=clock,
        lease_seconds=LEASE_SECONDS,
    )


async def deaths(pool: Pool) -> int | None:
    """Return how many deaths the one execution counts once it has been freed."""
    row = await pool.fetchrow("SELECT status, worker_deaths FROM onthedot.executions")
    return row["worker_deaths"] if row and row["status"] == "RETRYING" else None


def once_passed(seconds: float) -> Callable[[], Awaitable[bool]]:
    """Return a probe that is true once so much time has passed."""
    until = time.monotonic() + seconds

    async def probe() -> bool:
        return time.monotonic() > until

    return probe


async def test_what_has_lapsed_is_freed_and_counts_a_death(pool: Pool, clock: DatabaseClock) -> None:
    await make_task(pool)
    await make_execution(pool, status="RUNNING", lease_ends_in_seconds=-1)
    await reaper(pool, clock).tick()

    assert await deaths(pool) == 1


async def test_after_an_outage_it_waits_one_lease_and_blames_nobody(pool: Pool, clock: DatabaseClock) -> None:
    await make_task(pool)
    loop = reaper(pool, clock)
    await loop.tick()
    await make_execution(pool, status="RUNNING", lease_ends_in_seconds=-0.01)
    await eventually(once_passed(LEASE_SECONDS))  # it did not tick: everything was away
    await loop.tick()
    back_at = time.monotonic()
    assert await deaths(pool) is None

    async def freed() -> bool:
        await loop.tick()
        return await deaths(pool) is not None

    await eventually(freed)
    assert await deaths(pool) == 0
    assert time.monotonic() - back_at >= LEASE_SECONDS


async def test_looks_that_fail_are_part_of_the_outage(pool: Pool, dsn: str, clock: DatabaseClock) -> None:
    """However often it tries while the database is away: it is not back because somebody has asked for it."""
    await make_task(pool)
    async with await open_pool(dsn, size=1, application_name="reaper") as own:
        await own.execute("SET lock_timeout = '20ms'")
        loop = reaper(own, clock)
        await loop.tick()
        async with pool.acquire() as away, away.transaction():
            await away.execute("LOCK TABLE onthedot.executions IN ACCESS EXCLUSIVE MODE")
            passed = once_passed(LEASE_SECONDS)
            while not await passed():
                with pytest.raises(asyncpg.LockNotAvailableError):
                    await loop.tick()
        await make_execution(pool, status="RUNNING", lease_ends_in_seconds=-0.01)
        await loop.tick()

    assert await deaths(pool) is None


async def test_who_dies_after_an_outage_is_counted_again(pool: Pool, clock: DatabaseClock) -> None:
    await make_task(pool)
    loop = reaper(pool, clock)
    await loop.tick()
    await eventually(once_passed(LEASE_SECONDS))
    await loop.tick()
    await make_execution(pool, status="RUNNING", lease_ends_in_seconds=0.05)

    async def freed() -> bool:
        await loop.tick()
        return await deaths(pool) is not None

    await eventually(freed)
    assert await deaths(pool) == 1
