"""`/jobs`: tasks bound to parameters, a schedule and an owner."""

from typing import Annotated, Any, NamedTuple
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from app.api.answers import CREATES, LISTS, READS, answer
from app.api.body import StrictBody
from app.api.idempotency import IdempotencyKey, idempotent, replayed
from app.api.instants import read_instant
from app.api.paging import DEFAULT_LIMIT, CursorText, FilterText, Include, Limit, window
from app.api.preconditions import etag
from app.api.waiting import Awaited, Wait
from app.db.clock import DatabaseClock
from app.db.reads.executions import ExecutionFilters, ExecutionReads, ExecutionView
from app.db.reads.jobs import JobFilters, JobReads, JobView, view_of_new, warnings_of_job
from app.db.reads.paging import Page
from app.db.stores.jobs import Existing
from app.domain.access import Principal
from app.domain.idempotency import StoredAnswer
from app.domain.jobs import JobRequest
from app.domain.schedule_warnings import ScheduleWarning
from app.domain.statuses import Status
from app.domain.unique import Fate
from app.intake.jobs import JobIntake, Kept, Submitted

ApiRequest = Request[Principal, Any, Any]
CreatedAfter = Annotated[str | None, QueryParameter(description="RFC 3339 or Unix seconds")]


class JobCreated(JobView, frozen=True, kw_only=True):
    """The new job, or the one that holds its unique key; `execution_id` where it runs once."""

    status: Fate = Fate.CREATED
    execution_id: UUID | None = None
    execution: ExecutionView | None = None
    """With `wait`: the execution, ended or as it stands."""
    warnings: list[ScheduleWarning]
    """What to know about its schedule."""


class JobCreation(NamedTuple):
    """What creates a job and waits for its execution. Litestar gathers several dependencies in a task group, which
    takes a sixth of the time of a POST; one it just calls."""

    jobs: JobIntake
    awaited: Awaited


class JobsController(Controller):
    """Jobs."""

    path = "/jobs"
    tags = ("Jobs",)

    @post(
        operation_id="createJob",
        dto=StrictBody[JobRequest],
        return_dto=None,
        responses=CREATES
        | {
            200: answer(JobCreated, "The job that holds the unique key: kept (`exists`), or `replaced`"),
            201: answer(JobCreated, "The new job"),
        },
    )
    async def create_job(
        self,
        request: ApiRequest,
        data: JSONBody[JobRequest],
        job_creation: NamedDependency[JobCreation],
        idempotency_key: IdempotencyKey = None,
        wait: Wait = None,
    ) -> Response[Any]:
        """Create a job, or, where its `unique_key` is held, answer with the job that holds it.

        `wait=SECONDS` answers when its execution has ended, or, when the time runs out, with it as it stands.
        """
        repeat = await idempotent(request, idempotency_key)
        kept = Kept(repeat, _kept_answer) if repeat else None
        done = await job_creation.jobs.submit(data, by=request.user, kept=kept)
        if isinstance(done, StoredAnswer):
            return await _answer_again(done, wait, job_creation.awaited)
        created = _created(done)
        if wait and created.execution_id:
            execution = await job_creation.awaited.execution(created.execution_id, seconds=wait)
            created = msgspec.structs.replace(created, execution=execution)
        return Response(created, status_code=_status(created), headers=_headers(created))

    @get(operation_id="listJobs", responses=LISTS)
    async def list_jobs(
        self,
        job_reads: NamedDependency[JobReads],
        clock: NamedDependency[DatabaseClock],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
        created_after: CreatedAfter = None,
        user_id: FilterText = None,
        task_type: FilterText = None,
    ) -> Page[JobView]:
        """List jobs, the newest first. `task_type` is a task's id."""
        filters = {"user_id": user_id, "task_type": task_type, "created_after": created_after}
        return await job_reads.list_page(
            JobFilters(
                user_id=user_id,
                task_id=task_type,
                created_after=read_instant(created_after, name="created_after"),
            ),
            window(limit, cursor, filters),
            now=clock.now(),
        )

    @get("/{job_id:uuid}", operation_id="getJob", responses=READS)
    async def get_job(
        self,
        job_id: FromPath[UUID],
        job_reads: NamedDependency[JobReads],
        clock: NamedDependency[DatabaseClock],
    ) -> Response[JobView]:
        """Get a job."""
        job = await job_reads.get(job_id, now=clock.now())
        return Response(job, headers={"ETag": etag(job.version)})

    @get(
        "/{job_id:uuid}/executions",
        operation_id="listJobExecutions",
        responses=READS,
    )
    async def list_job_executions(
        self,
        job_id: FromPath[UUID],
        job_reads: NamedDependency[JobReads],
        execution_reads: NamedDependency[ExecutionReads],
        clock: NamedDependency[DatabaseClock],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
        include: Include = None,
        status: FromQuery[Status | None] = None,
    ) -> Page[ExecutionView]:
        """List a job's executions, the newest instant first.

        Without `status` those that have started, have ended or whose instant has come; `include=future` shows all.
        """
        filters = ExecutionFilters(job_id=job_id, status=status, include_future=include is not None)
        page = await execution_reads.list_page(
            filters, window(limit, cursor, {"job_id": str(job_id), "status": status, "include": include})
        )
        if not page.items:
            await job_reads.get(job_id, now=clock.now())  # tells "none yet" from "no such job"
        return page


def _created(submitted: Submitted) -> JobCreated:
    item = submitted.items[0]
    if isinstance(item, Existing):
        view, fate, execution_id = item.job, item.fate, item.execution_id
    else:
        view, fate, execution_id = (
            view_of_new(submitted.jobs[0]),
            Fate.CREATED,
            submitted.jobs[0].execution_id,
        )
    warnings = warnings_of_job(view, now=view.updated_at)
    fields = msgspec.structs.asdict(view)
    return JobCreated(**fields, status=fate, execution_id=execution_id, warnings=warnings)


def _status(created: JobCreated) -> int:
    return 201 if created.status is Fate.CREATED else 200


def _kept_answer(submitted: Submitted) -> StoredAnswer:
    created = _created(submitted)
    return StoredAnswer(_status(created), msgspec.json.encode(created), _headers(created))


async def _answer_again(answer: StoredAnswer, wait: float | None, awaited: Awaited) -> Response[bytes]:
    """Answer as the first time; who waits gets the execution as it is now, which then had just been created."""
    document = msgspec.json.decode(answer.body) if wait else {}
    if wait and (execution_id := document.get("execution_id")):
        document["execution"] = await awaited.execution(UUID(execution_id), seconds=wait)
        answer = msgspec.structs.replace(answer, body=msgspec.json.encode(document))
    return replayed(answer)


def _headers(created: JobCreated) -> dict[str, str]:
    return {"ETag": etag(created.version), "Location": f"/api/v1/jobs/{created.job_id}"}
