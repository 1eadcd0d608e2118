"""`/workflows/{workflow_id}`: one workflow: its graph, its schedule, its runs, its steps, its changes."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Template

from app.db.reads.audit import AuditReads
from app.db.reads.execution_list import ExecutionListReads
from app.db.reads.paging import Page
from app.db.reads.workflow_runs import RunFilters, RunView, WorkflowRunReads
from app.db.reads.workflows import WorkflowDetail, WorkflowReads
from app.domain.workflows.progress import RunStatus
from app.ui.changes import shown_changes
from app.ui.filters import AnyRequest, Chip, ListQuery
from app.ui.job_detail import JobDetails
from app.ui.live_rows import Place, asked_ids, count_newer, first_place, rows_url
from app.ui.step_pages import StepsQuery
from app.ui.visit import Visit, page, part
from app.ui.words import pretty
from app.ui.workflow_graph import picture_of_definition
from app.ui.workflow_ways import ways_to_workflow
from app.ui.workflow_words import Tally

STATUSES = tuple((status.value, status.value.lower()) for status in RunStatus)


class WorkflowRunsQuery(ListQuery, frozen=True, kw_only=True):
    """What the runs of a workflow are narrowed to."""

    workflow_id: UUID | None = None
    """Stands in the path."""
    status: RunStatus | None = None

    @classmethod
    def of(cls, workflow_id: UUID, request: AnyRequest) -> "WorkflowRunsQuery":
        """Read the query of the page of a workflow. Raises `InvalidInput`."""
        return msgspec.structs.replace(cls.read(request), workflow_id=workflow_id)

    @property
    def path(self) -> str:
        """Return the workflow's page."""
        return f"/workflows/{self.workflow_id}"

    @property
    def filters(self) -> dict[str, str]:
        """Return the filters in force."""
        return {"status": self.status.value} if self.status else {}

    @property
    def chips(self) -> list[Chip]:
        """Return the filters in force for people."""
        return [Chip("status", self.status.lower(), self.url(status=None))] if self.status else []

    def narrowed(self) -> RunFilters:
        """Return it for the database."""
        return RunFilters(workflow_id=self.workflow_id, status=self.status)


@get("/workflows/{workflow_id:uuid}")
async def show_workflow(
    visit: NamedDependency[Visit],
    workflow_id: FromPath[UUID],
    workflow_reads: NamedDependency[WorkflowReads],
    job_details: NamedDependency[JobDetails],
    run_reads: NamedDependency[WorkflowRunReads],
    execution_list: NamedDependency[ExecutionListReads],
) -> Template:
    """Show a workflow with its runs."""
    query = WorkflowRunsQuery.of(workflow_id, visit.request)
    about = await _about(visit, workflow_id, workflow_reads, job_details, run_reads)
    found = await run_reads.list_page(query.narrowed(), query.window())
    changing = [run.workflow_run_id for run in found.items if run.status is RunStatus.RUNNING]
    return page(
        "workflows/runs.html",
        visit,
        query=query,
        found=found,
        rows=rows_url(query, ids=changing, top=first_place(found, _place)),
        statuses=STATUSES,
        **await _beside(found.items, run_reads, execution_list),
        **_drawn(about),
    )


@get("/workflows/{workflow_id:uuid}/rows")
async def workflow_run_rows(
    visit: NamedDependency[Visit],
    workflow_id: FromPath[UUID],
    run_reads: NamedDependency[WorkflowRunReads],
    execution_list: NamedDependency[ExecutionListReads],
) -> Template:
    """Answer with the runs that were under way when a page was made, as they are now, and how many are new since."""
    query, asked = WorkflowRunsQuery.of(workflow_id, visit.request), asked_ids(visit.request)
    runs = await run_reads.some(asked)
    newest: Page[RunView] | None = None
    if not query.cursor:
        newest = await run_reads.list_page(query.narrowed(), query.window())
    return part(
        "workflows/run_rows.html",
        visit,
        query=query,
        runs=runs,
        newer=count_newer(visit.request, newest, _place) if newest else 0,
        **await _beside(runs, run_reads, execution_list),
    )


