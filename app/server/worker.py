"""The worker process."""

import asyncio
import logging
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import msgspec

from app import __version__, machine
from app.db.notifier import ECHO_EVERY_SECONDS, HintListener, HintSender
from app.db.pools import Pool, open_pool
from app.db.stores.admissions import AdmissionStore, Claimant
from app.db.stores.catalog import Catalog
from app.db.stores.effects import EffectStore
from app.db.stores.executions import ExecutionStore
from app.db.stores.limits import LimitStore
from app.db.stores.logs import LogStore
from app.db.stores.workers import WorkerIdentity
from app.domain.admission import Host
from app.domain.budget import POLL_SECONDS
from app.domain.claims import LeaseId
from app.loop import Loop
from app.process import Process, process
from app.server.handlers import handler_registry, task_functions
from app.server.suspects import for_one, suspect_keeper
from app.settings import Settings
from app.startup import START_AGAIN
from app.worker.claimer import Claimer
from app.worker.handlers import HandlerRegistry
from app.worker.lanes import LaneClaimer
from app.worker.leases import LeaseKeeper
from app.worker.loop_watch import LoopWatch
from app.worker.output import OutputCapture
from app.worker.pool import WorkerPool
from app.worker.runner import Runner
from app.worker.settler import Settler
from app.worker.slots import Slots
from app.worker.suspect_claimer import SuspectClaimer
from app.worker.suspect_keeper import SuspectKeeper
from app.worker.timers import Timers
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
        registry = await handler_registry(settings, own, functions)
        effects = EffectStore(await _transaction_pool(settings, own))
        worker = compose_worker(settings, own, registry, effects, alone=suspects)
        end_with_timeline(own, worker)
        end_with_stuck_threads(own, worker, registry)
        end_when_blocked(own, worker)
        parts: list[Worker | SuspectKeeper] = (
            [worker] if suspects else [worker, suspect_keeper(settings, own, worker)]
        )
        listener = HintListener(own.dsn, on_ready=worker.on_hints, on_cancels=worker.on_cancels)
        own.stack.push_async_callback(listener.close)
        listening = Loop("listener", listener.tick, interval_seconds=ECHO_EVERY_SECONDS)
        for part in (*parts, listening):
            part.start()
        own.line.report_ready()
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


def _identity(settings: Settings, *, alone: bool) -> WorkerIdentity:
    """Return who this worker is: another one after each start, wherever it runs."""
    return WorkerIdentity(
        worker_id=uuid4(),
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        queues=settings.queues,
        slots=settings.concurrency,
        labels=settings.labels,
        cpu_cores=settings.cpu_cores or machine.cpu_cores(),
        memory_mb=settings.memory_mb or machine.memory_mb(),
        suspects_only=alone,
    )


def _admissions(own: Process, identity: WorkerIdentity) -> AdmissionStore:
    """Return what claims beside limits, for what this worker offers."""
    host = Host(identity.host, identity.cpu_cores, identity.memory_mb)
    labels = msgspec.json.encode(identity.labels).decode()
    return AdmissionStore(own.pool, Claimant(identity.worker_id, host, labels))


def compose_worker(
    settings: Settings, own: Process, registry: HandlerRegistry, effects: EffectStore, *, alone: bool = False
) -> Worker:
    """Wire a worker; `alone`: one that runs what must run alone.

    Its parts call each other; who is called before it exists is called by name.
    """
    executions, catalog, runner = ExecutionStore(own.pool), Catalog(own.pool), Runner(registry)
    limits, hints = LimitStore(own.pool), HintSender(own.pool)
    identity = _identity(settings, alone=alone)
    leases = _leases(settings, own, identity, on_lost=lambda lost: worker.on_lost(lost))  # noqa: PLW0108
    settler = Settler(
        executions=executions,
        logs=LogStore(own.pool),
        limits=limits,
        catalog=catalog,
        clock=own.clock,
        leases=leases,
        worker_id=identity.worker_id,
        hint=lambda places: worker.on_hints(places),  # noqa: PLW0108 - not made yet
        on_freed=lambda: worker.on_freed(),  # noqa: PLW0108
        effects=effects,
        failed_outcome=runner.failed,
    )
    pool = WorkerPool(
        slots=Slots(catalog, total=settings.concurrency, queues=settings.queues),
        runner=runner,
        settler=settler,
        leases=leases,
        catalog=catalog,
        clock=own.clock,
        timeline=own.primary.bind(),
        effects=effects,
        on_free=lambda: worker.on_free(),  # noqa: PLW0108
        on_settle=lambda: worker.on_ended(),  # noqa: PLW0108
    )
    timers = Timers(executions=executions, clock=own.clock, fire=pool.start, lost=leases.drop)
    claimer = _claimer(
        settings,
        own,
        alone=alone,
        admissions=_admissions(own, identity),
        hints=hints,
        wake=lambda: worker.wake(),  # noqa: PLW0108
        executions=executions,
        catalog=catalog,
        pool=pool,
        timers=timers,
        settler=settler,
        leases=leases,
        worker_id=identity.worker_id,
    )
    worker = Worker(
        worker_id=identity.worker_id,
        executions=executions,
        limits=limits,
        claimer=claimer,
        pool=pool,
        timers=timers,
        settler=settler,
        leases=leases,
        hints=hints,
        poll_seconds=POLL_SECONDS,
        grace_seconds=settings.grace_seconds,
        hurry=own.hurry,
    )
    return worker


def _leases(
    settings: Settings, own: Process, identity: WorkerIdentity, *, on_lost: Callable[[set[LeaseId]], None]
) -> LeaseKeeper:
    """Return what keeps leases alive from a thread of its own; what it tells is heard on this loop."""
    main_loop = asyncio.get_running_loop()

    def tell(lost: set[LeaseId]) -> None:
        main_loop.call_soon_threadsafe(on_lost, lost)

    return LeaseKeeper(
        own.dsn,
        worker=identity,
        lease_seconds=settings.lease_seconds,
        on_lost=tell,
        on_cut_off=lambda: main_loop.call_soon_threadsafe(own.stop.set),
    )


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


def _claimer(
    settings: Settings,
    own: Process,
    *,
    alone: bool,
    admissions: AdmissionStore,
    hints: HintSender,
    wake: Callable[[], None],
    executions: ExecutionStore,
    catalog: Catalog,
    pool: WorkerPool,
    timers: Timers,
    settler: Settler,
    leases: LeaseKeeper,
    worker_id: UUID,
) -> Claimer | SuspectClaimer:
    if alone:
        return SuspectClaimer(
            executions=executions,
            admissions=admissions,
            catalog=catalog,
            pool=pool,
            settler=settler,
            leases=leases,
            worker_id=worker_id,
            queues=settings.queues,
            lease_seconds=settings.lease_seconds,
            on_idle=own.stop.set,
        )
    return Claimer(
        executions=executions,
        lanes=LaneClaimer(admissions, clock=own.clock, on_cancels=hints.announce_cancel),
        wake=wake,
        catalog=catalog,
        clock=own.clock,
        pool=pool,
        timers=timers,
        leases=leases,
        worker_id=worker_id,
        queues=settings.queues,
        lease_seconds=settings.lease_seconds,
        lookahead_seconds=settings.lookahead_ms / 1000,
    )
