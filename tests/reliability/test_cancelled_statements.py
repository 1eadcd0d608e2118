"""Statements that are cancelled at random moments, some of them while the network is cut."""

import asyncio
import random
from contextlib import suppress

import asyncpg

from app.db.pools import open_pool
from tests.chaos.proxy import Proxy

STATEMENTS = 1000
CUT_EACH = 100
ANSWERED_EACH = 7
"""Of so many one is left to be answered, however slow the machine is."""
PATIENCE_SECONDS = 5.0
SIZE = 4
LOST = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError)


async def test_no_connection_and_no_task_is_left_over_and_no_answer_goes_astray(dsn: str) -> None:
    answered = 0
    with Proxy(dsn) as proxy:
        pool = await open_pool(proxy.dsn, size=SIZE, application_name="cancelled", on_demand=True)
        before = asyncio.all_tasks()

        async def ask(number: int) -> None:
            nonlocal answered
            async with pool.acquire() as connection, connection.transaction():
                for part in range(3):
                    assert await connection.fetchval("SELECT $1 + $2::int", number, part) == number + part
            answered += 1

        async def cancel(number: int) -> None:
            asking = asyncio.create_task(ask(number))
            may_take = random.uniform(0, 0.02) if number % ANSWERED_EACH else PATIENCE_SECONDS  # noqa: S311
            await asyncio.wait({asking}, timeout=may_take)
            if number % CUT_EACH == 0:
                await asyncio.to_thread(proxy.reset)
            asking.cancel()
            with suppress(asyncio.CancelledError, OSError, *LOST):
                await asking

        for first in range(0, STATEMENTS, SIZE):
            await asyncio.gather(*(cancel(number) for number in range(first, first + SIZE)))

        assert asyncio.all_tasks() == before
        assert answered, "the moments were such that nothing was ever answered"
        assert answered < STATEMENTS, "the moments were such that nothing was ever cancelled"
        connections = [await pool.acquire() for _ in range(SIZE)]
        assert await asyncio.gather(*(each.fetchval("SELECT 1") for each in connections)) == [1] * SIZE
        for each in connections:
            await pool.release(each)
        await pool.close()
