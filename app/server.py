"""The composition root: the only place that builds objects, and orders their start and stop."""

import asyncio
import importlib
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
from granian.constants import Interfaces
from granian.server.embed import Server
from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide

from app import __version__
from app.api.auth import KeyRing
from app.api.errors import EXCEPTION_HANDLERS
from app.api.health import HEALTH_HANDLERS
from app.api.openapi import openapi_config
from app.api.request_ids import RequestIds
from app.api.router import API
from app.db.clock import DatabaseClock
from app.db.health import DatabaseHealth
from app.db.notifier import ECHO_EVERY_SECONDS, HintListener, HintSender
from app.db.pools import Engine, Pool, open_engine
from app.db.reads.attempts import StoryReads
from app.db.reads.batches import BatchReads
from app.db.reads.executions import ExecutionReads
from app.db.reads.jobs import JobReads
from app.db.stores.access import ADMIN_USER_ID, AccessStore
from app.db.stores.catalog import Catalog
from app.db.stores.execution_control import ExecutionControl
from app.db.stores.executions import ExecutionStore
from app.db.stores.job_control import JobControl
from app.db.stores.jobs import JobStore
from app.db.stores.logs import LogStore
from app.db.stores.queues import QueueStore
from app.db.stores.schedules import ScheduleStore
from app.db.stores.tasks import TaskStore
from app.db.stores.workers import WorkerIdentity, timeline
from app.db.stores.zones import ZoneAliasStore
from app.domain.access import new_secret
from app.domain.ids import uuid7
from app.files import write_file
from app.intake.changes import ChangeIntake
from app.intake.group_commit import GroupCommit
from app.intake.jobs import JobIntake
from app.intake.planner import JobPlanner
from app.intake.tasks import TaskIntake
from app.intake.waiting import Waiting
from app.loop import Loop
from app.maintenance.partitions import PartitionKeeper
from app.maintenance.reaper import Reaper
from app.process import Process, process
from app.scheduler.materializer import Materializer
from app.settings import Settings
from app.tasks import handlers_in
from app.ui.errors import with_pages
from app.ui.routes import UI_HANDLERS
from app.ui.templating import template_config
from app.worker.claimer import Claimer
from app.worker.handlers import HandlerRegistry
from app.worker.handlers.http import HttpHandler
from app.worker.handlers.python import PythonHandler
from app.worker.leases import LeaseKeeper
from app.worker.output import OutputCapture
from app.worker.pool import WorkerPool
from app.worker.runner import Runner
from app.worker.settler import Settler
from app.worker.timers import Timers
from app.worker.worker import Worker

API_CONNECTIONS = 4
"""Of the pool that writes jobs, and as many of the engine that reads."""
WORKER_CONNECTIONS = 3
MAINTENANCE_CONNECTIONS = 2
API_STATEMENT_TIMEOUT_SECONDS = 10.0
SPARE_THREADS = 1000
"""For functions that ignore their timeout: each keeps a thread until it returns."""
POLL_SECONDS = 0.9
"""How often idle workers and materializers look by themselves: with jitter, less than a second."""


class Bootstrap(msgspec.Struct, frozen=True):
    """What a start may show to the person who started it."""

    admin_key_generated: str | None
    """The admin key, at the start that made it; afterwards it is in `DATA_DIR/admin.key` only."""
    login_token: str
    """Logs the administrator in once."""


async def bootstrap(dsn: str, settings: Settings) -> Bootstrap:
    """See that there is an administrator with a key, and make a link to log in by."""
    engine = open_engine(dsn, size=1, application_name="onthedot bootstrap")
    try:
        access, clock = AccessStore(engine), DatabaseClock()
        await clock.synchronise_by(engine)
        file = settings.data_dir / "admin.key"
        known = settings.admin_api_key or (file.read_text("ascii").strip() if file.is_file() else None)
        generated = None
        if known is None and not await access.has_admin_key():
            generated = new_secret()
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(file, generated + "\n", mode=0o600)
        if key := known or generated:
            await access.ensure_admin(key, key_id=uuid7(clock.unix_microseconds()))
        token = new_secret()
        if known or generated:
            await access.add_login_token(token, user_id=ADMIN_USER_ID)
        return Bootstrap(generated, token)
    finally:
        await engine.dispose()


