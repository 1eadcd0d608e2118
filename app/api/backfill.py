"""`actions/backfill` of jobs and workflows: executions for instants of their schedules that are past."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from app.api.answers import ACTIONS, answer
from app.api.body import StrictBody
from app.api.instants import read_instant
from app.db.reads.workflows import WorkflowReads
from app.db.stores.backfill import Made
from app.db.transactions import Transaction
from app.domain.access import Principal
from app.domain.errors import InvalidInput
from app.intake.backfill import BackfillIntake

ApiRequest = Request[Principal, Any, Any]


class BackfillRequest(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    rename={"since": "from", "until": "to"},
):
    """Which instants of the schedule, both ends included; `to` is now at the latest."""

    since: str | float
    """RFC 3339 or Unix seconds."""
    until: str | float
    dry_run: bool = False
    """Only say which instants these are."""


class BackfillMade(msgspec.Struct, frozen=True, kw_only=True):
    """The instants of the range, and the executions that were created for them; of a workflow each begins a run.

    An instant is not made up for again while an execution of an earlier backfill waits or runs.
    """

    job_id: UUID
    instants: list[datetime]
    executions: list[Made]
    dry_run: bool


class BackfillController(Controller):
    """Backfills."""

    path = "/"
    tags = ("Jobs",)

    @post(
        "/jobs/{job_id:uuid}/actions/backfill",
        operation_id="backfillJob",
        dto=StrictBody[BackfillRequest],
        return_dto=None,
        responses=ACTIONS | {200: answer(BackfillMade, "With `dry_run`: the instants")},
    )
    async def backfill_job(
        self,
        request: ApiRequest,
        job_id: FromPath[UUID],
        data: JSONBody[BackfillRequest],
        backfills: NamedDependency[BackfillIntake],
        transaction: NamedDependency[Transaction],
    ) -> Response[BackfillMade]:
        """Run a repeating job for past instants of its schedule, as it is now: up to 1,000 at a time."""
        return await _backfill(request, job_id, data, backfills, transaction)

    @post(
        "/workflows/{workflow_id:uuid}/actions/backfill",
        operation_id="backfillWorkflow",
        dto=StrictBody[BackfillRequest],
        return_dto=None,
        responses=ACTIONS | {200: answer(BackfillMade, "With `dry_run`: the instants")},
    )
    async def backfill_workflow(
        self,
        request: ApiRequest,
        workflow_id: FromPath[UUID],
        data: JSONBody[BackfillRequest],
        backfills: NamedDependency[BackfillIntake],
        workflow_reads: NamedDependency[WorkflowReads],
        transaction: NamedDependency[Transaction],
    ) -> Response[BackfillMade]:
        """Begin a run of a workflow for each past instant of its schedule: up to 1,000 at a time."""
        await workflow_reads.require(workflow_id)
        return await _backfill(request, workflow_id, data, backfills, transaction)


async def _backfill(
    request: ApiRequest,
    job_id: UUID,
    data: BackfillRequest,
    backfills: BackfillIntake,
    transaction: Transaction,
) -> Response[BackfillMade]:
    since, until = read_instant(data.since, name="from"), read_instant(data.until, name="to")
    if since is None or until is None:
        raise InvalidInput("name both ends of the range", pointer="/from")
    done = await backfills.backfill(
        job_id, since=since, until=until, dry_run=data.dry_run, by=request.user, within=transaction
    )
    made = BackfillMade(job_id=job_id, instants=done.instants, executions=done.made, dry_run=data.dry_run)
    return Response(made, status_code=200 if data.dry_run else 201)
