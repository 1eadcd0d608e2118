"""`/jobs/batch` and `/batches`: many jobs in one transaction."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter

from app.api.answers import CREATES, READS, answer
from app.api.body import StrictBody
from app.api.idempotency import IdempotencyKey, idempotent, replayed
from app.api.problems import Problem, problem
from app.db.reads.batches import BatchReads, BatchView
from app.db.stores.jobs import Existing
from app.domain.access import Principal
from app.domain.conversion import convert
from app.domain.errors import InvalidInput
from app.domain.idempotency import StoredAnswer
from app.domain.jobs import JobRequest, NewJob
from app.intake.jobs import JobIntake, Kept, Submitted
from app.intake.planner import Item
from app.request_ids import request_id_of

ApiRequest = Request[Principal, Any, Any]
MAX_BATCH_BYTES = 16 * 1024 * 1024
Partial = Annotated[bool, QueryParameter(description="Store the jobs that are right, and answer 207")]


class BatchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Jobs to create together, each as in `POST /jobs`."""

    jobs: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=10_000)]


class BatchCreated(msgspec.Struct, frozen=True, kw_only=True):
    """The batch, and its jobs in the order in which they were asked for."""

    batch_id: UUID | None
    """Null where nothing was created: all hold their unique keys already."""
    job_ids: list[UUID]
    created: int
    """Without jobs that hold a unique key already, whose ids are among `job_ids`."""


class BatchItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one job of a batch."""

    status: int
    job_id: UUID | None = None
    problem: Problem | None = None


class BatchItems(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each job of a batch, in the order in which they were asked for; no batch if none was right."""

    batch_id: UUID | None
    items: list[BatchItem]


class BatchesController(Controller):
    """Batches."""

    path = "/"
    tags = ("Jobs",)

    @post(
        "/jobs/batch",
        operation_id="createJobs",
        dto=StrictBody[BatchRequest],
        return_dto=None,
        request_max_body_size=MAX_BATCH_BYTES,
        responses=CREATES
        | {
            200: answer(BatchCreated, "Nothing was created: jobs that hold the unique keys"),
            201: answer(BatchCreated, "The jobs, all of them"),
            207: answer(BatchItems, "What became of each job"),
        },
    )
    async def create_jobs(
        self,
        request: ApiRequest,
        data: JSONBody[BatchRequest],
        jobs: NamedDependency[JobIntake],
        *,
        partial: Partial = False,
        idempotency_key: IdempotencyKey = None,
    ) -> Response[Any]:
        """Create up to 10,000 jobs in one transaction: all or none, or, with `partial`, those that are right."""
        repeat = await idempotent(request, idempotency_key)

        def answered(submitted: Submitted) -> StoredAnswer:
            status, document = _answer(submitted, request, partial=partial)
            return StoredAnswer(status, msgspec.json.encode(document))

        kept = Kept(repeat, answered) if repeat else None
        done = await jobs.submit_batch(
            [_read(job) for job in data.jobs], by=request.user, partial=partial, kept=kept
        )
        if isinstance(done, StoredAnswer):
            return replayed(done)
        status, document = _answer(done, request, partial=partial)
        return Response(document, status_code=status)

    @get("/batches/{batch_id:uuid}", operation_id="getBatch", responses=READS)
    async def get_batch(
        self, batch_id: FromPath[UUID], batch_reads: NamedDependency[BatchReads]
    ) -> BatchView:
        """Get how far a batch has come."""
        return await batch_reads.get(batch_id)


def _read(job: dict[str, Any]) -> JobRequest | InvalidInput:
    """Read one job by itself, so that one that cannot be read does not spoil the others."""
    try:
        return convert(job, JobRequest)
    except InvalidInput as error:
        return error


def _answer(
    submitted: Submitted, request: ApiRequest, *, partial: bool
) -> tuple[int, BatchCreated | BatchItems]:
    batch_id = submitted.batch_id if submitted.jobs else None
    if partial:
        return 207, BatchItems(batch_id=batch_id, items=[_item(item, request) for item in submitted.items])
    created = len(submitted.jobs)
    document = BatchCreated(batch_id=batch_id, job_ids=submitted.job_ids, created=created)
    return 201 if created else 200, document


def _item(item: Item, request: ApiRequest) -> BatchItem:
    if isinstance(item, NewJob):
        return BatchItem(status=201, job_id=item.job_id)
    if isinstance(item, Existing):
        return BatchItem(status=200, job_id=item.job.job_id)
    errors = item.errors if isinstance(item, InvalidInput) else ()
    document = problem(item.code, item.detail, request_id=request_id_of(request), errors=errors)
    return BatchItem(status=document.status, problem=document)
