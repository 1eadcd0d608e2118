"""What each process of ours has: a pool, the database's clock, a line to its supervisor, and a way to be stopped."""

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, repeat

from app.children import SupervisorLine
from app.db.clock import DatabaseClock
from app.db.errors import database_of_settings
from app.db.pools import Pool, open_pool
from app.db.primary import LOOK_SECONDS, Primary, primary_of
from app.loop import Loop
from app.settings import Settings
from app.startup import CannotStart

log = logging.getLogger(__name__)

CLOCK_EVERY_SECONDS = 10.0
CONNECT_EVERY_SECONDS = 0.5
NEW_OBJECTS = 10_000
"""More containers made than freed, after which the garbage collector looks for cycles among the youngest."""
STATEMENT_TIMEOUT_SECONDS = 30.0
"""Far more than a loop's statement takes: one to which no answer comes must not hold it up for longer."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """The parts. `stop` is set by SIGTERM and SIGINT, `hurry` by a second one; `stack` closes what is pushed onto it,
    last first."""

    dsn: str
    primary: Primary
    pool: Pool
    clock: DatabaseClock
    line: SupervisorLine
    stop: asyncio.Event
    stack: AsyncExitStack
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    def report_ready(self) -> None:
        """Tell the supervisor that everything is made and runs."""
        _spare_the_collector()
        self.line.report_ready()


@asynccontextmanager
async def process(
    settings: Settings,
    name: str,
    *,
    connections: int,
    statement_timeout_seconds: float = STATEMENT_TIMEOUT_SECONDS,
    by_index_only: bool = False,
) -> AsyncIterator[Process]:
    """Open the parts of the process `name`, keep its clock right, and close everything at the end."""
    line = SupervisorLine.from_env()
    line.exit_with_parent(grace_seconds=settings.grace_seconds)
    stop, hurry = _set_by_signals()
    dsn = settings.database_url or ""
    async with AsyncExitStack() as stack:
        clock = DatabaseClock()

        async def connect() -> Pool:
            pool = await open_pool(
                dsn,
                size=connections,
                application_name=f"onthedot {name}",
                statement_timeout_seconds=statement_timeout_seconds,
                by_index_only=by_index_only,
            )
            try:
                await clock.synchronise(pool)
            except BaseException:
                pool.terminate()
                raise
            return pool

        pool = await connected(connect, stop, is_patient=line.leads_somewhere)
        stack.push_async_callback(pool.close)
        keeping = Loop("clock", lambda: _synchronise(clock, pool), interval_seconds=CLOCK_EVERY_SECONDS)
        keeping.start()
        stack.push_async_callback(keeping.stop)
        primary = await _watched(primary_of(dsn), keeping, stack)
        yield Process(
            dsn=dsn, primary=primary, pool=pool, clock=clock, line=line, stop=stop, hurry=hurry, stack=stack
        )  # fmt: skip


def _spare_the_collector() -> None:
    """Have the garbage collector pass over what is there now, which stays, and look for new garbage less often.

    Of thousands of objects a job or request makes, hardly any are in cycles: looking for those took a seventh of a
    worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)


def _set_by_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Return what the first SIGTERM or SIGINT sets, and what those after it do."""
    stop, hurry = asyncio.Event(), asyncio.Event()
    asked = chain([stop], repeat(hurry))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, lambda: next(asked).set())
    return stop, hurry


async def _watched(primary: Primary, keeping: Loop, stack: AsyncExitStack) -> Primary:
    """Look out for a promotion where there are several hosts; the next primary's clock is another one."""
    loop = asyncio.get_running_loop()
    primary.when_promoted(lambda: loop.call_soon_threadsafe(keeping.wake))
    if primary.is_chosen:
        looking = Loop("primary", primary.look, interval_seconds=LOOK_SECONDS)
        looking.start()
        stack.callback(primary.close)
        stack.push_async_callback(looking.stop)
    return primary


async def connected(connect: Callable[[], Awaitable[Pool]], stop: asyncio.Event, *, is_patient: bool) -> Pool:
    """Return what `connect` does; where the database is down and `is_patient`, as soon as it is back.

    A process that a supervisor started waits by itself: it has found the database there before, and ending and being
    started again costs seconds that are missing once it is back. Raises `CannotStart`.
    """
    while True:
        try:
            with database_of_settings():
                return await connect()
        except CannotStart as error:
            if not (is_patient and error.passes) or stop.is_set():
                raise
            log.warning("waiting for the database", extra={"event": "database_awaited", "why": str(error)})
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_EVERY_SECONDS):
                await stop.wait()


async def _synchronise(clock: DatabaseClock, pool: Pool) -> bool:
    await clock.synchronise(pool)
    return False
