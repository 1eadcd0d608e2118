"""`/workflow-runs/{run_id}`: one run, how far it is, and what becomes of each of its steps."""

from collections import Counter
from typing import Any
from uuid import UUID

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect, Template

from app.db.reads.audit import AuditReads
from app.db.reads.execution_list import ExecutionListReads
from app.db.reads.executions import ExecutionReads
from app.db.reads.workflow_runs import RunDetail, WorkflowRunReads
from app.domain.errors import NotFound
from app.domain.workflows.definition import WORKFLOW_TASK
from app.domain.workflows.progress import RunStatus
from app.domain.workflows.rules import StepStatus
from app.ui.step_pages import StepsQuery
from app.ui.visit import Visit, page, part
from app.ui.words import pretty
from app.ui.workflow_graph import picture_of_run
from app.ui.workflow_words import Tally, can_be_retried, lines_of

SHOWN_CHANGES = 30
OFTEN, SELDOM = "1s", "3s"
"""How often a page is refreshed at most: with many steps it is large."""
MANY_STEPS = 60


@get("/workflow-runs/{run_id:uuid}", name="workflow_run")
async def show_run(
    visit: NamedDependency[Visit],
    run_id: FromPath[UUID],
    run_reads: NamedDependency[WorkflowRunReads],
    execution_reads: NamedDependency[ExecutionReads],
    execution_list: NamedDependency[ExecutionListReads],
    audit_reads: NamedDependency[AuditReads],
) -> Template | Redirect:
    """Show a run. One that no worker has begun yet is an execution that waits: that one's page says for what."""
    try:
        run = await run_reads.get(run_id, with_results=False)
    except NotFound:
        if (await execution_reads.get(run_id)).task_id != WORKFLOW_TASK:
            raise
        return Redirect(f"/executions/{run_id}", status_code=303)
    return page(
        "workflow_runs/detail.html",
        visit,
        base_url=str(visit.request.base_url).rstrip("/"),
        parameters=pretty(run.parameters) if run.parameters else "",
        **await _now(run, visit, execution_list, audit_reads),
    )


@get("/workflow-runs/{run_id:uuid}/now")
async def run_now(
    visit: NamedDependency[Visit],
    run_id: FromPath[UUID],
    run_reads: NamedDependency[WorkflowRunReads],
    execution_list: NamedDependency[ExecutionListReads],
    audit_reads: NamedDependency[AuditReads],
) -> Template:
    """Answer with the part of the page that changes while a run is under way."""
    run = await run_reads.get(run_id, with_results=False)
    return part("workflow_runs/now.html", visit, **await _now(run, visit, execution_list, audit_reads))


async def _now(
    run: RunDetail, visit: Visit, execution_list: ExecutionListReads, audit_reads: AuditReads
) -> dict[str, Any]:
    query, lines = StepsQuery.read(visit.request), lines_of(run)
    address = f"/workflow-runs/{run.workflow_run_id}"
    counts = Counter(step.status for step in run.steps)
    statuses = query.statuses()
    shown = [line for line in lines if statuses is None or line.step.status in statuses]
    begun_by = await execution_list.some([run.workflow_run_id])
    return {
        "run": run,
        "address": address,
        "query": query,
        "tally": Tally.of(counts),
        "tabs_items": query.tabs(address, counts),
        "failed": [line for line in lines if line.step.status == StepStatus.FAILED],
        "steps": query.cut(address, shown, among=len(lines)),
        "picture": picture_of_run(lines),
        "starter": (await execution_list.starters(begun_by)).get(run.workflow_run_id),
        "is_live": run.status is RunStatus.RUNNING,
        "every": SELDOM if len(run.steps) > MANY_STEPS else OFTEN,
        "can_be_retried": can_be_retried(run),
        "changes": await audit_reads.of("workflow_run", str(run.workflow_run_id), limit=SHOWN_CHANGES),
    }


WORKFLOW_RUN_PAGES = [show_run, run_now]
