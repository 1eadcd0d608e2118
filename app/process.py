"""What each process of ours has: a pool, the database's clock, a line to its supervisor, and a way to be stopped."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.children import SupervisorLine
from app.db.clock import DatabaseClock
from app.db.errors import database_of_settings
from app.db.pools import Pool, open_pool
from app.loop import Loop
from app.settings import Settings

CLOCK_EVERY_SECONDS = 10.0
POLL_SECONDS = 0.9
"""How often idle workers and materializers look by themselves: with jitter, less than a second."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """The parts; `stop` is set by SIGTERM and SIGINT, `stack` closes what is pushed onto it, last first."""

    dsn: str
    pool: Pool
    clock: DatabaseClock
    line: SupervisorLine
    stop: asyncio.Event
    stack: AsyncExitStack


@asynccontextmanager
async def process(
    settings: Settings,
    name: str,
    *,
    connections: int,
    statement_timeout_seconds: float = 0,
    by_index_only: bool = False,
) -> AsyncIterator[Process]:
    """Open the parts of the process `name`, keep its clock right, and close everything at the end."""
    line, stop = SupervisorLine.from_env(), asyncio.Event()
    line.exit_with_parent(grace_seconds=settings.grace_seconds)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    dsn = settings.database_url or ""
    async with AsyncExitStack() as stack:
        clock = DatabaseClock()
        with database_of_settings():
            pool = await open_pool(
                dsn,
                size=connections,
                application_name=f"onthedot {name}",
                statement_timeout_seconds=statement_timeout_seconds,
                by_index_only=by_index_only,
            )
            stack.push_async_callback(pool.close)
            await clock.synchronise(pool)
        keeping = Loop("clock", lambda: _synchronise(clock, pool), interval_seconds=CLOCK_EVERY_SECONDS)
        keeping.start()
        stack.push_async_callback(keeping.stop)
        yield Process(dsn=dsn, pool=pool, clock=clock, line=line, stop=stop, stack=stack)


async def _synchronise(clock: DatabaseClock, pool: Pool) -> bool:
    await clock.synchronise(pool)
    return False
