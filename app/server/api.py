"""The API process: requests and pages."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from granian.constants import Interfaces
from granian.server.embed import Server
from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide

from app.answer_limit import ANSWER_SECONDS, AnswerLimit
from app.api.auth import KeyRing
from app.api.errors import EXCEPTION_HANDLERS
from app.api.leaving import Leaving
from app.api.openapi import openapi_config
from app.api.public import PUBLIC_HANDLERS
from app.api.router import API
from app.api.waiting import Awaited
from app.db.clock import DatabaseClock
from app.db.engine import Engine, open_engine
from app.db.health import DatabaseHealth
from app.db.notifier import HintSender
from app.db.pools import Pool
from app.db.reads.attempts import StoryReads
from app.db.reads.batches import BatchReads
from app.db.reads.changes import ChangeReads
from app.db.reads.executions import ExecutionReads
from app.db.reads.jobs import JobReads
from app.db.reads.paces import PaceReads
from app.db.stores.access import AccessStore
from app.db.stores.executions import ExecutionStore
from app.db.stores.limits import LimitStore
from app.db.stores.queues import QueueStore
from app.db.stores.tasks import TaskStore
from app.db.stores.zones import ZoneAliasStore
from app.db.transactions import Transactions
from app.intake.tasks import TaskIntake
from app.intake.waiting import Waiting
from app.loop import Loop
from app.process import Process, process
from app.request_ids import RequestIds
from app.server.api_parts import figures, intakes, page_parts, people
from app.settings import Settings
from app.ui.change_feed import ChangeFeed
from app.ui.errors import with_pages
from app.ui.routes import dashboard
from app.ui.templating import template_config

API_CONNECTIONS = 4
"""Of the pool that writes jobs, and as many of the engine that reads."""
API_STATEMENT_TIMEOUT_SECONDS = 7.0
"""Of what serves requests; `answer_limit.py` has how long all of an answer may take."""
PAGE_CONNECTIONS = 4
"""Of the engine that reads for pages: people who look at much take nothing from programs that submit."""
PAGE_STATEMENT_TIMEOUT_SECONDS = 3.0
CHANGES_EVERY_SECONDS = 0.8
LOOK_EVERY_SECONDS = 0.02
LEAVING_SECONDS = 0.5
"""What balancers and clients get to go elsewhere."""


async def run_api(settings: Settings) -> None:
    """Serve the API and the pages until SIGTERM."""
    async with process(
        settings,
        "api",
        connections=API_CONNECTIONS,
        statement_timeout_seconds=API_STATEMENT_TIMEOUT_SECONDS,
    ) as own:
        engine = open_engine(
            own.dsn,
            size=API_CONNECTIONS,
            application_name="onthedot api",
            statement_timeout_seconds=API_STATEMENT_TIMEOUT_SECONDS,
        )
        own.stack.push_async_callback(engine.dispose)
        pages = open_engine(
            own.dsn,
            size=PAGE_CONNECTIONS,
            application_name="onthedot pages",
            statement_timeout_seconds=PAGE_STATEMENT_TIMEOUT_SECONDS,
        )
        own.stack.push_async_callback(pages.dispose)
        change_feed = ChangeFeed(ChangeReads(pages))
        looking = Loop("change feed", change_feed.tick, interval_seconds=CHANGES_EVERY_SECONDS)
        looking.start()
        own.stack.push_async_callback(looking.stop)
        shown = page_parts(pages, own.clock, change_feed)
        app = web_app(engine, own.pool, own.clock, settings, pages=shown, stopping=own.stop)
        server = Server(
            Leaving(app, own.stop),
            address=settings.host,
            port=settings.port,
            interface=Interfaces.ASGINL,
            websockets=False,
            backlog=1024,
            log_enabled=False,
        )
        serving = asyncio.create_task(server.serve())
        stopping = asyncio.create_task(own.stop.wait())
        await _accepts(settings)
        own.report_ready()
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        change_feed.close()  # else the streams of open pages would keep the server from stopping
        await _leave(own)
        server.stop()  # type: ignore[no-untyped-call]
        await serving


def web_app(
    engine: Engine,
    pool: Pool,
    clock: DatabaseClock,
    settings: Settings,
    *,
    pages: Mapping[str, object] | None = None,
    stopping: asyncio.Event | None = None,
    answer_seconds: float = ANSWER_SECONDS,
) -> Litestar:
    """Compose what the API and the pages are made of; without `pages` the API alone."""
    stopping = stopping or asyncio.Event()
    hints, aliases, job_reads = HintSender(pool), ZoneAliasStore(engine), JobReads(engine)
    access, tasks, queues = AccessStore(engine), TaskStore(engine), QueueStore(engine)
    execution_reads = ExecutionReads(engine)
    awaited = Awaited(Waiting(ExecutionStore(pool), stopping), execution_reads)
    parts = {
        "access": access,
        "aliases": aliases,
        "clock": clock,
        "database": DatabaseHealth(engine),
        "execution_reads": execution_reads,
        "job_reads": job_reads,
        "story_reads": StoryReads(engine),
        "tasks": TaskIntake(
            tasks=tasks,
            queues=queues,
            allow_private_targets=settings.allow_private_targets,
            allow_shell=settings.allow_shell,
        ),
        "batch_reads": BatchReads(engine),
        "stopping": stopping,
        "awaited": awaited,
        "queues": queues,
        "limits": LimitStore(pool),
        **intakes(engine, pool, clock, hints, awaited, tasks=tasks, queues=queues, settings=settings),
        **people(engine),
        **figures(engine, clock, PaceReads(engine, clock)),
    }
    return Litestar(
        route_handlers=[API, *PUBLIC_HANDLERS, *(dashboard(_provided(pages)) if pages else ())],
        state=State({"key_ring": KeyRing(access), "transactions": Transactions(engine)}),
        dependencies=_provided(parts),
        middleware=[RequestIds(), AnswerLimit(seconds=answer_seconds)],
        exception_handlers=with_pages(EXCEPTION_HANDLERS),
        openapi_config=openapi_config(),
        template_config=template_config(house_name=settings.environment),
        logging_config=None,
    )


async def _leave(own: Process) -> None:
    """Serve on for a moment, unless it is to hurry: `/readyz` says no and connections end with their answers."""
    if own.stop.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_SECONDS):
                await own.hurry.wait()


async def _accepts(settings: Settings) -> None:
    """Return when the server accepts connections."""
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(settings.host, settings.port)
            writer.close()
            return
        await asyncio.sleep(LOOK_EVERY_SECONDS)


def _provided(parts: Mapping[str, object]) -> dict[str, Provide]:
    return {name: _provide(part) for name, part in parts.items()}


def _provide(part: object) -> Provide:
    return Provide(lambda: part, use_cache=True, sync_to_thread=False)
