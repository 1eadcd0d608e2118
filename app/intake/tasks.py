"""Taking in tasks: check what can be checked before anything is stored."""

from typing import Any

import msgspec
from msgspec import UNSET

from app.db.stores.queues import QueueStore
from app.db.stores.tasks import Task, TaskStore
from app.db.transactions import Transaction
from app.domain.access import Principal
from app.domain.errors import Conflict, InvalidInput
from app.domain.failure_rules import check_rules
from app.domain.limits import check_key
from app.domain.parameters import ParameterSchema
from app.domain.tasks import ResourcePatch, TaskPatch, TaskReplacement, TaskRequest, check_handler
from app.domain.workflows.definition import WORKFLOW_TASK


class TaskIntake:
    """Creates and changes tasks; reads go straight through."""

    def __init__(
        self, *, tasks: TaskStore, queues: QueueStore, allow_private_targets: bool, allow_shell: bool
    ) -> None:
        self._tasks = tasks
        self._queues = queues
        self._allow_private_targets = allow_private_targets
        self._allow_shell = allow_shell

    async def get(self, task_id: str) -> Task:
        """Return a task. Raises `NotFound`."""
        return await self._tasks.get(task_id)

    async def list_page(self, *, limit: int, after: str | None) -> list[Task]:
        """Return up to `limit` tasks in the order of their ids, those after `after`."""
        return await self._tasks.list_page(limit=limit, after=after)

    async def create(self, request: TaskRequest, *, by: Principal, within: Transaction | None = None) -> Task:
        """Store a new task. Raises `InvalidInput` and `Conflict`."""
        _require_others(request.task_id)
        values = {"task_id": request.task_id, "created_by": by.user_id}
        values |= await self._definition(request, request.task_id)
        return await self._tasks.create(values, by=by, within=within)

    async def replace(
        self, task_id: str, request: TaskReplacement, *, by: Principal, if_version: int | None
    ) -> Task:
        """Give a task a whole new definition. Raises `InvalidInput`, `NotFound`, `PreconditionFailed`, `Conflict`."""
        _require_others(task_id)
        values = await self._definition(request, task_id)
        return await self._tasks.change(task_id, values, by=by, if_version=if_version)

    async def patch(self, task_id: str, request: TaskPatch, *, by: Principal, if_version: int | None) -> Task:
        """Change parts of a task. Raises `InvalidInput`, `NotFound`, `PreconditionFailed`, `Conflict`."""
        values = _given(request)
        if not _FIXED.isdisjoint(values):
            _require_others(task_id)
        resources = values.pop("resource_requirements", None)
        if isinstance(resources, ResourcePatch):
            values |= _given(resources)
        if "queue" in values and await self._queues.find(values["queue"]) is None:
            raise await self._queues.unknown(values["queue"])
        current = (await self._tasks.get(task_id)).resource_requirements
        self._check(values, delays=msgspec.structs.asdict(current) | values)
        return await self._tasks.change(task_id, values, by=by, if_version=if_version)

    async def delete(self, task_id: str, *, by: Principal) -> None:
        """Delete a task. Raises `NotFound`, and `Conflict` while jobs use it."""
        await self._tasks.delete(task_id, by=by)

    async def _definition(self, request: TaskRequest | TaskReplacement, task_id: str) -> dict[str, Any]:
        """Return the columns of a whole definition, defaults filled in."""
        queue = await self._queues.find(request.queue)
        if queue is None:
            raise await self._queues.unknown(request.queue)
        values = {
            "name": request.name or task_id,
            "description": request.description,
            "execution_handler": request.execution_handler,
            "parameter_schema": request.parameter_schema,
            "failure_rules": request.failure_rules,
            "queue": request.queue,
            "priority": queue.priority if request.priority is None else request.priority,
            "labels": request.labels,
            "concurrency": request.concurrency,
            "concurrency_key": request.concurrency_key,
            "concurrency_limit": request.concurrency_limit,
            "rate_limit": request.rate_limit,
        } | msgspec.structs.asdict(request.resource_requirements)
        self._check(values, delays=values)
        return values

    def _check(self, values: dict[str, Any], *, delays: dict[str, Any]) -> None:
        """Check columns that are to be stored, and the delays as they will be then."""
        if "execution_handler" in values:
            check_handler(
                values["execution_handler"],
                allow_private_targets=self._allow_private_targets,
                allow_shell=self._allow_shell,
            )
        if "parameter_schema" in values:
            ParameterSchema(values["parameter_schema"])
        check_rules(values.get("failure_rules", ()))
        check_key(values.get("concurrency_key"))
        if delays["retry_max_delay_seconds"] < delays["retry_delay_seconds"]:
            raise InvalidInput(
                "retry_max_delay_seconds is less than retry_delay_seconds",
                pointer="/resource_requirements/retry_max_delay_seconds",
            )


_FIXED = frozenset({"execution_handler", "parameter_schema"})
"""What begins the runs of workflows: without it none would."""


def _require_others(task_id: str) -> None:
    if task_id == WORKFLOW_TASK:
        raise Conflict(
            f"{task_id} is what begins the runs of workflows; its queue, priority and retries may be changed"
        )


def _given(patch: TaskPatch | ResourcePatch) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(patch).items() if value is not UNSET}
