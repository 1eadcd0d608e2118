"""`/workflows`: the list."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import UUID

from litestar import get
from litestar.di import NamedDependency
from litestar.response import Template

from app.db.reads.workflow_runs import WorkflowRunReads
from app.db.reads.workflows import WorkflowReads, WorkflowView
from app.ui.filters import ListQuery
from app.ui.live_rows import Place, asked_ids, count_newer, first_place, rows_url
from app.ui.visit import Visit, page, part
from app.ui.workflow_words import Tally


class WorkflowsQuery(ListQuery, frozen=True, kw_only=True):
    """Which page of the list."""

    PATH: ClassVar[str] = "/workflows"


@get("/workflows", name="workflows")
async def list_workflows(
    visit: NamedDependency[Visit],
    workflow_reads: NamedDependency[WorkflowReads],
    run_reads: NamedDependency[WorkflowRunReads],
) -> Template:
    """Show a page of workflows."""
    query = WorkflowsQuery.read(visit.request)
    found = await workflow_reads.list_page(query.window(), now=visit.now)
    ids = [workflow.workflow_id for workflow in found.items]
    return page(
        "workflows/list.html",
        visit,
        query=query,
        found=found,
        rows=rows_url(query, ids=ids, top=first_place(found, _place)),
        server_url=str(visit.request.base_url).rstrip("/"),
        **await _beside(found.items, run_reads),
    )


@get("/workflows/rows")
async def workflow_rows(
    visit: NamedDependency[Visit],
    workflow_reads: NamedDependency[WorkflowReads],
    run_reads: NamedDependency[WorkflowRunReads],
) -> Template:
    """Answer with the rows of workflows that a page shows, as they are now, and with how many are new since."""
    query, asked = WorkflowsQuery.read(visit.request), asked_ids(visit.request)
    workflows = await workflow_reads.some(asked, now=visit.now)
    newest = None if query.cursor else await workflow_reads.list_page(query.window(), now=visit.now)
    return part(
        "workflows/rows.html",
        visit,
        query=query,
        workflows=workflows,
        gone=set(asked) - {workflow.workflow_id for workflow in workflows},
        newer=count_newer(visit.request, newest, _place) if newest else 0,
        **await _beside(workflows, run_reads),
    )


async def _beside(workflows: Sequence[WorkflowView], run_reads: WorkflowRunReads) -> Mapping[str, Any]:
    """Return how far the latest runs are, by their ids."""
    ids: list[UUID] = [one.latest_run.workflow_run_id for one in workflows if one.latest_run]
    counts = await run_reads.progress(ids)
    return {"tallies": {run_id: Tally.of(statuses) for run_id, statuses in counts.items()}}


def _place(workflow: WorkflowView) -> Place:
    return workflow.created_at, workflow.workflow_id


WORKFLOW_LIST = [list_workflows, workflow_rows]
