"""`/workflows`: jobs whose work is a graph of steps."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody

from app.api.answers import CREATES, LISTS, READS, answer
from app.api.batches import MAX_BATCH_BYTES
from app.api.body import StrictBody
from app.api.idempotency import IdempotencyKey, idempotent, replayed
from app.api.paging import DEFAULT_LIMIT, CursorText, Limit, window
from app.api.preconditions import etag
from app.db.clock import DatabaseClock
from app.db.reads.jobs import view_of_new, warnings_of_job
from app.db.reads.paging import Page
from app.db.reads.workflow_runs import RunFilters, RunView, WorkflowRunReads
from app.db.reads.workflows import WorkflowDetail, WorkflowReads, WorkflowView, view_of
from app.domain.access import Principal
from app.domain.idempotency import StoredAnswer
from app.domain.schedule_warnings import ScheduleWarning
from app.domain.workflows.definition import WorkflowRequest
from app.domain.workflows.progress import RunStatus
from app.intake.jobs import Kept, Submitted
from app.intake.workflows import WorkflowIntake

ApiRequest = Request[Principal, Any, Any]


class WorkflowCreated(WorkflowDetail, frozen=True, kw_only=True):
    """The new workflow; `workflow_run_id` where its schedule runs it once: the run is there once it has begun."""

    workflow_run_id: UUID | None = None
    warnings: list[ScheduleWarning]
    """What to know about its schedule."""


class WorkflowsController(Controller):
    """Workflows."""

    path = "/workflows"
    tags = ("Workflows",)

    @post(
        operation_id="createWorkflow",
        dto=StrictBody[WorkflowRequest],
        return_dto=None,
        request_max_body_size=MAX_BATCH_BYTES,
        responses=CREATES | {201: answer(WorkflowCreated, "The new workflow")},
    )
    async def create_workflow(
        self,
        request: ApiRequest,
        data: JSONBody[WorkflowRequest],
        workflows: NamedDependency[WorkflowIntake],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[Any]:
        """Create a workflow. What cannot be a graph of steps is refused as a whole, with a pointer."""
        repeat = await idempotent(request, idempotency_key)
        kept = Kept(repeat, lambda done: _kept_answer(done, data)) if repeat else None
        done = await workflows.create(data, by=request.user, kept=kept)
        if isinstance(done, StoredAnswer):
            return replayed(done)
        created = _created(done, data)
        return Response(created, status_code=201, headers=_headers(created))

    @get(operation_id="listWorkflows", responses=LISTS)
    async def list_workflows(
        self,
        workflow_reads: NamedDependency[WorkflowReads],
        clock: NamedDependency[DatabaseClock],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
    ) -> Page[WorkflowView]:
        """List workflows, the newest first."""
        return await workflow_reads.list_page(window(limit, cursor, {"list": "workflows"}), now=clock.now())

    @get("/{workflow_id:uuid}", operation_id="getWorkflow", responses=READS)
    async def get_workflow(
        self,
        workflow_id: FromPath[UUID],
        workflow_reads: NamedDependency[WorkflowReads],
        clock: NamedDependency[DatabaseClock],
    ) -> Response[WorkflowDetail]:
        """Get a workflow with its steps."""
        workflow = await workflow_reads.get(workflow_id, now=clock.now())
        return Response(workflow, headers={"ETag": etag(workflow.version)})

    @get("/{workflow_id:uuid}/runs", operation_id="listWorkflowRuns", responses=READS)
    async def list_runs(
        self,
        workflow_id: FromPath[UUID],
        workflow_reads: NamedDependency[WorkflowReads],
        run_reads: NamedDependency[WorkflowRunReads],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
        status: FromQuery[RunStatus | None] = None,
    ) -> Page[RunView]:
        """List a workflow's runs, the newest first."""
        filters = RunFilters(workflow_id=workflow_id, status=status)
        page = await run_reads.list_page(
            filters, window(limit, cursor, {"workflow_id": str(workflow_id), "status": status})
        )
        if not page.items:
            await workflow_reads.require(workflow_id)  # tells "none yet" from "no such workflow"
        return page


def _created(submitted: Submitted, request: WorkflowRequest) -> WorkflowCreated:
    new = submitted.jobs[0]
    job = view_of_new(new)
    fields = view_of(
        job,
        overlap=request.overlap,
        deadline_seconds=request.deadline_seconds,
        definition_version=1,
        step_count=len(request.steps),
        latest_run=None,
    )
    return WorkflowCreated(
        **fields,
        steps=request.steps,
        workflow_run_id=new.execution_id,
        warnings=warnings_of_job(job, now=job.created_at),
    )


def _kept_answer(submitted: Submitted, request: WorkflowRequest) -> StoredAnswer:
    created = _created(submitted, request)
    return StoredAnswer(201, msgspec.json.encode(created), _headers(created))


def _headers(created: WorkflowCreated) -> dict[str, str]:
    return {"ETag": etag(created.version), "Location": f"/api/v1/workflows/{created.workflow_id}"}
