"""Taking in workflows and what is done to their runs: check, store, wake whoever has to do with it."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from app.db.acting import once_committed
from app.db.notifier import HintSender
from app.db.reads.workflows import WorkflowReads
from app.db.stores.job_control import Changed
from app.db.stores.queues import QueueStore
from app.db.stores.tasks import TaskStore
from app.db.stores.workflows.control import RunControl
from app.db.transactions import Transaction
from app.domain.access import Principal, Role
from app.domain.errors import Conflict, InvalidInput, UnknownTask
from app.domain.idempotency import StoredAnswer
from app.domain.parameters import ParameterSchema
from app.domain.workflows.definition import (
    WORKFLOW_HANDLER,
    WORKFLOW_TASK,
    Step,
    WorkflowPatch,
    WorkflowRequest,
)
from app.domain.workflows.graph import check_steps
from app.domain.workflows.progress import PARAMETERS_LIMIT_BYTES
from app.domain.workflows.references import references_in
from app.intake.changes import ChangeIntake
from app.intake.jobs import JobIntake, Kept, Submitted

TASK = {
    "task_id": WORKFLOW_TASK,
    "name": "Workflow",
    "description": "Begins a run of a workflow. Its jobs are workflows: make them by POST /workflows.",
    "execution_handler": WORKFLOW_HANDLER,
    "max_retries": 20,
    "created_by": "onthedot",
}
"""Made when the first workflow is: what begins a run is a task like any other."""


class WorkflowIntake:
    """Creates and changes workflows, and what is done to their runs by hand."""

    def __init__(
        self,
        *,
        jobs: JobIntake,
        changes: ChangeIntake,
        runs: RunControl,
        reads: WorkflowReads,
        tasks: TaskStore,
        queues: QueueStore,
        hints: HintSender,
    ) -> None:
        self._jobs = jobs
        self._changes = changes
        self._runs = runs
        self._reads = reads
        self._tasks = tasks
        self._queues = queues
        self._hints = hints

    async def create(
        self, request: WorkflowRequest, *, by: Principal, kept: Kept | None = None
    ) -> Submitted | StoredAnswer:
        """Store a workflow; return its job, or the answer that a repeat had before.

        Raises what `JobIntake.submit` does.
        """
        by.require(Role.OPERATOR)
        _require_small(request.parameters)
        await self._check(request.steps)
        await self._ensure_task(by)
        return await self._jobs.submit(request.job(), by=by, kept=kept, workflow=request.body())

    async def change(
        self, workflow_id: UUID, patch: WorkflowPatch, *, by: Principal, if_version: int | None
    ) -> Changed:
        """Change parts of a workflow. Raises `InvalidInput`, `NotFound`, `PreconditionFailed`."""
        await self._reads.require(workflow_id)
        if isinstance(patch.parameters, dict):
            _require_small(patch.parameters)
        if isinstance(patch.steps, list):
            await self._check(patch.steps)
        workflow = patch if patch.given() else None
        return await self._changes.patch_job(
            workflow_id, patch.job(), by=by, if_version=if_version, workflow=workflow
        )

    async def delete(self, workflow_id: UUID, *, by: Principal) -> Changed:
        """Delete a workflow: no run begins any more; those under way go on. Raises `NotFound`."""
        await self._reads.require(workflow_id)
        return await self._changes.delete_job(workflow_id, by=by)

    async def run(
        self,
        workflow_id: UUID,
        parameters: dict[str, object] | None,
        *,
        by: Principal,
        within: Transaction | None = None,
    ) -> UUID:
        """Begin a run now, apart from the schedule; return it. Raises `NotFound`, `QuotaExceeded`."""
        await self._reads.require(workflow_id)
        own = None if parameters is None else msgspec.json.encode(parameters).decode()
        return await self._changes.run_job(workflow_id, by=by, parameters=own, within=within)

    async def cancel_run(
        self, run_id: UUID, *, reason: str | None, by: Principal, within: Transaction | None = None
    ) -> None:
        """Stop a run. Raises `NotFound`, `Conflict`."""
        by.require(Role.OPERATOR)
        cause = f"cancelled by {by.user_id}: {reason or 'no reason given'}"
        moved = await self._runs.cancel(run_id, cause=cause, reason=reason, actor=by.actor, within=within)
        once_committed(within, lambda: moved.announce(self._hints))

    async def retry_run(
        self, run_id: UUID, steps: Sequence[str] | None, *, by: Principal, within: Transaction | None = None
    ) -> None:
        """Have steps of a run run again, with those after them. Raises `NotFound`, `InvalidInput`, `Conflict`."""
        by.require(Role.OPERATOR)
        moved = await self._runs.retry(run_id, steps, actor=by.actor, within=within)
        once_committed(within, lambda: moved.announce(self._hints))

    async def skip_step(
        self,
        run_id: UUID,
        step: str,
        *,
        reason: str | None,
        by: Principal,
        within: Transaction | None = None,
    ) -> None:
        """Pass a step over. Raises `NotFound`, `InvalidInput`, `Conflict`."""
        by.require(Role.OPERATOR)
        cause = f"by {by.user_id}: {reason or 'no reason given'}"
        moved = await self._runs.skip(run_id, step, cause=cause, reason=reason, actor=by.actor, within=within)
        once_committed(within, lambda: moved.announce(self._hints))

    async def _check(self, steps: Sequence[Step]) -> None:
        """Check steps: the graph, their tasks and queues, and parameters that are known already."""
        check_steps(steps)
        schemas = await self._tasks.schemas_of({step.task_id for step in steps})
        checks = {task_id: ParameterSchema(schema) for task_id, schema in schemas.items()}
        queues = {step.queue for step in steps if step.queue is not None}
        missing = {queue for queue in queues if await self._queues.find(queue) is None}
        for index, step in enumerate(steps):
            pointer = f"/steps/{index}"
            if step.task_id not in checks or step.task_id == WORKFLOW_TASK:
                detail = f"there is no task {step.task_id!r:.140}; create it first"
                raise UnknownTask(detail, pointer=f"{pointer}/task_id")
            if step.queue in missing:
                raise (await self._queues.unknown(step.queue or "")).within(pointer)
            _check_parameters(step, checks[step.task_id], pointer)

    async def _ensure_task(self, by: Principal) -> None:
        if await self._tasks.schema_of(WORKFLOW_TASK) is None:
            try:
                await self._tasks.create(TASK, by=by)
            except Conflict:
                return  # somebody else has made it this moment


def _require_small(parameters: dict[str, object]) -> None:
    """Refuse parameters that no execution may have: the body of a workflow may be larger. Raises `InvalidInput`."""
    size = len(msgspec.json.encode(parameters))
    if size > PARAMETERS_LIMIT_BYTES:
        detail = f"{size:,} bytes; the parameters of a run are {PARAMETERS_LIMIT_BYTES:,} at most"
        raise InvalidInput(detail, pointer="/parameters")


def _check_parameters(step: Step, schema: ParameterSchema, pointer: str) -> None:
    """Check parameters without references; the others are checked when they are known, by who runs them."""
    if any(True for _ in references_in(step.parameters)):
        return
    try:
        schema.check(step.parameters)
    except InvalidInput as error:
        raise error.within(pointer) from None
