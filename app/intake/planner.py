"""Checking what people ask for, and planning the jobs that come of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from app.db.clock import DatabaseClock
from app.db.reads.jobs import JobReads
from app.db.stores.access import AccessStore
from app.db.stores.jobs import Existing
from app.db.stores.queues import QueueStore
from app.db.stores.tasks import TaskStore
from app.db.stores.zones import ZoneAliasStore
from app.domain.access import Principal, Role
from app.domain.errors import InvalidInput, InvalidParameters, UnknownTask
from app.domain.hourly_quota import QuotaExceeded
from app.domain.jobs import JobRequest, NewJob, check_unique, plan_job
from app.domain.limits import check_key
from app.domain.parameters import ParameterSchema
from app.domain.stored_schedule import JobSchedule, ScheduleColumns, schedule_columns
from app.domain.workflows.definition import WORKFLOW_TASK

PLANNED_AT_ONCE = 100
"""Jobs of a batch that are planned before others get their turn on the event loop."""

T = TypeVar("T")
Item = NewJob | Existing | InvalidInput | QuotaExceeded
"""One job asked for: planned, there already, or refused with a reason."""


async def require_jobs(reads: JobReads, job_ids: Sequence[UUID], *, now: datetime) -> None:
    """Refuse what depends on jobs that do not exist. Raises `InvalidInput`."""
    if not job_ids:
        return
    known = {job.job_id for job in await reads.some(job_ids, now=now)}
    for index, job_id in enumerate(job_ids):
        if job_id not in known:
            pointer = f"/depends_on/{index}"
            raise InvalidInput(f"there is no job {job_id}", pointer=pointer, code="unknown_job")


def _require_steps(request: JobRequest, *, for_workflow: bool) -> None:
    """Refuse a job that would be a workflow without steps. Raises `InvalidInput`."""
    if request.task_id == WORKFLOW_TASK and not for_workflow:
        detail = "make it by POST /workflows, which says what its steps are"
        raise InvalidInput(detail, pointer="/task_id")


class JobPlanner:
    """Plans jobs; nothing is stored here."""

    def __init__(
        self,
        *,
        tasks: TaskStore,
        queues: QueueStore,
        access: AccessStore,
        aliases: ZoneAliasStore,
        reads: JobReads,
        clock: DatabaseClock,
    ) -> None:
        self._tasks = tasks
        self._queues = queues
        self._access = access
        self._aliases = aliases
        self._reads = reads
        self._clock = clock
        self._schemas: dict[str, tuple[int, ParameterSchema]] = {}

    async def plan_all(
        self,
        requests: Sequence[JobRequest | InvalidInput],
        *,
        by: Principal,
        fresh: bool,
        batch_id: UUID | None = None,
        for_workflow: bool = False,
    ) -> list[Item]:
        """Return the jobs that requests ask for, in their order; why in the place of one that cannot be had.

        A request that could not be read stands there as its error. `fresh`: an insert has found a task changed, or
        something missing; look at the database again. Raises `Forbidden`.
        """
        by.require(Role.OPERATOR)
        schedules, looked = _Schedules(self._clock.now(), await self._aliases.all()), _Looked()
        items: list[Item] = []
        for index, request in enumerate(requests, start=1):
            if index % PLANNED_AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                if isinstance(request, InvalidInput):
                    raise request
                _require_steps(request, for_workflow=for_workflow)
                items.append(
                    await self._plan(request, schedules, looked, by=by, fresh=fresh, batch_id=batch_id)
                )
            except InvalidInput as error:
                items.append(error)
        return items

    async def _plan(
        self,
        request: JobRequest,
        schedules: "_Schedules",
        looked: "_Looked",
        *,
        by: Principal,
        fresh: bool,
        batch_id: UUID | None,
    ) -> NewJob:
        if fresh:
            await self._ensure_queue(request, looked)
        check_key(request.concurrency_key)
        user_id = await self._owner(request, by, looked, fresh=fresh)
        revision = await self._check_parameters(request, looked, fresh=fresh)
        schedule = schedules.columns(request.schedule)
        check_unique(request, schedule.schedule_type)
        await require_jobs(self._reads, request.depends_on, now=schedules.now)
        return plan_job(
            request,
            schedule=schedule,
            user_id=user_id,
            task_revision=revision,
            now=schedules.now,
            unix_microseconds=self._clock.unix_microseconds(),
            batch_id=batch_id,
        )

    async def _owner(self, request: JobRequest, by: Principal, looked: "_Looked", *, fresh: bool) -> str:
        owner = by.owner(request.user_id)
        must_look = fresh or owner != by.user_id
        if must_look and not await looked.up(("user", owner), lambda: self._access.user_exists(owner)):
            raise InvalidInput(f"there is no user {owner!r:.140}", pointer="/user_id", code="unknown_user")
        return owner

    async def _check_parameters(self, request: JobRequest, looked: "_Looked", *, fresh: bool) -> int:
        """Check the parameters and return the revision of the task whose schema they satisfy.

        A schema is kept until an insert finds its revision outdated, but only the newest may refuse.
        """
        if not fresh and (known := self._schemas.get(request.task_id)):
            with suppress(InvalidParameters):
                known[1].check(request.parameters)
                return known[0]
        task_id = request.task_id
        newest = await looked.up(("task", task_id), lambda: self._newest_schema(task_id))
        if newest is None:
            raise UnknownTask(f"there is no task {task_id!r:.140}; create it first", pointer="/task_id")
        revision, schema = newest
        schema.check(request.parameters)
        return revision

    async def _newest_schema(self, task_id: str) -> tuple[int, ParameterSchema] | None:
        found = await self._tasks.schema_of(task_id)
        if found is None:
            self._schemas.pop(task_id, None)
            return None
        revision, schema = found
        known = self._schemas[task_id] = (revision, ParameterSchema(schema))
        return known

    async def _ensure_queue(self, request: JobRequest, looked: "_Looked") -> None:
        queue = request.queue
        if queue is None:
            return
        if await looked.up(("queue", queue), lambda: self._queues.find(queue)) is None:
            raise await looked.up(("no queue", queue), lambda: self._queues.unknown(queue))


class _Looked:
    """What one request has looked up in the database: ten thousand jobs mostly share owner, queue and task."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Any] = {}

    async def up(self, what: tuple[str, str], look: Callable[[], Awaitable[T]]) -> T:
        """Return what is known, or look."""
        if what not in self._found:
            self._found[what] = await look()
        found: T = self._found[what]
        return found


class _Schedules:
    """The schedules of one request, checked at one moment. Jobs created together mostly share a few of them."""

    def __init__(self, now: datetime, aliases: Mapping[str, str]) -> None:
        self.now = now
        self._aliases = aliases
        self._known: dict[JobSchedule, ScheduleColumns] = {}

    def columns(self, spec: JobSchedule) -> ScheduleColumns:
        """Return the columns of a schedule. Raises `InvalidInput`."""
        known = self._known.get(spec)
        if known is None:
            known = self._known[spec] = schedule_columns(spec, now=self.now, aliases=self._aliases)
        return known
