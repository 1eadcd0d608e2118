"""Runs of workflows as people read them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Row, Select, and_, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.acting import reading
from app.db.queries import load
from app.db.reads.paging import Page, Window, older_than
from app.db.tables import jobs, workflow_definitions, workflow_run_steps, workflow_runs
from app.db.transactions import Transaction
from app.domain.cursors import write_cursor
from app.domain.errors import NotFound
from app.domain.ids import shard_of
from app.domain.statuses import Status
from app.domain.workflows.progress import RunStatus
from app.domain.workflows.rules import StepStatus

RESULTS_SHOWN = 1000
"""Of a step that maps over a list: where there are more, they are listed with its executions."""
RESULT_BYTES_SHOWN = 4 * 1024 * 1024
"""Of a run."""
_NO_RESULTS: Mapping[tuple[str, int], Mapping[int, Any]] = {}


class Instances(msgspec.Struct, frozen=True, kw_only=True):
    """The executions of a step that maps over a list, by what they are doing."""

    total: int
    by_status: dict[str, int]


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a run."""

    key: str
    status: str
    """BLOCKED, or that of its execution; COMPLETED, FAILED, CANCELLED or SKIPPED once it has ended."""
    execution_id: UUID | None
    """Null where it has none yet, or several."""
    result: Any
    """What it returned; of a step that maps over a list, a list."""
    cause: str | None
    """Why it did not complete."""
    task_id: str
    depends_on: list[str]
    when: str
    round: int
    """How often it has begun."""
    attempt_number: int
    """Of the execution of this round that was tried most often; 0: none has been leased yet."""
    instances: Instances | None
    """Null where it does not map over a list."""
    released_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a list has it."""

    workflow_run_id: UUID
    workflow_id: UUID
    name: str | None
    version: int
    user_id: str
    status: RunStatus
    trigger: str
    scheduled_time: datetime
    parameters: dict[str, Any]
    is_queued: bool
    """It waits for another run of the workflow to end."""
    is_ending: bool
    """It is being stopped."""
    cause: str | None
    started_at: datetime
    deadline_at: datetime | None
    completed_at: datetime | None


class RunDetail(RunView, frozen=True, kw_only=True):
    """A run with its steps."""

    steps: list[StepView]


class RunFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of runs is narrowed to."""

    workflow_id: UUID | None = None
    status: RunStatus | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the filters as SQL conditions."""
        c = workflow_runs.c
        found: list[ColumnElement[bool]] = []
        if self.workflow_id is not None:
            found += [c.shard == shard_of(self.workflow_id), c.workflow_id == self.workflow_id]
        if self.status is not None:
            found.append(c.status == self.status.value)
        return found


class WorkflowRunReads:
    """Reads runs."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def list_page(self, filters: RunFilters, window: Window) -> Page[RunView]:
        """Return a page of runs, the newest first."""
        c = workflow_runs.c
        statement = (
            _runs()
            .where(*filters.conditions(), *older_than(window.cursor, c.started_at, c.workflow_run_id))
            .order_by(c.started_at.desc(), c.workflow_run_id.desc())
            .limit(window.limit + 1)
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all()
        items = [RunView(**_run(row)) for row in rows[: window.limit]]
        more = len(rows) > window.limit
        cursor = (
            write_cursor(items[-1].started_at, items[-1].workflow_run_id, window.filters) if more else None
        )
        return Page(items, cursor)

    async def some(self, run_ids: Collection[UUID]) -> list[RunView]:
        """Return those of these runs that exist, the newest first."""
        c = workflow_runs.c
        shards = {shard_of(run_id) for run_id in run_ids}
        statement = (
            _runs()
            .where(c.shard.in_(shards), c.workflow_run_id.in_(run_ids))
            .order_by(c.started_at.desc(), c.workflow_run_id.desc())
        )
        async with self._engine.connect() as connection:
            return [RunView(**_run(row)) for row in await connection.execute(statement)] if run_ids else []

    async def progress(self, run_ids: Collection[UUID]) -> Mapping[UUID, Counter[str]]:
        """Return of each of these runs how many of its steps have which status."""
        c = workflow_run_steps.c
        statement = (
            select(c.workflow_run_id, c.status, func.count().label("steps"))
            .where(c.shard.in_({shard_of(run_id) for run_id in run_ids}), c.workflow_run_id.in_(run_ids))
            .group_by(c.workflow_run_id, c.status)
        )
        found: dict[UUID, Counter[str]] = {run_id: Counter() for run_id in run_ids}
        if run_ids:
            async with self._engine.connect() as connection:
                for row in await connection.execute(statement):
                    found[row.workflow_run_id][row.status] = row.steps
        return found

    async def get(
        self, run_id: UUID, *, with_results: bool = True, within: Transaction | None = None
    ) -> RunDetail:
        """Return a run with its steps, and with what they have returned. Raises `NotFound`."""
        c = workflow_runs.c
        where = and_(c.shard == shard_of(run_id), c.workflow_run_id == run_id)
        async with reading(self._engine, within) as connection:
            row = (await connection.execute(_runs(with_steps=True).where(where))).one_or_none()
            if row is None:
                raise NotFound(f"there is no workflow run {run_id}")
            steps = await _steps(connection, row, with_results=with_results)
        return RunDetail(**_run(row), steps=steps)


def _runs(*, with_steps: bool = False) -> Select[Any]:
    r, d = workflow_runs, workflow_definitions
    named = r.outerjoin(jobs, and_(jobs.c.shard == r.c.shard, jobs.c.job_id == r.c.workflow_id))
    if not with_steps:
        return select(*r.columns, jobs.c.name).select_from(named)
    defined = and_(d.c.shard == r.c.shard, d.c.workflow_id == r.c.workflow_id, d.c.version == r.c.version)
    return select(*r.columns, jobs.c.name, d.c.steps).select_from(named.join(d, defined))


def _run(row: Row[Any]) -> dict[str, Any]:
    values = dict(row._mapping)
    found = {name: values[name] for name in RunView.__struct_fields__ if name != "is_ending"}
    is_ending = values["ends_as"] is not None and values["status"] == RunStatus.RUNNING
    return found | {"status": RunStatus(values["status"]), "is_ending": is_ending}


async def _steps(connection: AsyncConnection, run: Row[Any], *, with_results: bool) -> list[StepView]:
    c = workflow_run_steps.c
    stored = select(workflow_run_steps).where(c.shard == run.shard, c.workflow_run_id == run.workflow_run_id)
    states = {row.step: row for row in await connection.execute(stored)}
    arguments = (run.shard, f"w:{run.workflow_run_id}/", run.started_at)
    executions: dict[tuple[str, int], list[Row[Any]]] = defaultdict(list)
    for row in await connection.exec_driver_sql(load("run_executions"), arguments):
        executions[row.step, row.round].append(row)
    results = await _results(connection, arguments) if with_results else _NO_RESULTS
    found = []
    for step in run.steps:
        state = states[step["key"]]
        this = (step["key"], state.round) if state.status != StepStatus.BLOCKED else (step["key"], 0)
        found.append(_step(step, state, executions[this], results.get(this, {})))  # none of an earlier round
    return found


async def _results(
    connection: AsyncConnection, arguments: tuple[object, ...]
) -> Mapping[tuple[str, int], Mapping[int, Any]]:
    """Return what the executions of each round of a run's steps have returned, by their indexes."""
    results: dict[tuple[str, int], dict[int, Any]] = defaultdict(dict)
    limits = (RESULTS_SHOWN, RESULT_BYTES_SHOWN)
    for row in await connection.exec_driver_sql(load("run_results"), (*arguments, *limits)):
        results[row.step, row.round][row.instance] = msgspec.json.decode(row.result or "null")
    return results


def _step(
    step: Mapping[str, Any], state: Row[Any], executions: Sequence[Row[Any]], results: Mapping[int, Any]
) -> StepView:
    is_mapped = step.get("map") is not None
    by_status = {row.status: row.executions for row in executions}
    only = executions[0] if len(executions) == 1 and not is_mapped else None
    begun = [row.started_at for row in executions if row.started_at is not None]
    ended = [row.completed_at for row in executions if row.completed_at is not None]
    return StepView(
        key=step["key"],
        status=_status(state.status, by_status),
        execution_id=only.execution_id if only else None,
        result=_result(results, state.instances) if is_mapped else results.get(0),
        cause=state.cause,
        task_id=step["task_id"],
        depends_on=step.get("depends_on", []),
        when=step.get("when", "all_success"),
        round=state.round,
        attempt_number=max((row.attempt_number for row in executions), default=0),
        instances=Instances(total=state.instances, by_status=by_status) if is_mapped else None,
        released_at=state.released_at,
        started_at=min(begun, default=None),
        completed_at=state.completed_at and max(ended, default=state.completed_at),
    )


def _status(stored: str, by_status: Mapping[str, int]) -> str:
    """Return the status of a step: while it runs, the furthest one of its executions."""
    if stored != StepStatus.RUNNING:
        return stored
    furthest = (Status.RUNNING, Status.RETRYING, Status.SCHEDULED, Status.PENDING)
    return next((status for status in furthest if by_status.get(status)), stored)


def _result(results: Mapping[int, Any], instances: int) -> list[Any] | None:
    """Return the results of a step that maps over a list, in its order; null where they are too many or too large."""
    if not results or instances > RESULTS_SHOWN:
        return None if instances else []
    return [results.get(index) for index in range(instances)]
