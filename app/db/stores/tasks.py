"""Tasks: create, read, change, delete, list."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import RowMapping, Select, delete, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.acting import acting
from app.db.job_creation import without_new_jobs
from app.db.stores.limits import LIMIT_BEGUN, REPLAN_TASK, RUNNING_OF_TASK
from app.db.tables import jobs, tasks, workflow_definitions
from app.db.transactions import Transaction
from app.domain.access import Principal
from app.domain.errors import Conflict, NotFound, PreconditionFailed
from app.domain.failure_rules import FailureRule
from app.domain.limits import RateLimit, rate_columns, rate_limit
from app.domain.tasks import ResourceRequirements


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task as it is read."""

    task_id: str
    name: str
    description: str
    execution_handler: str
    parameter_schema: dict[str, Any]
    resource_requirements: ResourceRequirements
    failure_rules: list[FailureRule]
    queue: str
    priority: int
    labels: dict[str, str]
    concurrency: int | None
    concurrency_key: str | None
    concurrency_limit: int | None
    rate_limit: RateLimit | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    version: int


_COPIED = frozenset({"queue", "priority", "max_retries", "concurrency_key", "concurrency_limit"})
"""What executions carry copies of."""
_KEYS = frozenset({"concurrency_key", "concurrency_limit"})
"""What holds for those that have begun, too."""
_HIDDEN = frozenset({"revision", "limited"})
_RESOURCES = tuple(ResourceRequirements.__struct_fields__)


class TaskStore:
    """Reads and writes tasks. Each method is one transaction; who changes something is `by`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, task_id: str) -> Task:
        """Return a task. Raises `NotFound`."""
        async with self._engine.connect() as connection:
            return await _get(connection, task_id)

    async def schema_of(self, task_id: str) -> tuple[int, dict[str, Any]] | None:
        """Return a task's revision and its parameter_schema, or None."""
        statement = select(tasks.c.revision, tasks.c.parameter_schema).where(tasks.c.task_id == task_id)
        async with self._engine.connect() as connection:
            row = (await connection.execute(statement)).one_or_none()
        return (row.revision, row.parameter_schema) if row else None

    async def schemas_of(self, task_ids: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return the parameter_schema of those of these tasks that exist."""
        statement = select(tasks.c.task_id, tasks.c.parameter_schema).where(tasks.c.task_id.in_(task_ids))
        async with self._engine.connect() as connection:
            return {row.task_id: row.parameter_schema for row in await connection.execute(statement)}

    async def list_page(self, *, limit: int, after: str | None) -> list[Task]:
        """Return up to `limit` tasks in the order of their ids, those after `after`."""
        statement = select(tasks).order_by(tasks.c.task_id).limit(limit)
        if after is not None:
            statement = statement.where(tasks.c.task_id > after)
        async with self._engine.connect() as connection:
            return [task_of(row) for row in (await connection.execute(statement)).mappings()]

    async def create(
        self, values: Mapping[str, object], *, by: Principal, within: Transaction | None = None
    ) -> Task:
        """Store a new task; `values` are columns. Raises `Conflict` where the id is taken."""
        async with acting(self._engine, by, within) as connection:
            try:
                stored = await connection.execute(
                    insert(tasks).values(**rate_columns(dict(values))).returning(tasks)
                )
            except IntegrityError:
                raise Conflict(f"there is a task {values['task_id']} already") from None
        return task_of(stored.mappings().one())

    async def change(
        self, task_id: str, values: Mapping[str, object], *, by: Principal, if_version: int | None
    ) -> Task:
        """Change columns of a task; waiting executions follow. Raises `NotFound` and `PreconditionFailed`."""
        async with acting(self._engine, by) as connection:
            current = await _get(connection, task_id, lock=True)
            if if_version is not None and if_version != current.version:
                raise PreconditionFailed(
                    f"the task was changed at {current.updated_at.isoformat()}; read it anew"
                )
            changed = (
                update(tasks)
                .where(tasks.c.task_id == task_id)
                .values(**rate_columns(dict(values)))  # a trigger raises the version
                .returning(tasks)
            )
            row = (await connection.execute(changed)).mappings().one()
            if _COPIED.intersection(values):
                await connection.exec_driver_sql(REPLAN_TASK, (task_id,))
            if _KEYS.intersection(values):
                running = await connection.exec_driver_sql(RUNNING_OF_TASK, (task_id,))
                await connection.exec_driver_sql(LIMIT_BEGUN, ([row.execution_id for row in running],))
            return task_of(row)

    async def delete(self, task_id: str, *, by: Principal) -> None:
        """Delete a task that no job uses. Raises `NotFound` and `Conflict`.

        Jobs are kept from being created meanwhile: `create_jobs` then finds no task. There is no foreign key,
        because every insert of a job would lock the task's row (and many at once pile up multixacts).
        """
        async with self._engine.connect() as connection:
            await _require_unused(connection, task_id)  # most refusals need no lock
        async with without_new_jobs(self._engine, by) as connection:
            await _require_unused(connection, task_id)
            await connection.execute(delete(tasks).where(tasks.c.task_id == task_id))


async def _require_unused(connection: AsyncConnection, task_id: str) -> None:
    await _get(connection, task_id)
    if await connection.scalar(select(jobs.c.job_id).where(jobs.c.task_id == task_id).limit(1)):
        raise Conflict(f"jobs of the task {task_id} exist; delete them first")
    if await connection.scalar(_workflows_with(task_id)):
        raise Conflict(f"workflows have steps of the task {task_id}; change or delete them first")


def _workflows_with(task_id: str) -> Select[Any]:
    """Select a workflow whose next run would need a task."""
    d, newer = workflow_definitions, workflow_definitions.alias()
    is_old = (
        select(newer.c.version)
        .where(
            newer.c.shard == d.c.shard, newer.c.workflow_id == d.c.workflow_id, newer.c.version > d.c.version
        )
        .exists()
    )
    exists = select(jobs.c.job_id).where(jobs.c.shard == d.c.shard, jobs.c.job_id == d.c.workflow_id).exists()
    return select(d.c.workflow_id).where(d.c.steps.contains([{"task_id": task_id}]), ~is_old, exists).limit(1)


async def _get(connection: AsyncConnection, task_id: str, *, lock: bool = False) -> Task:
    statement = select(tasks).where(tasks.c.task_id == task_id)
    found = await connection.execute(statement.with_for_update() if lock else statement)
    row = found.mappings().one_or_none()
    if row is None:
        raise NotFound(f"there is no task {task_id}")
    return task_of(row)


def task_of(row: RowMapping) -> Task:
    """Return the task of a row that has its columns."""
    values = {column.name: row[column.name] for column in tasks.columns if column.name not in _HIDDEN}
    values["rate_limit"] = rate_limit(values)
    resources = ResourceRequirements(**{name: values.pop(name) for name in _RESOURCES})
    rules = msgspec.convert(values.pop("failure_rules"), list[FailureRule])
    return Task(**values, resource_requirements=resources, failure_rules=rules)