async def run_api(settings: Settings) -> None:
    """Serve the API and the pages until SIGTERM."""
    async with process(settings, "api", connections=API_CONNECTIONS) as own:
        engine = open_engine(
            own.dsn,
            size=API_CONNECTIONS,
            application_name="onthedot api",
            statement_timeout_seconds=API_STATEMENT_TIMEOUT_SECONDS,
        )
        own.stack.push_async_callback(engine.dispose)
        server = Server(
            web_app(engine, own.pool, own.clock, settings),
            address=settings.host,
            port=settings.port,
            interface=Interfaces.ASGINL,
            websockets=False,
            backlog=1024,
            log_enabled=False,
        )
        serving = asyncio.create_task(server.serve())
        stopping = asyncio.create_task(own.stop.wait())
        own.line.report_ready()
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        server.stop()  # type: ignore[no-untyped-call]
        await serving


def web_app(engine: Engine, pool: Pool, clock: DatabaseClock, settings: Settings) -> Litestar:
    """Compose what the API and the pages are made of."""
    hints, aliases, job_reads = HintSender(pool), ZoneAliasStore(engine), JobReads(engine)
    jobs = JobStore(pool)
    access, tasks, queues = AccessStore(engine), TaskStore(engine), QueueStore(engine)
    parts = {
        "access": access,
        "clock": clock,
        "database": DatabaseHealth(engine),
        "execution_reads": ExecutionReads(engine),
        "job_reads": job_reads,
        "story_reads": StoryReads(engine),
        "tasks": TaskIntake(tasks=tasks, queues=queues, allow_private_targets=settings.allow_private_targets),
        "jobs": JobIntake(
            planner=JobPlanner(tasks=tasks, queues=queues, access=access, aliases=aliases, clock=clock),
            jobs=jobs,
            commits=GroupCommit(jobs),
            hints=hints,
            clock=clock,
        ),
        "batch_reads": BatchReads(engine),
        "waiting": Waiting(ExecutionStore(pool)),
        "changes": ChangeIntake(
            jobs=JobControl(pool, horizon_seconds=settings.horizon_seconds),
            executions=ExecutionControl(pool),
            reads=job_reads,
            tasks=tasks,
            queues=queues,
            aliases=aliases,
            hints=hints,
            clock=clock,
        ),
    }
    return Litestar(
        route_handlers=[API, *HEALTH_HANDLERS, *UI_HANDLERS],
        state=State({"key_ring": KeyRing(access)}),
        dependencies={name: _provide(part) for name, part in parts.items()},
        middleware=[RequestIds()],
        exception_handlers=with_pages(EXCEPTION_HANDLERS),
        openapi_config=openapi_config(),
        template_config=template_config(),
        logging_config=None,
    )


async def run_maintenance(settings: Settings) -> None:
    """Materialise, reap and keep partitions until SIGTERM."""
    async with process(settings, "maintenance", connections=MAINTENANCE_CONNECTIONS) as own:
        engine = open_engine(own.dsn, size=1, application_name="onthedot maintenance")
        own.stack.push_async_callback(engine.dispose)
        executions = ExecutionStore(own.pool)
        hints = HintSender(own.pool)
        materializer = Materializer(
            schedules=ScheduleStore(own.pool), hints=hints, horizon_seconds=settings.horizon_seconds
        )
        reaper = Reaper(executions=executions, hints=hints, lease_seconds=settings.lease_seconds)
        planning = Loop("materializer", materializer.tick, interval_seconds=POLL_SECONDS)
        listener = HintListener(own.dsn, on_schedules=planning.wake)
        own.stack.push_async_callback(listener.close)
        loops = [
            planning,
            Loop("listener", listener.tick, interval_seconds=ECHO_EVERY_SECONDS),
            Loop("reaper", reaper.tick, interval_seconds=min(1.0, settings.lease_seconds / 4)),
            Loop("partitions", PartitionKeeper(engine).tick, interval_seconds=3600.0),
        ]
        for loop in loops:
            loop.start()
        own.line.report_ready()
        await own.stop.wait()
        await asyncio.gather(*(loop.stop() for loop in loops))
        await hints.close()


