"""How a process finds its database."""

import asyncio

import pytest

from app.db.pools import Pool, open_pool
from app.process import connected
from app.startup import CannotStart


class Away:
    """A database that is down for the first `tries` connections."""

    def __init__(self, pool: Pool, *, tries: int) -> None:
        self.pool = pool
        self.tries = tries

    async def connect(self) -> Pool:
        """Connect."""
        self.tries -= 1
        if self.tries >= 0:
            raise ConnectionRefusedError(111, "Connection refused")
        return self.pool


async def test_who_has_a_supervisor_waits_for_the_database(pool: Pool) -> None:
    away = Away(pool, tries=2)

    assert await connected(away.connect, asyncio.Event(), is_patient=True) is pool
    assert away.tries == -1


async def test_who_was_started_by_hand_says_at_once_that_it_cannot(pool: Pool) -> None:
    with pytest.raises(CannotStart, match="Connection refused"):
        await connected(Away(pool, tries=1).connect, asyncio.Event(), is_patient=False)


async def test_waiting_ends_when_the_process_is_to_stop(pool: Pool) -> None:
    stop = asyncio.Event()
    waiting = asyncio.create_task(connected(Away(pool, tries=1000).connect, stop, is_patient=True))
    await asyncio.sleep(0)
    stop.set()

    async with asyncio.timeout(10):
        with pytest.raises(CannotStart):
            await waiting


async def test_a_password_that_is_wrong_does_not_pass_by_waiting(dsn: str) -> None:
    wrong = dsn.replace("onthedot:", "onthedot:not-", 1)

    async def connect() -> Pool:
        return await open_pool(wrong, size=1, application_name="test")

    with pytest.raises(CannotStart):
        await connected(connect, asyncio.Event(), is_patient=True)
