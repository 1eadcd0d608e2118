"""The proxy by itself: what it breaks is broken for the client, and only that."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from app.db.pools import Connection, connect
from tests.chaos.proxy import Proxy

INSERT = "-- fill: a statement with a header\nINSERT INTO filled VALUES ($1) RETURNING 1"
BREAKS = (OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)


@pytest.fixture
def proxy(dsn: str) -> Iterator[Proxy]:
    with Proxy(dsn) as made:
        yield made


@pytest.fixture
async def near(dsn: str) -> AsyncIterator[Connection]:
    """Return a connection that does not go through the proxy."""
    connection = await connect(dsn, application_name="near")
    await connection.execute("CREATE TABLE filled (number int)")
    yield connection
    await connection.close()


@pytest.fixture
async def far(proxy: Proxy, near: Connection) -> AsyncIterator[Connection]:
    """Return a connection that does."""
    assert near
    connection = await connect(proxy.dsn, application_name="far")
    yield connection
    connection.terminate()


async def filled(near: Connection) -> int:
    """Return how many rows were committed."""
    return int(await near.fetchval("SELECT count(*) FROM filled"))


async def test_what_goes_through_is_not_changed(far: Connection) -> None:
    large = "x" * 300_000
    assert await far.fetchval("SELECT $1::text", large) == large


@pytest.mark.parametrize(("what", "rows"), [("reply", 1), ("request", 0)])
async def test_a_statement_of_its_own_is_done_or_not_and_nobody_is_told(
    proxy: Proxy, near: Connection, far: Connection, what: str, rows: int
) -> None:
    await far.fetch("SELECT 1")
    loss = proxy.lose("-- fill:", what)

    with pytest.raises(BREAKS):
        await far.fetch(INSERT, 1)

    assert loss.done.is_set()
    assert await filled(near) == rows


async def test_of_a_transaction_the_reply_to_its_commit_is_lost(
    proxy: Proxy, near: Connection, far: Connection
) -> None:
    proxy.lose("-- fill:", "reply")

    await far.execute("BEGIN")
    assert await far.fetchval(INSERT, 1) == 1
    assert await far.fetchval("SELECT 2") == 2
    with pytest.raises(BREAKS):
        await far.execute("COMMIT")

    assert await filled(near) == 1


@pytest.mark.parametrize(("way", "rows"), [("up", 0), ("down", 1)])
async def test_a_silent_way_lets_nothing_through_until_it_is_heard_again(
    proxy: Proxy, near: Connection, far: Connection, way: str, rows: int
) -> None:
    await far.fetch("SELECT 1")
    statement = await far.prepare(INSERT)
    proxy.silent = frozenset({way})
    waiting = asyncio.create_task(statement.fetch(1))

    done, _ = await asyncio.wait({waiting}, timeout=0.3)

    assert not done
    assert await filled(near) == rows
    proxy.silent = frozenset()
    await waiting
    assert await filled(near) == 1


async def test_a_reset_ends_connections_and_the_next_one_works(proxy: Proxy, far: Connection) -> None:
    await asyncio.to_thread(proxy.reset)

    with pytest.raises(BREAKS):
        await far.fetch("SELECT 1")
    again = await connect(proxy.dsn, application_name="again")
    assert await again.fetchval("SELECT 1") == 1
    await again.close()


async def test_a_delay_is_waited_for(proxy: Proxy, far: Connection) -> None:
    loop = asyncio.get_running_loop()
    proxy.delay_seconds = 0.05
    began = loop.time()

    await far.fetch("SELECT 1")

    assert loop.time() - began > 0.1