async def run_worker(settings: Settings) -> None:
    """Claim and run executions until SIGTERM, then drain."""
    sys.path.insert(0, str(Path.cwd()))  # task modules lie where `onthedot` was started
    functions = handlers_in([importlib.import_module(name) for name in settings.task_modules])
    output = OutputCapture()
    output.install()
    async with process(settings, "worker", connections=WORKER_CONNECTIONS) as own:
        http = HttpHandler(allow_private_targets=settings.allow_private_targets)
        own.stack.push_async_callback(http.close)
        threads = ThreadPoolExecutor(settings.concurrency + SPARE_THREADS, thread_name_prefix="task")
        registry = HandlerRegistry(python=PythonHandler(threads), http=http, functions=functions)
        worker = await compose_worker(settings, own, registry)
        listener = HintListener(own.dsn, on_ready=worker.on_hints, on_cancels=worker.on_cancels)
        own.stack.push_async_callback(listener.close)
        listening = Loop("listener", listener.tick, interval_seconds=ECHO_EVERY_SECONDS)
        worker.start()
        listening.start()
        own.line.report_ready()
        await own.stop.wait()
        await listening.stop()
        await worker.stop()


async def compose_worker(settings: Settings, own: Process, registry: HandlerRegistry) -> Worker:
    """Wire a worker. Its parts call each other; who is called before it exists is called by name."""
    executions, catalog = ExecutionStore(own.pool), Catalog(own.pool)
    identity = WorkerIdentity(
        worker_id=uuid4(),
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        queues=settings.queues,
        slots=settings.concurrency,
    )
    main_loop = asyncio.get_running_loop()

    def on_lost(lost: set[UUID]) -> None:
        main_loop.call_soon_threadsafe(worker.on_lost, lost)

    leases = LeaseKeeper(
        own.dsn,
        worker=identity,
        lease_seconds=settings.lease_seconds,
        on_lost=on_lost,
    )
    settler = Settler(
        executions=executions,
        logs=LogStore(own.pool),
        catalog=catalog,
        clock=own.clock,
        leases=leases,
        worker_id=identity.worker_id,
        hint=lambda places: worker.on_hints(places),  # noqa: PLW0108 - not made yet
    )
    pool = WorkerPool(
        slots=settings.concurrency,
        runner=Runner(registry),
        settler=settler,
        leases=leases,
        catalog=catalog,
        clock=own.clock,
        timeline=await timeline(own.pool),
        on_free=lambda: worker.on_free(),  # noqa: PLW0108
        on_settle=lambda: worker.on_ended(),  # noqa: PLW0108
    )
    timers = Timers(executions=executions, clock=own.clock, fire=pool.start, lost=leases.drop)
    claimer = Claimer(
        executions=executions,
        catalog=catalog,
        clock=own.clock,
        pool=pool,
        timers=timers,
        worker_id=identity.worker_id,
        slots=settings.concurrency,
        queues=settings.queues,
        lease_seconds=settings.lease_seconds,
        lookahead_seconds=settings.lookahead_ms / 1000,
    )
    worker = Worker(
        worker_id=identity.worker_id,
        executions=executions,
        claimer=claimer,
        pool=pool,
        timers=timers,
        settler=settler,
        leases=leases,
        poll_seconds=POLL_SECONDS,
        grace_seconds=settings.grace_seconds,
    )
    return worker


def _provide(part: object) -> Provide:
    return Provide(lambda: part, use_cache=True, sync_to_thread=False)
