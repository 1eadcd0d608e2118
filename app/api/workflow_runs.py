"""`/workflow-runs`: runs of workflows, their steps, and what is done to them."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody

from app.api.answers import ACTIONS, LISTS, READS, answer
from app.api.body import StrictBody
from app.api.execution_actions import CancelRequest
from app.api.job_actions import Reason
from app.api.paging import DEFAULT_LIMIT, CursorText, Limit, window
from app.db.reads.paging import Page
from app.db.reads.workflow_runs import RunDetail, RunFilters, RunView, WorkflowRunReads
from app.db.transactions import Transaction
from app.domain.access import Principal
from app.domain.workflows.definition import MOST_STEPS, StepKey
from app.domain.workflows.progress import RunStatus
from app.intake.workflows import WorkflowIntake

ApiRequest = Request[Principal, Any, Any]


class RetryRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """From which steps on."""

    steps: Annotated[list[StepKey], msgspec.Meta(min_length=1, max_length=MOST_STEPS)] | None = None
    """These run again, and all that come after them; null: those that failed or were cancelled."""


class SkipStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which step, and why."""

    step: StepKey
    reason: Reason | None = None


class WorkflowRunsController(Controller):
    """Runs of workflows."""

    path = "/workflow-runs"
    tags = ("Workflows",)

    @get(operation_id="listAllWorkflowRuns", responses=LISTS)
    async def list_runs(
        self,
        run_reads: NamedDependency[WorkflowRunReads],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
        status: FromQuery[RunStatus | None] = None,
    ) -> Page[RunView]:
        """List the runs of all workflows, the newest first."""
        filters = RunFilters(status=status)
        return await run_reads.list_page(filters, window(limit, cursor, {"list": "runs", "status": status}))

    @get("/{workflow_run_id:uuid}", operation_id="getWorkflowRun", responses=READS)
    async def get_run(
        self, workflow_run_id: FromPath[UUID], run_reads: NamedDependency[WorkflowRunReads]
    ) -> RunDetail:
        """Get a run with its steps."""
        return await run_reads.get(workflow_run_id)

    @post(
        "/{workflow_run_id:uuid}/actions/cancel",
        operation_id="cancelWorkflowRun",
        dto=StrictBody[CancelRequest],
        return_dto=None,
        status_code=200,
        responses=ACTIONS
        | {202: answer(RunDetail, "Steps of it run; their workers were asked to stop them")},
    )
    async def cancel_run(
        self,
        request: ApiRequest,
        workflow_run_id: FromPath[UUID],
        workflows: NamedDependency[WorkflowIntake],
        run_reads: NamedDependency[WorkflowRunReads],
        transaction: NamedDependency[Transaction],
        data: JSONBody[CancelRequest | None] = None,
    ) -> Response[RunDetail]:
        """Cancel a run: 200 it is over, 202 steps of it run and were asked to stop, 409 it had ended."""
        reason = data.reason if data else None
        await workflows.cancel_run(workflow_run_id, reason=reason, by=request.user, within=transaction)
        run = await run_reads.get(workflow_run_id, within=transaction)
        return Response(run, status_code=202 if run.status is RunStatus.RUNNING else 200)

    @post(
        "/{workflow_run_id:uuid}/actions/retry",
        operation_id="retryWorkflowRun",
        dto=StrictBody[RetryRun],
        return_dto=None,
        status_code=200,
        responses=ACTIONS,
    )
    async def retry_run(
        self,
        request: ApiRequest,
        workflow_run_id: FromPath[UUID],
        workflows: NamedDependency[WorkflowIntake],
        run_reads: NamedDependency[WorkflowRunReads],
        transaction: NamedDependency[Transaction],
        data: JSONBody[RetryRun | None] = None,
    ) -> RunDetail:
        """Have steps run again, by default those that failed or were cancelled, and all that come after them."""
        steps = data.steps if data else None
        await workflows.retry_run(workflow_run_id, steps, by=request.user, within=transaction)
        return await run_reads.get(workflow_run_id, within=transaction)

    @post(
        "/{workflow_run_id:uuid}/actions/skip",
        operation_id="skipWorkflowStep",
        dto=StrictBody[SkipStep],
        return_dto=None,
        status_code=200,
        responses=ACTIONS,
    )
    async def skip_step(
        self,
        request: ApiRequest,
        workflow_run_id: FromPath[UUID],
        data: JSONBody[SkipStep],
        workflows: NamedDependency[WorkflowIntake],
        run_reads: NamedDependency[WorkflowRunReads],
        transaction: NamedDependency[Transaction],
    ) -> RunDetail:
        """Pass a step over: what comes after it goes on as if it had succeeded, without a result."""
        await workflows.skip_step(
            workflow_run_id, data.step, reason=data.reason, by=request.user, within=transaction
        )
        return await run_reads.get(workflow_run_id, within=transaction)
