"""A whole worker over a fresh database, run inside the test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.children import SupervisorLine
from app.db.clock import DatabaseClock
from app.db.pools import Pool
from app.db.primary import primary_of
from app.db.reads.attempts import AttemptView, LogLineView, StoryReads
from app.db.reads.executions import ExecutionReads, ExecutionView
from app.db.stores.effects import EffectStore
from app.db.stores.jobs import JobStore, Submission
from app.db.stores.workflows.definitions import DefinitionStore
from app.db.stores.workflows.runs import RunStore
from app.domain.access import Actor
from app.domain.statuses import FINAL
from app.process import Process
from app.server.handlers import handler_registry, task_functions
from app.server.worker import end_with_stuck_threads, end_with_timeline
from app.server.worker_parts import compose_worker, worker_stores
from app.settings import Settings, variable
from app.tasks import Handler
from app.worker.output import OutputCapture
from app.worker.worker import Worker
from tests.factories import new_job
from tests.polling import DEADLINE_SECONDS, eventually

OWNER = (
    "INSERT INTO onthedot.users (user_id, name, role) VALUES ('t', 't', 'operator') ON CONFLICT DO NOTHING"
)


@dataclass(kw_only=True)
class Bench:
    """A database with a worker on it, and what tests ask of them."""

    dsn: str
    pool: Pool
    engine: AsyncEngine
    clock: DatabaseClock
    functions: dict[str, Handler]
    stack: AsyncExitStack
    to_end: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a worker wants its process to end."""

    async def start_worker(self, *, alone: bool = False, **settings: str) -> Worker:
        """Start a worker; it is stopped at the end of the test. `alone`: one for what must run alone."""
        worker = await self.make_worker(alone=alone, **settings)
        worker.start()
        self.stack.push_async_callback(worker.stop)
        return worker

    async def make_worker(self, *, alone: bool = False, **settings: str) -> Worker:
        """Make a worker that does not run yet. Output is captured from here: pytest takes it anew for each test."""
        output = OutputCapture()
        output.install()
        self.stack.callback(output.remove)
        lease_seconds = float(settings.pop("lease_seconds", 30))  # shorter than people may have it
        environment = {variable(name): text for name, text in settings.items()}
        environment["ONTHEDOT_ALLOW_PRIVATE_TARGETS"] = "true"
        given = replace(Settings.from_env(environment), lease_seconds=lease_seconds)
        own = Process(
            dsn=self.dsn,
            primary=primary_of(self.dsn),
            pool=self.pool,
            clock=self.clock,
            line=SupervisorLine(None),
            stop=self.to_end,
            stack=self.stack,
        )
        runs = RunStore(self.pool, DefinitionStore(), self.clock)
        registry = await handler_registry(given, own, self.functions | task_functions(given), runs)
        stores = worker_stores(own, EffectStore(self.pool), runs)
        worker = compose_worker(given, own, registry, stores, alone=alone)
        end_with_timeline(own, worker)
        end_with_stuck_threads(own, worker, registry)
        return worker

    async def task(self, handler: str, **columns: object) -> str:
        """Create a task named after its handler."""
        values = {
            "task_id": handler.replace(":", "-"),
            "name": handler,
            "execution_handler": handler,
            "created_by": "t",
        }
        values |= columns
        names = ", ".join(values)
        marks = ", ".join(f"${i + 1}" for i in range(len(values)))
        statement = f"INSERT INTO onthedot.tasks ({names}) VALUES ({marks})"  # noqa: S608 - our own names
        await self.pool.execute(statement, *values.values())
        return str(values["task_id"])

    async def job(self, task_id: str, *, in_seconds: float | None = None, **request: Any) -> UUID:
        """Create a job that runs now, or once in so many seconds; return its execution."""
        schedule: dict[str, object] = {"type": "IMMEDIATE"}
        if in_seconds is not None:
            at = self.clock.now() + timedelta(seconds=in_seconds)
            schedule = {"type": "ONCE", "scheduled_time": at.isoformat()}
        await self.pool.execute(OWNER)
        job = await new_job(self.pool, user_id="t", task_id=task_id, schedule=schedule, **request)
        stored = await JobStore(self.pool).create([Submission(jobs=[job], actor=Actor("user:ada"))])
        assert job.job_id in stored.lanes
        assert job.execution_id is not None
        return job.execution_id

    async def ended(self, execution_id: UUID, *, seconds: float = DEADLINE_SECONDS) -> ExecutionView:
        """Wait until an execution has ended and return it."""

        async def probe() -> ExecutionView | None:
            execution = await ExecutionReads(self.engine).get(execution_id)
            return execution if execution.status in FINAL else None

        return await eventually(probe, seconds=seconds)

    async def in_status(self, execution_id: UUID, status: str) -> ExecutionView:
        """Wait until an execution is in a status and return it."""

        async def probe() -> ExecutionView | None:
            execution = await ExecutionReads(self.engine).get(execution_id)
            return execution if execution.status == status else None

        return await eventually(probe)

    async def attempts(self, execution_id: UUID) -> list[AttemptView]:
        """Return the attempts of an execution."""
        return await StoryReads(self.engine).attempts(await ExecutionReads(self.engine).get(execution_id))

    async def log(self, execution_id: UUID) -> list[LogLineView]:
        """Return the log of an execution."""
        return await StoryReads(self.engine).log_page(execution_id, limit=1000)


@pytest.fixture
def register() -> dict[str, Handler]:
    """Return the functions that the worker knows as `python:NAME`; tests add to it."""
    return {}


@pytest.fixture
async def bench(
    dsn: str, pool: Pool, engine: AsyncEngine, clock: DatabaseClock, register: dict[str, Handler]
) -> AsyncIterator[Bench]:
    """Return a bench; whatever it started is stopped at the end."""
    async with AsyncExitStack() as stack:
        yield Bench(dsn=dsn, pool=pool, engine=engine, clock=clock, functions=register, stack=stack)
