"""The worker process."""

import asyncio
import logging
import os
import sys
import time
from pathlib import Path

from app.db.notifier import ECHO_EVERY_SECONDS, HintListener
from app.db.pools import Pool, open_pool
from app.db.stores.effects import EffectStore
from app.db.stores.workflows.definitions import DefinitionStore
from app.db.stores.workflows.runs import RunStore
from app.loop import Loop
from app.process import Process, process
from app.server.handlers import handler_registry, task_functions
from app.server.suspects import for_one, suspect_keeper
from app.server.worker_parts import compose_worker, worker_stores
from app.settings import Settings
from app.startup import START_AGAIN
from app.worker.handlers import HandlerRegistry
from app.worker.loop_watch import LoopWatch
from app.worker.output import OutputCapture
from app.worker.suspect_keeper import SuspectKeeper
from app.worker.worker import Worker

log = logging.getLogger(__name__)

WORKER_CONNECTIONS = 3
FAREWELL_SECONDS = 3.0
"""For the registry to be told why: the leases' thread does not stand still."""
HANDLER_MAY_THINK_SECONDS = 600.0
"""Between two statements in `ctx.transaction`; a frozen worker does not hold its locks for longer."""


async def run_worker(settings: Settings, *, suspects: bool = False) -> int:
    """Claim and run executions until SIGTERM, then drain; `suspects`: what must run alone, until there is no more.

    Returns the exit status.
    """
    settings = for_one(settings) if suspects else settings
    sys.path.insert(0, str(Path.cwd()))  # task modules lie where `onthedot` was started
    functions = task_functions(settings)
    output = OutputCapture()
    output.install()
    async with process(
        settings, "worker", connections=1 if suspects else WORKER_CONNECTIONS, by_index_only=True
    ) as own:
        runs = RunStore(own.pool, DefinitionStore(), own.clock)
        registry = await handler_registry(settings, own, functions, runs)
        effects = EffectStore(await _transaction_pool(settings, own))
        stores = worker_stores(own, effects, runs)
        worker = compose_worker(settings, own, registry, stores, alone=suspects)
        end_with_timeline(own, worker)
        end_with_stuck_threads(own, worker, registry)
        end_when_blocked(own, worker)
        keeper = None if suspects else suspect_keeper(settings, own, worker, hears=lambda: listener.hears)
        parts: list[Worker | SuspectKeeper] = [worker] if keeper is None else [worker, keeper]
        listener = HintListener(
            own.dsn,
            on_ready=worker.on_hints,
            on_suspects=keeper.tell if keeper else None,
            on_cancels=worker.on_cancels,
        )
        own.stack.push_async_callback(listener.close)
        listening = Loop("listener", listener.tick, interval_seconds=ECHO_EVERY_SECONDS)
        for part in (*parts, listening):
            part.start()
        own.report_ready()
        await own.stop.wait()
        await listening.stop()
        await asyncio.gather(*(part.stop() for part in parts))
    return START_AGAIN if worker.has_retired else 0


async def _transaction_pool(settings: Settings, own: Process) -> "Pool | None":
    """Return the connections that handlers' transactions are given; None: there shall be none."""
    if settings.transaction_connections == 0:
        return None
    pool = await open_pool(
        own.dsn,
        size=settings.transaction_connections,
        application_name="onthedot handlers",
        idle_in_transaction_seconds=HANDLER_MAY_THINK_SECONDS,
        on_demand=True,
        is_reset=True,
    )
    own.stack.push_async_callback(pool.close)
    return pool


def end_with_timeline(own: Process, worker: Worker) -> None:
    """Have a promotion end this process: its id, leases and tokens belong to the timeline that it found."""
    main_loop = asyncio.get_running_loop()

    def end() -> None:
        worker.give_up()
        own.stop.set()

    own.primary.when_promoted(lambda: main_loop.call_soon_threadsafe(end))


def end_with_stuck_threads(own: Process, worker: Worker, registry: HandlerRegistry) -> None:
    """Have this process replaced when too many functions ignore their timeouts: a thread cannot be killed."""

    def end(number: int) -> None:
        worker.retire(
            f"functions go on in their threads after their timeouts, and a thread cannot be killed: {number}"
        )
        own.stop.set()

    registry.when_stuck(end)


def end_when_blocked(own: Process, worker: Worker) -> None:
    """Have this process replaced when a handler blocks its event loop past timeouts: nothing could interrupt it.

    Nothing can be drained or written either: leases lapse, and others run what was running here again.
    """

    def end(stack: str) -> None:
        log.critical("the event loop is blocked by:\n%s", stack, extra={"event": "loop_blocked"})
        worker.retire("a handler blocks the event loop past timeouts; the log of the process shows where")
        time.sleep(FAREWELL_SECONDS)
        os._exit(START_AGAIN)

    watch = LoopWatch(is_overdue=worker.is_overdue, on_blocked=end)
    own.stack.callback(watch.stop)
    watch.start()
