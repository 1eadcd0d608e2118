"""Tasks as people look at them: their definitions, how much they are used, and how their runs go."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, RowMapping, Select, func, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.queries import load
from app.db.reads.executions import ErrorView
from app.db.reads.paging import Page
from app.db.stores.tasks import Task, task_of
from app.db.tables import queues, tasks
from app.domain.errors import NotFound
from app.domain.retry import Backoff, RetryPolicy

T = TypeVar("T", bound=msgspec.Struct)

MOST_JOBS = 200
"""Jobs of a task that are counted; this many are that many or more."""
MOST_QUEUES = 500
_DESCRIPTION_CHARACTERS = 200
_PLAIN = ("task_id", "name", "execution_handler", "queue", "priority", "timeout_seconds", "version")
_RETRY = ("retry_policy", "retry_delay_seconds", "retry_max_delay_seconds")


class Retries(msgspec.Struct, frozen=True):
    """How often a task's executions are tried again, and after how long."""

    count: int
    of_queue: bool
    """The task leaves the count to its queue."""
    backoff: Backoff


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task in a list."""

    task_id: str
    name: str
    description: str
    """The beginning of it."""
    execution_handler: str
    queue: str
    priority: int
    timeout_seconds: float
    version: int
    retries: Retries


class TaskDetail(msgspec.Struct, frozen=True):
    """A task, and the retries that its queue makes of it."""

    task: Task
    retries: Retries


class TaskFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How much a task is used. What ended is counted over the last 24 hours."""

    jobs: int = 0
    """Counted to `MOST_JOBS`."""
    running: int = 0
    completed: int = 0
    failed: int = 0
    last_run_at: datetime | None = None
    """When an execution ended last: exact for a recent one, else to the minute or the quarter of an hour."""

    @property
    def success(self) -> float | None:
        """Return the share of runs that succeeded; None without any."""
        ended = self.completed + self.failed
        return self.completed / ended if ended else None


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """What ended in a span of time."""

    begins_at: datetime
    completed: int
    failed: int
    others: int
    late: int
    run_ms_sum: float


class TaskFailure(msgspec.Struct, frozen=True, kw_only=True):
    """An execution of a task that failed."""

    execution_id: UUID
    job_id: UUID
    job_name: str | None
    scheduled_time: datetime
    completed_at: datetime
    attempt_number: int
    max_attempts: int
    error: ErrorView


class QueueChoice(msgspec.Struct, frozen=True):
    """A queue that a task may name, with what it gives to tasks that say nothing of their own."""

    queue: str
    priority: int
    max_retries: int


class TaskFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of tasks is narrowed to."""

    text: str | None = None
    """Stands in the id or the name."""
    kind: str | None = None
    """Of handler: `http`, `python`, `shell`, `builtin`."""
    queue: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the filters as SQL conditions."""
        found: list[ColumnElement[bool]] = []
        if self.text is not None:
            named = (tasks.c.task_id, tasks.c.name)
            found.append(or_(*(column.icontains(self.text, autoescape=True) for column in named)))
        if self.kind is not None:
            found.append(tasks.c.execution_handler.startswith(f"{self.kind}:", autoescape=True))
        if self.queue is not None:
            found.append(tasks.c.queue == self.queue)
        return found


class TaskReads:
    """Reads tasks."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, task_id: str) -> TaskDetail:
        """Return a task. Raises `NotFound`."""
        statement = (
            select(tasks, queues.c.max_retries.label("queue_retries"))
            .join(queues, queues.c.queue == tasks.c.queue)
            .where(tasks.c.task_id == task_id)
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        if row is None:
            raise NotFound(f"there is no task {task_id!r:.140}")
        return TaskDetail(task_of(row), _retries(row))

    async def list_page(self, filters: TaskFilters, *, limit: int, after: str | None) -> Page[TaskRow]:
        """Return a page of tasks in the order of their ids; the cursor is the last one's id."""
        statement = _rows().where(*filters.conditions()).order_by(tasks.c.task_id).limit(limit + 1)
        found = await self._found(statement if after is None else statement.where(tasks.c.task_id > after))
        return Page(found[:limit], found[limit - 1].task_id if len(found) > limit else None)

    async def some(self, task_ids: Collection[str]) -> list[TaskRow]:
        """Return those of these tasks that exist."""
        return await self._found(_rows().where(tasks.c.task_id.in_(task_ids)))

    async def queues(self) -> list[QueueChoice]:
        """Return the queues that there are, the first `MOST_QUEUES`."""
        columns = (queues.c[name] for name in QueueChoice.__struct_fields__)
        async with self._engine.connect() as connection:
            rows = await connection.execute(select(*columns).order_by(queues.c.queue).limit(MOST_QUEUES))
            return [QueueChoice(*row) for row in rows]

    async def figures(self, task_ids: Collection[str]) -> Mapping[str, TaskFigures]:
        """Return how much each of these tasks is used."""
        rows = await self._rows(load("task_figures"), list(task_ids), MOST_JOBS)
        return {row["task_id"]: _as(row, TaskFigures) for row in rows}

    async def course(self, task_id: str, *, span_seconds: int, spans: int) -> list[Span]:
        """Return what ended of a task, span by span, up to now."""
        return [_as(row, Span) for row in await self._rows(load("task_course"), task_id, span_seconds, spans)]

    async def failures(self, task_id: str, *, limit: int) -> list[TaskFailure]:
        """Return the newest failures of a task, as far as they are among the newest of the house."""
        rows = await self._rows(load("task_failures"), task_id, limit)
        return [_as(row, TaskFailure) for row in rows]

    async def _found(self, statement: Select[Any]) -> list[TaskRow]:
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [TaskRow(**_plain(row), retries=_retries(row)) for row in rows]

    async def _rows(self, statement: str, *parameters: object) -> list[RowMapping]:
        async with self._engine.connect() as connection:
            found = await connection.exec_driver_sql(statement, parameters)
            return list(found.mappings())


def _rows() -> Select[Any]:
    """Select what a list shows: not the schemas, which may be a megabyte each."""
    return select(
        *(tasks.c[name] for name in (*_PLAIN, *_RETRY, "max_retries")),
        func.left(tasks.c.description, _DESCRIPTION_CHARACTERS).label("description"),
        queues.c.max_retries.label("queue_retries"),
    ).join(queues, queues.c.queue == tasks.c.queue)


def _plain(row: RowMapping) -> dict[str, Any]:
    return {name: row[name] for name in (*_PLAIN, "description")}


def _retries(row: RowMapping) -> Retries:
    own = row["max_retries"]
    policy, delay, most = (row[name] for name in _RETRY)
    backoff = Backoff(RetryPolicy(policy), delay, most)
    return Retries(row["queue_retries"] if own is None else own, own is None, backoff)


def _as(row: RowMapping, kind: type[T]) -> T:
    return msgspec.convert({name: row[name] for name in kind.__struct_fields__}, kind)
