"""Workflows as people read them."""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row, Select, and_, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.acting import reading
from app.db.reads.jobs import JobView, ScheduleView, view_of_columns
from app.db.reads.paging import Page, Window, older_than
from app.db.tables import jobs, workflow_definitions, workflow_runs
from app.db.transactions import Transaction
from app.domain.cursors import write_cursor
from app.domain.errors import NotFound
from app.domain.ids import shard_of
from app.domain.workflows.definition import WORKFLOW_TASK, Step


class LatestRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run of a workflow that began last."""

    workflow_run_id: UUID
    status: str
    started_at: datetime
    completed_at: datetime | None


class WorkflowView(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow as a list has it."""

    workflow_id: UUID
    user_id: str
    name: str | None
    tags: list[str]
    schedule: ScheduleView
    parameters: dict[str, Any]
    overlap: str
    deadline_seconds: float | None
    is_active: bool
    pause_reason: str | None
    paused_until: datetime | None
    created_at: datetime
    updated_at: datetime
    version: int
    definition_version: int
    """Of the steps; runs that have begun keep theirs."""
    next_occurrences: list[datetime]
    step_count: int
    latest_run: LatestRun | None = None


class WorkflowDetail(WorkflowView, frozen=True, kw_only=True):
    """A workflow with its steps."""

    steps: list[Step]


def view_of(job: JobView, **definition: Any) -> dict[str, Any]:  # noqa: ANN401 - columns
    """Return the fields of a workflow, of its job and its definition."""
    shared = set(WorkflowView.__struct_fields__) & set(JobView.__struct_fields__)
    return {name: getattr(job, name) for name in shared} | {"workflow_id": job.job_id} | definition


class WorkflowReads:
    """Reads workflows."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(
        self, workflow_id: UUID, *, now: datetime, within: Transaction | None = None
    ) -> WorkflowDetail:
        """Return a workflow. Raises `NotFound`."""
        where = and_(jobs.c.shard == shard_of(workflow_id), jobs.c.job_id == workflow_id)
        async with reading(self._engine, within) as connection:
            row = (await connection.execute(_workflows(with_steps=True).where(where))).one_or_none()
        if row is None:
            raise NotFound(f"there is no workflow {workflow_id}")
        return WorkflowDetail(**_view(row, now), steps=msgspec.convert(row.steps, list[Step]))

    async def require(self, workflow_id: UUID) -> None:
        """Do nothing for a workflow that exists. Raises `NotFound`."""
        c = jobs.c
        known = select(c.job_id).where(
            c.shard == shard_of(workflow_id), c.job_id == workflow_id, c.task_id == WORKFLOW_TASK
        )
        async with self._engine.connect() as connection:
            if (await connection.execute(known)).one_or_none() is None:
                raise NotFound(f"there is no workflow {workflow_id}")

    async def some(self, workflow_ids: Collection[UUID], *, now: datetime) -> list[WorkflowView]:
        """Return those of these workflows that exist."""
        shards = {shard_of(workflow_id) for workflow_id in workflow_ids}
        statement = _workflows().where(jobs.c.shard.in_(shards), jobs.c.job_id.in_(workflow_ids))
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all() if workflow_ids else []
        return [WorkflowView(**_view(row, now)) for row in rows]

    async def list_page(self, window: Window, *, now: datetime) -> Page[WorkflowView]:
        """Return a page of workflows, the newest first."""
        statement = (
            _workflows()
            .where(*older_than(window.cursor, jobs.c.created_at, jobs.c.job_id))
            .order_by(jobs.c.created_at.desc(), jobs.c.job_id.desc())
            .limit(window.limit + 1)
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all()
        items = [WorkflowView(**_view(row, now)) for row in rows[: window.limit]]
        more = len(rows) > window.limit
        cursor = write_cursor(items[-1].created_at, items[-1].workflow_id, window.filters) if more else None
        return Page(items, cursor)


def _workflows(*, with_steps: bool = False) -> Select[Any]:
    """Select workflows: jobs, each with its newest definition and its latest run."""
    d, r = workflow_definitions, workflow_runs
    newest = (
        select(
            d.c.version.label("definition_version"),
            d.c.overlap.label("run_overlap"),
            d.c.deadline_seconds,
            func.jsonb_array_length(d.c.steps).label("step_count"),
            *([d.c.steps] if with_steps else []),
        )
        .where(d.c.shard == jobs.c.shard, d.c.workflow_id == jobs.c.job_id)
        .order_by(d.c.version.desc())
        .limit(1)
        .lateral("definition")
    )
    latest = (
        select(
            r.c.workflow_run_id,
            r.c.status.label("run_status"),
            r.c.started_at.label("run_started_at"),
            r.c.completed_at.label("run_completed_at"),
        )
        .where(r.c.shard == jobs.c.shard, r.c.workflow_id == jobs.c.job_id)
        .order_by(r.c.started_at.desc(), r.c.workflow_run_id.desc())
        .limit(1)
        .lateral("latest")
    )
    always = jobs.c.job_id == jobs.c.job_id
    joined = jobs.join(newest, always).outerjoin(latest, always)
    columns = [column for column in jobs.columns if column.name != "overlap"]
    return select(*columns, newest, latest).select_from(joined).where(jobs.c.task_id == WORKFLOW_TASK)


def _view(row: Row[Any], now: datetime) -> dict[str, Any]:
    values = dict(row._mapping)
    job = view_of_columns({**values, "overlap": values["run_overlap"]}, now)
    latest = None
    if values["workflow_run_id"] is not None:
        latest = LatestRun(
            workflow_run_id=values["workflow_run_id"],
            status=values["run_status"],
            started_at=values["run_started_at"],
            completed_at=values["run_completed_at"],
        )
    names = ("deadline_seconds", "definition_version", "step_count")
    return view_of(job, latest_run=latest, **{name: values[name] for name in names})
