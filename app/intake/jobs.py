"""Taking in jobs: check, plan, store."""

from collections.abc import Mapping
from contextlib import suppress

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.stores.access import AccessStore
from app.db.stores.jobs import JobStore, Lane
from app.db.stores.queues import QueueStore
from app.db.stores.tasks import TaskStore
from app.db.stores.zones import ZoneAliasStore
from app.domain.access import Principal, Role
from app.domain.errors import Conflict, InvalidInput, InvalidParameters, UnknownTask
from app.domain.hints import Ready
from app.domain.jobs import JobRequest, NewJob, plan_job
from app.domain.parameters import ParameterSchema

TRIES = 3
"""A task may change between the check of the parameters and the insert; then the check is made again."""


class JobIntake:
    """Turns requests into stored jobs. Nothing is stored unless all of it is right."""

    def __init__(
        self,
        *,
        jobs: JobStore,
        tasks: TaskStore,
        queues: QueueStore,
        access: AccessStore,
        aliases: ZoneAliasStore,
        hints: HintSender,
        clock: DatabaseClock,
    ) -> None:
        self._jobs = jobs
        self._tasks = tasks
        self._queues = queues
        self._access = access
        self._aliases = aliases
        self._hints = hints
        self._clock = clock
        self._schemas: dict[str, tuple[int, ParameterSchema]] = {}

    async def submit(self, request: JobRequest, *, submitter: Principal) -> NewJob:
        """Store a job. Raises `InvalidInput` for anything wrong in the request, and `Forbidden`."""
        submitter.require(Role.OPERATOR)
        user_id = await self._owner(request, submitter)
        aliases = await self._aliases.all()
        for attempt in range(TRIES):
            version = await self._check_parameters(request, fresh=attempt > 0)
            job = self._plan(request, user_id=user_id, task_version=version, aliases=aliases)
            stored = await self._jobs.create([job])
            if job.job_id in stored:
                self._wake(job, stored[job.job_id])
                return job
            await self._ensure_queue(request)
        raise Conflict(f"the task {request.task_id} is being changed; try again")

    def _wake(self, job: NewJob, lane: Lane) -> None:
        if job.due_at is None:
            self._hints.announce_schedules()
        else:
            self._hints.announce([Ready(job.shard, lane.queue, lane.priority, job.due_at)])

    async def _owner(self, request: JobRequest, submitter: Principal) -> str:
        owner = submitter.owner(request.user_id)
        if owner != submitter.user_id and not await self._access.user_exists(owner):
            raise InvalidInput(f"there is no user {owner!r:.140}", pointer="/user_id", code="unknown_user")
        return owner

    def _plan(
        self, request: JobRequest, *, user_id: str, task_version: int, aliases: Mapping[str, str]
    ) -> NewJob:
        return plan_job(
            request,
            user_id=user_id,
            task_version=task_version,
            now=self._clock.now(),
            unix_microseconds=self._clock.unix_microseconds(),
            aliases=aliases,
        )

    async def _check_parameters(self, request: JobRequest, *, fresh: bool) -> int:
        """Check the parameters and return the version of the task whose schema they satisfy.

        A schema is kept until an insert finds its version outdated, but only the newest may refuse.
        """
        if not fresh and (known := self._schemas.get(request.task_id)):
            with suppress(InvalidParameters):
                known[1].check(request.parameters)
                return known[0]
        version, schema = await self._newest_schema(request.task_id)
        schema.check(request.parameters)
        return version

    async def _newest_schema(self, task_id: str) -> tuple[int, ParameterSchema]:
        task = await self._tasks.find(task_id)
        if task is None:
            self._schemas.pop(task_id, None)
            raise UnknownTask(f"there is no task {task_id!r:.140}; create it first", pointer="/task_id")
        known = self._schemas[task_id] = (task.version, ParameterSchema(task.parameter_schema))
        return known

    async def _ensure_queue(self, request: JobRequest) -> None:
        if request.queue is not None and await self._queues.find(request.queue) is None:
            raise await self._queues.unknown(request.queue)
