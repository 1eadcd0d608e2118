"""`/executions/{execution_id}/actions`: cancelling, and running again."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from app.api.answers import ACTIONS, answer
from app.api.body import StrictBody
from app.api.job_actions import Reason
from app.db.reads.executions import ExecutionReads, ExecutionView
from app.db.stores.execution_control import Cancelling
from app.db.transactions import Transaction
from app.domain.access import Principal
from app.domain.errors import Conflict
from app.intake.changes import ChangeIntake

ApiRequest = Request[Principal, Any, Any]


class CancelRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why."""

    reason: Reason | None = None


class RunAgain(msgspec.Struct, frozen=True, kw_only=True):
    """The new execution, and the one it runs again."""

    execution_id: UUID
    retried_from: UUID


class ExecutionActionsController(Controller):
    """What is done to executions."""

    path = "/executions/{execution_id:uuid}/actions"
    tags = ("Executions",)

    @post(
        "/cancel",
        operation_id="cancelExecution",
        dto=StrictBody[CancelRequest],
        return_dto=None,
        status_code=200,
        responses=ACTIONS | {202: answer(ExecutionView, "It runs; its worker was asked to stop it")},
    )
    async def cancel(
        self,
        request: ApiRequest,
        execution_id: FromPath[UUID],
        changes: NamedDependency[ChangeIntake],
        execution_reads: NamedDependency[ExecutionReads],
        transaction: NamedDependency[Transaction],
        data: JSONBody[CancelRequest | None] = None,
    ) -> Response[ExecutionView]:
        """Cancel an execution: 200 it will never run, 202 its worker was asked to stop it, 409 it had ended."""
        reason = data.reason if data else None
        outcome = await changes.cancel_execution(
            execution_id, reason=reason, by=request.user, within=transaction
        )
        execution = await execution_reads.get(execution_id, within=transaction)
        if outcome is Cancelling.ENDED:
            raise Conflict(f"the execution had ended already: {execution.status}")
        return Response(execution, status_code=200 if outcome is Cancelling.CANCELLED else 202)

    @post("/retry", operation_id="retryExecution", responses=ACTIONS)
    async def retry(
        self,
        request: ApiRequest,
        execution_id: FromPath[UUID],
        changes: NamedDependency[ChangeIntake],
        execution_reads: NamedDependency[ExecutionReads],
        transaction: NamedDependency[Transaction],
    ) -> Response[RunAgain]:
        """Run a finished execution's work again, with its parameters, as a new execution."""
        await execution_reads.get(execution_id)
        new_id = await changes.retry_execution(execution_id, by=request.user, within=transaction)
        return Response(
            RunAgain(execution_id=new_id, retried_from=execution_id),
            headers={"Location": f"/api/v1/executions/{new_id}"},
        )
