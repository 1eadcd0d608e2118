"""`/jobs/{job_id}`: changing, pausing, running and deleting jobs."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, delete, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from app.api.answers import ACTIONS, CHANGES, DELETES
from app.api.body import StrictBody
from app.api.instants import read_instant
from app.api.preconditions import IfMatch, etag, required_version
from app.api.waiting import Awaited, Wait
from app.db.clock import DatabaseClock
from app.db.reads.executions import ExecutionView
from app.db.reads.jobs import JobReads, JobView, warnings_of_job
from app.db.transactions import Transaction
from app.domain.access import Principal
from app.domain.idempotency import StoredAnswer
from app.domain.job_changes import JobPatch
from app.domain.schedule_warnings import ScheduleWarning
from app.intake.changes import ChangeIntake

ApiRequest = Request[Principal, Any, Any]
Reason = Annotated[str, msgspec.Meta(max_length=1000)]


class PauseRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why, and until when."""

    reason: Reason | None = None
    until: str | float | None = None
    """RFC 3339 or Unix seconds."""


class JobChanged(JobView, frozen=True, kw_only=True):
    """The job after the change."""

    running: list[UUID]
    """The executions that had begun and go on."""
    warnings: list[ScheduleWarning]
    """What to know about its schedule."""


class JobDeleted(msgspec.Struct, frozen=True, kw_only=True):
    """The executions that had begun and go on."""

    job_id: UUID
    running: list[UUID]


class RunStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The new execution."""

    job_id: UUID
    execution_id: UUID
    execution: ExecutionView | None = None
    """With `wait`: the execution, ended or as it stands."""


class JobActionsController(Controller):
    """What is done to jobs."""

    path = "/jobs/{job_id:uuid}"
    tags = ("Jobs",)

    @patch(operation_id="changeJob", dto=StrictBody[JobPatch], return_dto=None, responses=CHANGES)
    async def change_job(
        self,
        request: ApiRequest,
        job_id: FromPath[UUID],
        data: JSONBody[JobPatch],
        changes: NamedDependency[ChangeIntake],
        job_reads: NamedDependency[JobReads],
        clock: NamedDependency[DatabaseClock],
        if_match: IfMatch = None,
    ) -> Response[JobChanged]:
        """Change parts of a job; what is left out stays. Planned executions follow, begun ones do not."""
        version = required_version(if_match)
        changed = await changes.patch_job(job_id, data, by=request.user, if_version=version)
        return _answer(await job_reads.get(job_id, now=clock.now()), changed.running, now=clock.now())

    @delete(operation_id="deleteJob", status_code=200, responses=DELETES)
    async def delete_job(
        self, request: ApiRequest, job_id: FromPath[UUID], changes: NamedDependency[ChangeIntake]
    ) -> JobDeleted:
        """Delete a job; what waits never runs, what has begun goes on."""
        changed = await changes.delete_job(job_id, by=request.user)
        return JobDeleted(job_id=job_id, running=changed.running)

    @post(
        "/actions/pause",
        operation_id="pauseJob",
        status_code=200,
        dto=StrictBody[PauseRequest],
        return_dto=None,
        responses=ACTIONS,
    )
    async def pause_job(
        self,
        request: ApiRequest,
        job_id: FromPath[UUID],
        changes: NamedDependency[ChangeIntake],
        job_reads: NamedDependency[JobReads],
        clock: NamedDependency[DatabaseClock],
        transaction: NamedDependency[Transaction],
        data: JSONBody[PauseRequest | None] = None,
    ) -> Response[JobChanged]:
        """Pause a job; what waits never runs (a one-shot execution waits on), what has begun goes on."""
        wish = data or PauseRequest()
        until = read_instant(wish.until, name="until")
        changed = await changes.pause_job(
            job_id, reason=wish.reason, until=until, by=request.user, within=transaction
        )
        job = await job_reads.get(job_id, now=clock.now(), within=transaction)
        return _answer(job, changed.running, now=clock.now())

    @post("/actions/resume", operation_id="resumeJob", status_code=200, responses=ACTIONS)
    async def resume_job(
        self,
        request: ApiRequest,
        job_id: FromPath[UUID],
        changes: NamedDependency[ChangeIntake],
        job_reads: NamedDependency[JobReads],
        clock: NamedDependency[DatabaseClock],
        transaction: NamedDependency[Transaction],
    ) -> Response[JobChanged]:
        """Resume a job from now on."""
        changed = await changes.resume_job(job_id, by=request.user, within=transaction)
        job = await job_reads.get(job_id, now=clock.now(), within=transaction)
        return _answer(job, changed.running, now=clock.now())

    @post("/actions/run", operation_id="runJob", responses=ACTIONS)
    async def run_job(
        self,
        request: ApiRequest,
        job_id: FromPath[UUID],
        changes: NamedDependency[ChangeIntake],
        transaction: NamedDependency[Transaction],
        awaited: NamedDependency[Awaited],
        wait: Wait = None,
    ) -> Response[RunStarted]:
        """Run a job now, apart from its schedule; also while it is paused.

        `wait=SECONDS` answers when the execution has ended, or, when the time runs out, with it as it stands. A
        repeat under the same Idempotency-Key gets the first answer without it.
        """
        execution_id = await changes.run_job(job_id, by=request.user, within=transaction)
        started = RunStarted(job_id=job_id, execution_id=execution_id)
        headers = {"Location": f"/api/v1/executions/{execution_id}"}
        if wait:  # nobody runs what is not committed
            await transaction.commit(StoredAnswer(201, msgspec.json.encode(started), headers))
            execution = await awaited.execution(execution_id, seconds=wait)
            started = msgspec.structs.replace(started, execution=execution)
        return Response(started, headers=headers)


def _answer(job: JobView, running: list[UUID], *, now: datetime) -> Response[JobChanged]:
    warnings = warnings_of_job(job, now=now)
    document = JobChanged(**msgspec.structs.asdict(job), running=running, warnings=warnings)
    return Response(document, headers={"ETag": etag(job.version)})
