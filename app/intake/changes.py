"""Taking in changes of jobs and executions: check, carry out, wake whoever has to do with it."""

from datetime import datetime
from uuid import UUID

import msgspec

from app.db.acting import once_committed
from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.reads.jobs import JobReads
from app.db.stores.execution_control import Cancelling, ExecutionControl
from app.db.stores.job_control import Changed, JobControl
from app.db.stores.queues import QueueStore
from app.db.stores.tasks import TaskStore
from app.db.stores.zones import ZoneAliasStore
from app.db.transactions import Transaction
from app.domain.access import Principal, Role
from app.domain.errors import Conflict, InvalidInput
from app.domain.failures import Category, Failure
from app.domain.ids import new_execution_id
from app.domain.job_changes import Change, JobPatch, change_of, pause, resume
from app.domain.parameters import ParameterSchema
from app.domain.workflows.definition import WORKFLOW_TASK, WorkflowPatch
from app.intake.planner import require_jobs


class ChangeIntake:
    """Changes jobs and executions for an operator."""

    def __init__(
        self,
        *,
        jobs: JobControl,
        executions: ExecutionControl,
        reads: JobReads,
        tasks: TaskStore,
        queues: QueueStore,
        aliases: ZoneAliasStore,
        hints: HintSender,
        clock: DatabaseClock,
    ) -> None:
        self._jobs = jobs
        self._executions = executions
        self._reads = reads
        self._tasks = tasks
        self._queues = queues
        self._aliases = aliases
        self._hints = hints
        self._clock = clock

    async def patch_job(
        self,
        job_id: UUID,
        patch: JobPatch,
        *,
        by: Principal,
        if_version: int | None,
        workflow: WorkflowPatch | None = None,
    ) -> Changed:
        """Change parts of a job, a workflow's with what its runs are made of.

        Raises `InvalidInput`, `NotFound`, `PreconditionFailed`.
        """
        by.require(Role.OPERATOR)
        change = change_of(patch, now=self._clock.now(), aliases=await self._aliases.all())
        await self._check(job_id, change)
        if "overlap" in change.columns and workflow is None:
            await self._require_no_workflow(job_id)
        return await self._change(job_id, change, by=by, if_version=if_version, workflow=workflow)

    async def pause_job(
        self,
        job_id: UUID,
        *,
        reason: str | None,
        until: datetime | None,
        by: Principal,
        within: Transaction | None = None,
    ) -> Changed:
        """Pause a job: what its schedule planned and nobody has begun never runs. Raises `NotFound`."""
        by.require(Role.OPERATOR)
        if until is not None and until <= self._clock.now():
            raise InvalidInput(
                "until lies in the past; leave it out to pause without an end", pointer="/until"
            )
        return await self._change(job_id, pause(reason=reason, until=until), by=by, within=within)

    async def resume_job(self, job_id: UUID, *, by: Principal, within: Transaction | None = None) -> Changed:
        """Resume a job from now on; instants that passed meanwhile stay `paused`. Raises `NotFound`."""
        by.require(Role.OPERATOR)
        return await self._change(job_id, resume(), by=by, within=within)

    async def delete_job(self, job_id: UUID, *, by: Principal) -> Changed:
        """Delete a job; what waits is cancelled. Raises `NotFound`."""
        by.require(Role.OPERATOR)
        return await self._jobs.delete(job_id, error=_cancelled(by, "its job was deleted"), actor=by.actor)

    async def run_job(
        self,
        job_id: UUID,
        *,
        by: Principal,
        parameters: str | None = None,
        within: Transaction | None = None,
    ) -> UUID:
        """Run a job now, apart from its schedule, with its parameters or these (JSON); return the execution.

        Raises `NotFound`.
        """
        by.require(Role.OPERATOR)
        execution_id = new_execution_id(job_id, self._clock.unix_microseconds())
        ready = await self._jobs.run(
            job_id,
            execution_id,
            now=self._clock.now(),
            actor=by.actor,
            parameters=parameters,
            within=within,
        )
        once_committed(within, lambda: self._hints.announce([ready]))
        return execution_id

    async def cancel_execution(
        self, execution_id: UUID, *, reason: str | None, by: Principal, within: Transaction | None = None
    ) -> Cancelling:
        """Cancel an execution: at once if it has not begun, else by asking its worker."""
        by.require(Role.OPERATOR)
        error = _cancelled(by, reason or "no reason given")
        outcome = await self._executions.cancel(
            execution_id, error=error, now=self._clock.now(), actor=by.actor, reason=reason, within=within
        )
        if outcome is Cancelling.REQUESTED:
            once_committed(within, lambda: self._hints.announce_cancel(execution_id))
        return outcome

    async def retry_execution(
        self, execution_id: UUID, *, by: Principal, within: Transaction | None = None
    ) -> UUID:
        """Run a finished execution's work again; return the new execution. Raises `Conflict`."""
        by.require(Role.OPERATOR)
        new_id = new_execution_id(execution_id, self._clock.unix_microseconds())
        ready = await self._executions.run_again(
            execution_id, new_id, now=self._clock.now(), actor=by.actor, within=within
        )
        if ready is None:
            raise Conflict(
                "only a finished execution whose job still exists can be run again; a workflow's step is run again "
                "by its run: POST /workflow-runs/{id}/actions/retry"
            )
        once_committed(within, lambda: self._hints.announce([ready]))
        return new_id

    async def _change(
        self,
        job_id: UUID,
        change: Change,
        *,
        by: Principal,
        if_version: int | None = None,
        workflow: WorkflowPatch | None = None,
        within: Transaction | None = None,
    ) -> Changed:
        changed = await self._jobs.change(
            job_id, change, if_version=if_version, actor=by.actor, workflow=workflow, within=within
        )
        once_committed(within, lambda: self._hints.announce(changed.ready))
        return changed

    async def _require_no_workflow(self, job_id: UUID) -> None:
        job = await self._reads.get(job_id, now=self._clock.now())
        if job.task_id == WORKFLOW_TASK:
            detail = "how the runs of a workflow overlap is changed by PATCH /workflows/{id}"
            raise InvalidInput(detail, pointer="/overlap")

    async def _check(self, job_id: UUID, change: Change) -> None:
        """Check what only the database can tell: the queue, and the parameters against the task's schema."""
        queue, parameters = change.columns.get("queue"), change.columns.get("parameters")
        if queue is not None and await self._queues.find(queue) is None:
            raise await self._queues.unknown(queue)
        await require_jobs(self._reads, change.columns.get("depends_on", []), now=self._clock.now())
        if parameters is not None:
            job = await self._reads.get(job_id, now=self._clock.now())
            task = await self._tasks.get(job.task_id)
            ParameterSchema(task.parameter_schema).check(msgspec.json.decode(parameters))


def _cancelled(by: Principal, reason: str) -> str:
    failure = Failure.build("Cancelled", f"cancelled by {by.user_id}: {reason}", Category.UNKNOWN)
    return msgspec.json.encode(failure).decode()
