"""A standby is promoted, and the old primary goes on as if nothing had been."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from app.db.clock import DatabaseClock
from app.db.engine import open_engine
from app.db.pools import connect, open_pool
from app.db.primary import NoPrimary, OldPrimary, Primary, Promoted, primary_of
from app.tasks import Context
from tests.chaos.failover import destroy, promote, standby_of
from tests.chaos.proxy import Proxy
from tests.chaos.server import ChaosServer
from tests.polling import eventually
from tests.worker.conftest import Bench

PORT = "SELECT inet_server_port()"


class Pair:
    """A primary and its standby."""

    def __init__(self, old: ChaosServer, new: ChaosServer) -> None:
        self.old, self.new = old, new

    def dsn(self, *ports: int) -> str:
        """Return the DSN of these ports."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"{self.old.dsn.split('@')[0]}@{hosts}/onthedot?target_session_attrs=read-write"

    @property
    def ports(self) -> tuple[int, int]:
        """Return the old primary's port and the standby's."""
        return self.old.address.port, self.new.address.port


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    for parent in (folder, folder.parent):
        parent.chmod(0o711)
    old = ChaosServer.create(folder / "old", settings={"fsync": "off", "wal_log_hints": "on"})
    old.migrate()
    new = standby_of(old, folder / "new", by=old.dsn)
    yield Pair(old, new)
    destroy(new)
    destroy(old)


@pytest.fixture(scope="module")
def promoted(pair: Pair) -> Pair:
    """Return the pair when both answer as primaries."""
    if pair.new.query("SELECT pg_is_in_recovery()") == [(True,)]:
        promote(pair.new)
    return pair


@pytest.fixture
async def bench(pair: Pair) -> AsyncIterator[Bench]:
    """Return a bench on both hosts."""
    dsn = pair.dsn(*pair.ports)
    async with AsyncExitStack() as stack:
        pool = await open_pool(dsn, size=4, application_name="test")
        stack.push_async_callback(pool.close)
        engine = open_engine(pair.new.dsn, size=1, application_name="test")
        stack.push_async_callback(engine.dispose)
        clock = DatabaseClock()
        await clock.synchronise(pool)
        yield Bench(dsn=dsn, pool=pool, engine=engine, clock=clock, functions={}, stack=stack)


async def test_where_no_host_is_a_primary_that_is_said(pair: Pair) -> None:
    standby, nobody = pair.new.address.port, 1

    with pytest.raises(
        NoPrimary, match=f"127.0.0.1:{standby}: a standby; 127.0.0.1:1: .*Connect call failed"
    ):
        await connect(pair.dsn(standby, nobody), application_name="test")


async def test_a_promotion_ends_a_worker_which_gives_up_what_it_held(bench: Bench, pair: Pair) -> None:
    began, cut = asyncio.Event(), asyncio.Event()

    async def waits(_: Context) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()

    bench.functions["waits"] = waits
    listener = await connect(bench.dsn, application_name="test")
    await bench.start_worker(lease_seconds="60")
    execution_id = await bench.job(await bench.task("python:waits"))
    await began.wait()
    before = await bench.in_status(execution_id, "RUNNING")  # as the standby shows it

    promote(pair.new)
    await primary_of(bench.dsn).look()

    async with asyncio.timeout(20):
        await bench.to_end.wait()
        await cut.wait()
    assert listener.is_closed()
    with pytest.raises(Promoted):
        await bench.pool.fetchval(PORT)
    assert await bench.in_status(execution_id, "RUNNING") == before


async def test_whoever_starts_anew_finds_the_new_primary_wherever_it_stands(promoted: Pair) -> None:
    old, new = promoted.ports

    for order in ((old, new), (new, old)):
        connection = await Primary(promoted.dsn(*order)).connect()
        assert await connection.fetchval(PORT) == new
        await connection.close()


async def test_an_address_that_moves_may_not_move_back_to_the_old_primary(promoted: Pair) -> None:
    with Proxy(promoted.old.dsn) as address:
        primary = Primary(address.dsn)
        first = await primary.connect()
        address.lead_to(promoted.new.dsn)
        second = await primary.connect()

        async def is_cut_off() -> bool:
            return first.is_closed()

        await eventually(is_cut_off)
        assert not second.is_closed()
        assert primary.timeline == 2

        address.lead_to(promoted.old.dsn)
        with pytest.raises(OldPrimary, match="timeline 1, but 2 was seen"):
            await primary.connect()
        second.terminate()


async def test_who_is_bound_to_a_timeline_opens_nothing_on_the_next(promoted: Pair) -> None:
    with Proxy(promoted.old.dsn) as address:
        primary = Primary(address.dsn)
        told: list[int] = []
        primary.when_promoted(lambda: told.append(primary.timeline))
        (await primary.connect()).terminate()
        assert primary.bind() == 1

        address.lead_to(promoted.new.dsn)
        with pytest.raises(Promoted):
            await primary.connect()
        assert told == [1, 2]