@get("/workflows/{workflow_id:uuid}/state")
async def workflow_state(
    visit: NamedDependency[Visit],
    workflow_id: FromPath[UUID],
    workflow_reads: NamedDependency[WorkflowReads],
    job_details: NamedDependency[JobDetails],
    run_reads: NamedDependency[WorkflowRunReads],
) -> Template:
    """Answer with the head of a workflow's page as it is now."""
    about = await _about(visit, workflow_id, workflow_reads, job_details, run_reads)
    return part("workflows/state.html", visit, **about)


@get("/workflows/{workflow_id:uuid}/steps")
async def workflow_steps(
    visit: NamedDependency[Visit],
    workflow_id: FromPath[UUID],
    workflow_reads: NamedDependency[WorkflowReads],
    job_details: NamedDependency[JobDetails],
    run_reads: NamedDependency[WorkflowRunReads],
) -> Template:
    """Show the steps of a workflow as a table."""
    about = await _about(visit, workflow_id, workflow_reads, job_details, run_reads)
    workflow: WorkflowDetail = about["workflow"]
    path = f"/workflows/{workflow_id}/steps"
    steps = StepsQuery.read(visit.request).cut(path, workflow.steps, among=workflow.step_count)
    return page("workflows/steps.html", visit, steps=steps, **_drawn(about))


@get("/workflows/{workflow_id:uuid}/changes")
async def workflow_changes(
    visit: NamedDependency[Visit],
    workflow_id: FromPath[UUID],
    workflow_reads: NamedDependency[WorkflowReads],
    job_details: NamedDependency[JobDetails],
    run_reads: NamedDependency[WorkflowRunReads],
    audit_reads: NamedDependency[AuditReads],
    before: FromQuery[int | None] = None,
) -> Template:
    """Show who changed a workflow, and what; `before`: the changes older than that one."""
    about = await _about(visit, workflow_id, workflow_reads, job_details, run_reads)
    changes = await shown_changes(audit_reads, workflow_id, before)
    return page("workflows/changes.html", visit, **changes, **_drawn(about))


@get("/workflows/{workflow_id:uuid}/api")
async def workflow_api(
    visit: NamedDependency[Visit],
    workflow_id: FromPath[UUID],
    workflow_reads: NamedDependency[WorkflowReads],
    job_details: NamedDependency[JobDetails],
    run_reads: NamedDependency[WorkflowRunReads],
) -> Template:
    """Show how to do by program and SQL what the page does."""
    about = await _about(visit, workflow_id, workflow_reads, job_details, run_reads)
    ways = ways_to_workflow(workflow_id, str(visit.request.base_url).rstrip("/"))
    return page("workflows/api.html", visit, ways=ways, **_drawn(about))


async def _about(
    visit: Visit,
    workflow_id: UUID,
    workflow_reads: WorkflowReads,
    job_details: JobDetails,
    run_reads: WorkflowRunReads,
) -> dict[str, Any]:
    """Return what every tab shows of a workflow. Raises `NotFound`."""
    workflow: WorkflowDetail = await workflow_reads.get(workflow_id, now=visit.now)
    latest = [workflow.latest_run.workflow_run_id] if workflow.latest_run else []
    counts = await run_reads.progress(latest)
    return {
        "workflow": workflow,
        "detail": await job_details.get(workflow_id, now=visit.now),
        "latest_tally": Tally.of(counts[latest[0]]) if latest else None,
        "parameters": pretty(workflow.parameters) if workflow.parameters else "",
    }


def _drawn(about: dict[str, Any]) -> dict[str, Any]:
    workflow: WorkflowDetail = about["workflow"]
    table = f"/workflows/{workflow.workflow_id}/steps"
    return about | {"picture": picture_of_definition(workflow.steps, table)}


async def _beside(
    runs: list[RunView], run_reads: WorkflowRunReads, execution_list: ExecutionListReads
) -> dict[str, Any]:
    """Return how far runs are, and who began those that somebody has begun: a run's id is that of its execution."""
    ids = [run.workflow_run_id for run in runs]
    counts = await run_reads.progress(ids)
    by_hand = [run.workflow_run_id for run in runs if run.trigger == "manual"]
    return {
        "tallies": {run_id: Tally.of(statuses) for run_id, statuses in counts.items()},
        "starters": await execution_list.starters(await execution_list.some(by_hand)),
    }


def _place(run: RunView) -> Place:
    return run.started_at, run.workflow_run_id


WORKFLOW_PAGE = [
    show_workflow,
    workflow_run_rows,
    workflow_state,
    workflow_steps,
    workflow_changes,
    workflow_api,
]
