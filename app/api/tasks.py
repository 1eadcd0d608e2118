"""`/tasks`: reusable templates of work."""

from typing import Any

from litestar import Controller, Request, Response, delete, get, patch, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from app.api.answers import CHANGES, CREATES, DELETES, LISTS, READS
from app.api.body import StrictBody
from app.api.paging import DEFAULT_LIMIT, MAX_LIMIT, CursorText, Limit, read_text_cursor, write_text_cursor
from app.api.preconditions import IfMatch, etag, required_version
from app.db.reads.paging import Page
from app.db.stores.limits import AT_ONCE_SECONDS, LimitStore
from app.db.stores.tasks import Task
from app.db.transactions import Transaction
from app.domain.access import Principal, Role
from app.domain.tasks import TaskPatch, TaskReplacement, TaskRequest
from app.intake.tasks import TaskIntake

ApiRequest = Request[Principal, Any, Any]


class TasksController(Controller):
    """Tasks."""

    path = "/tasks"
    tags = ("Tasks",)

    @get(operation_id="listTasks", responses=LISTS)
    async def list_tasks(
        self, tasks: NamedDependency[TaskIntake], limit: Limit = DEFAULT_LIMIT, cursor: CursorText = None
    ) -> Page[Task]:
        """List tasks in the order of their ids."""
        limit = min(limit, MAX_LIMIT)
        found = await tasks.list_page(limit=limit + 1, after=read_text_cursor(cursor))
        more = len(found) > limit
        return Page(found[:limit], write_text_cursor(found[limit - 1].task_id) if more else None)

    @post(
        operation_id="createTask",
        dto=StrictBody[TaskRequest],
        return_dto=None,
        responses=CREATES,
    )
    async def create_task(
        self,
        request: ApiRequest,
        data: JSONBody[TaskRequest],
        tasks: NamedDependency[TaskIntake],
        transaction: NamedDependency[Transaction],
    ) -> Response[Task]:
        """Create a task."""
        request.user.require(Role.OPERATOR)
        task = await tasks.create(data, by=request.user, within=transaction)
        return _answer(task, headers={"Location": f"/api/v1/tasks/{task.task_id}"})

    @get("/{task_id:str}", operation_id="getTask", responses=READS)
    async def get_task(self, task_id: FromPath[str], tasks: NamedDependency[TaskIntake]) -> Response[Task]:
        """Get a task."""
        return _answer(await tasks.get(task_id))

    @put(
        "/{task_id:str}",
        operation_id="replaceTask",
        dto=StrictBody[TaskReplacement],
        return_dto=None,
        responses=CHANGES,
    )
    async def replace_task(
        self,
        request: ApiRequest,
        task_id: FromPath[str],
        data: JSONBody[TaskReplacement],
        tasks: NamedDependency[TaskIntake],
        limits: NamedDependency[LimitStore],
        if_match: IfMatch = None,
    ) -> Response[Task]:
        """Replace a task's definition. Executions that have not been claimed use the new one."""
        request.user.require(Role.OPERATOR)
        version = required_version(if_match)
        task = await tasks.replace(task_id, data, by=request.user, if_version=version)
        await limits.apply_new(within_seconds=AT_ONCE_SECONDS)
        return _answer(task)

    @patch(
        "/{task_id:str}",
        operation_id="changeTask",
        dto=StrictBody[TaskPatch],
        return_dto=None,
        responses=CHANGES,
    )
    async def change_task(
        self,
        request: ApiRequest,
        task_id: FromPath[str],
        data: JSONBody[TaskPatch],
        tasks: NamedDependency[TaskIntake],
        limits: NamedDependency[LimitStore],
        if_match: IfMatch = None,
    ) -> Response[Task]:
        """Change parts of a task; what is left out stays."""
        request.user.require(Role.OPERATOR)
        version = required_version(if_match)
        task = await tasks.patch(task_id, data, by=request.user, if_version=version)
        await limits.apply_new(within_seconds=AT_ONCE_SECONDS)
        return _answer(task)

    @delete("/{task_id:str}", operation_id="deleteTask", responses=DELETES)
    async def delete_task(
        self, request: ApiRequest, task_id: FromPath[str], tasks: NamedDependency[TaskIntake]
    ) -> None:
        """Delete a task that no job uses."""
        request.user.require(Role.OPERATOR)
        await tasks.delete(task_id, by=request.user)


def _answer(task: Task, *, headers: dict[str, str] | None = None) -> Response[Task]:
    return Response(task, headers={"ETag": etag(task.version)} | (headers or {}))
