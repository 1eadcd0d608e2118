"""`/workflows/{workflow_id}`: changing, pausing, running and deleting workflows."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, delete, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from app.api.answers import ACTIONS, CHANGES, DELETES
from app.api.batches import MAX_BATCH_BYTES
from app.api.body import StrictBody
from app.api.instants import read_instant
from app.api.job_actions import PauseRequest
from app.api.preconditions import IfMatch, etag, required_version
from app.db.clock import DatabaseClock
from app.db.reads.workflows import WorkflowDetail, WorkflowReads
from app.db.transactions import Transaction
from app.domain.access import Principal
from app.domain.workflows.definition import WorkflowPatch
from app.intake.changes import ChangeIntake
from app.intake.workflows import WorkflowIntake

ApiRequest = Request[Principal, Any, Any]


class RunRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is different in this run."""

    parameters: dict[str, Any] | None = None
    """Instead of the workflow's; null: the workflow's."""


class WorkflowRunStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The new run: it is there once a worker has begun it."""

    workflow_id: UUID
    workflow_run_id: UUID


class WorkflowDeleted(msgspec.Struct, frozen=True, kw_only=True):
    """The workflow that is gone."""

    workflow_id: UUID


class WorkflowActionsController(Controller):
    """What is done to workflows."""

    path = "/workflows/{workflow_id:uuid}"
    tags = ("Workflows",)

    @patch(
        operation_id="changeWorkflow",
        dto=StrictBody[WorkflowPatch],
        return_dto=None,
        request_max_body_size=MAX_BATCH_BYTES,
        responses=CHANGES,
    )
    async def change_workflow(
        self,
        request: ApiRequest,
        workflow_id: FromPath[UUID],
        data: JSONBody[WorkflowPatch],
        workflows: NamedDependency[WorkflowIntake],
        workflow_reads: NamedDependency[WorkflowReads],
        clock: NamedDependency[DatabaseClock],
        if_match: IfMatch = None,
    ) -> Response[WorkflowDetail]:
        """Change parts of a workflow; what is left out stays. Runs that have begun keep what they began with."""
        await workflows.change(workflow_id, data, by=request.user, if_version=required_version(if_match))
        return _answer(await workflow_reads.get(workflow_id, now=clock.now()))

    @delete(operation_id="deleteWorkflow", status_code=200, responses=DELETES)
    async def delete_workflow(
        self, request: ApiRequest, workflow_id: FromPath[UUID], workflows: NamedDependency[WorkflowIntake]
    ) -> WorkflowDeleted:
        """Delete a workflow: no run begins any more; those under way go on."""
        await workflows.delete(workflow_id, by=request.user)
        return WorkflowDeleted(workflow_id=workflow_id)

    @post(
        "/actions/run",
        operation_id="runWorkflow",
        dto=StrictBody[RunRequest],
        return_dto=None,
        responses=ACTIONS,
    )
    async def run_workflow(
        self,
        request: ApiRequest,
        workflow_id: FromPath[UUID],
        workflows: NamedDependency[WorkflowIntake],
        transaction: NamedDependency[Transaction],
        data: JSONBody[RunRequest | None] = None,
    ) -> Response[WorkflowRunStarted]:
        """Begin a run now, apart from the schedule; also while the workflow is paused."""
        parameters = data.parameters if data else None
        run_id = await workflows.run(workflow_id, parameters, by=request.user, within=transaction)
        started = WorkflowRunStarted(workflow_id=workflow_id, workflow_run_id=run_id)
        return Response(started, headers={"Location": f"/api/v1/workflow-runs/{run_id}"})

    @post(
        "/actions/pause",
        operation_id="pauseWorkflow",
        status_code=200,
        dto=StrictBody[PauseRequest],
        return_dto=None,
        responses=ACTIONS,
    )
    async def pause_workflow(
        self,
        request: ApiRequest,
        workflow_id: FromPath[UUID],
        changes: NamedDependency[ChangeIntake],
        workflow_reads: NamedDependency[WorkflowReads],
        clock: NamedDependency[DatabaseClock],
        transaction: NamedDependency[Transaction],
        data: JSONBody[PauseRequest | None] = None,
    ) -> Response[WorkflowDetail]:
        """Pause a workflow: its schedule begins no run; runs under way go on."""
        wish = data or PauseRequest()
        until = read_instant(wish.until, name="until")
        await workflow_reads.require(workflow_id)
        await changes.pause_job(
            workflow_id, reason=wish.reason, until=until, by=request.user, within=transaction
        )
        return _answer(await workflow_reads.get(workflow_id, now=clock.now(), within=transaction))

    @post("/actions/resume", operation_id="resumeWorkflow", status_code=200, responses=ACTIONS)
    async def resume_workflow(
        self,
        request: ApiRequest,
        workflow_id: FromPath[UUID],
        changes: NamedDependency[ChangeIntake],
        workflow_reads: NamedDependency[WorkflowReads],
        clock: NamedDependency[DatabaseClock],
        transaction: NamedDependency[Transaction],
    ) -> Response[WorkflowDetail]:
        """Resume a workflow from now on."""
        await workflow_reads.require(workflow_id)
        await changes.resume_job(workflow_id, by=request.user, within=transaction)
        return _answer(await workflow_reads.get(workflow_id, now=clock.now(), within=transaction))


def _answer(workflow: WorkflowDetail) -> Response[WorkflowDetail]:
    return Response(workflow, headers={"ETag": etag(workflow.version)})
