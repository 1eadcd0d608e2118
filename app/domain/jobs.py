"""Jobs: what people ask for, and the row it becomes."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from app.domain.admission import Overlap
from app.domain.errors import InvalidInput
from app.domain.ids import new_execution_id, new_job_id, shard_of
from app.domain.limits import ConcurrencyKey, Most
from app.domain.stored_schedule import REPEATING, JobSchedule, ScheduleColumns
from app.domain.unique import UniquePolicy

Tag = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,63}$(?!\n)")]
Priority = Annotated[int, msgspec.Meta(ge=0, le=3)]
MaxRetries = Annotated[int, msgspec.Meta(ge=0, le=1000)]
TimeoutSeconds = Annotated[float, msgspec.Meta(gt=0, le=31 * 86_400)]
ExpiresAfterSeconds = Annotated[float, msgspec.Meta(gt=0, le=366 * 86_400)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]

DependsOn = Annotated[list[UUID], msgspec.Meta(max_length=100)]


UniqueKey = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
UniqueForSeconds = Annotated[float, msgspec.Meta(gt=0, le=366 * 86_400)]


class JobRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job as people ask for it."""

    task_id: str
    schedule: JobSchedule
    parameters: dict[str, Any] = {}
    user_id: str | None = None
    """Defaults to the owner of the API key; only an admin may name somebody else."""
    name: Name | None = None
    tags: Annotated[list[Tag], msgspec.Meta(max_length=50)] = []
    overlap: Overlap = Overlap.ALLOW
    concurrency_key: ConcurrencyKey | None = None
    """Null: the task's."""
    concurrency_limit: Most | None = None
    """How many with the same key run at once; null: the task's, or one."""
    depends_on: DependsOn = []
    """Jobs whose run of the same instant, or the latest before it, must have completed."""
    queue: str | None = None
    priority: Priority | None = None
    max_retries: MaxRetries | None = None
    timeout_seconds: TimeoutSeconds | None = None
    expires_after_seconds: ExpiresAfterSeconds | None = None
    """An execution that has not begun so long after it was first due never runs; None: it waits for ever."""
    unique_key: UniqueKey | None = None
    """While a job of the same user and task holds this key, no second one is created."""
    unique_for_seconds: UniqueForSeconds | None = None
    """How long after its creation a job holds the key; None: as long as an execution of it is live."""
    unique_policy: UniquePolicy = UniquePolicy.KEEP
    """Where the key is held: keep that job, or have it replaced by this one while it has not begun."""


class NewJob(ScheduleColumns, frozen=True, kw_only=True, omit_defaults=True):
    """A job ready to be stored, with the execution of one that runs once. Written as JSON, it leaves out what is
    null."""

    shard: int
    job_id: UUID
    user_id: str
    task_id: str
    task_revision: int
    """Revision of the task whose schema the parameters satisfy."""
    name: str | None = None
    tags: list[str]
    overlap: str
    concurrency_key: str | None = None
    concurrency_limit: int | None = None
    depends_on: list[UUID] | None = None
    parameters: msgspec.Raw
    """JSON text."""
    queue: str | None = None
    priority: int | None = None
    max_retries: int | None = None
    timeout_seconds: float | None = None
    expires_after_seconds: float | None = None
    unique_key: str | None = None
    unique_for_seconds: float | None = None
    unique_policy: UniquePolicy = UniquePolicy.KEEP
    materialize_at: datetime | None = None
    created_at: datetime
    batch_id: UUID | None = None
    execution_id: UUID | None = None
    due_at: datetime | None = None
    counted: bool = False
    """Counted against its user's `max_jobs_per_hour` by the transaction that stores it."""


def check_unique(request: JobRequest, schedule_type: str) -> None:
    """Refuse what `unique_*` cannot mean. Raises `InvalidInput`."""
    if request.unique_key is None:
        for name, given in (
            ("unique_for_seconds", request.unique_for_seconds is not None),
            ("unique_policy", request.unique_policy is not UniquePolicy.KEEP),
        ):
            if given:
                raise InvalidInput(f"{name} is of jobs with a unique_key: set one", pointer=f"/{name}")
    elif schedule_type in REPEATING:
        raise InvalidInput(
            "unique_key is for jobs that run once: a job that repeats is one job, which holds no key; use its "
            "job_id, or a schedule of the type IMMEDIATE or ONCE",
            pointer="/unique_key",
        )


def plan_job(
    request: JobRequest,
    *,
    schedule: ScheduleColumns,
    user_id: str,
    task_revision: int,
    now: datetime,
    unix_microseconds: int,
    batch_id: UUID | None = None,
) -> NewJob:
    """Turn a request, whose parameters and schedule are checked, into the job to store.

    `now` and `unix_microseconds` are the database's time.
    """
    job_id = new_job_id(unix_microseconds)
    repeats = schedule.schedule_type in REPEATING
    return NewJob(
        **msgspec.structs.asdict(schedule),
        shard=shard_of(job_id),
        job_id=job_id,
        user_id=user_id,
        task_id=request.task_id,
        task_revision=task_revision,
        name=request.name,
        tags=request.tags,
        overlap=request.overlap,
        concurrency_key=request.concurrency_key,
        concurrency_limit=request.concurrency_limit,
        depends_on=request.depends_on or None,
        parameters=msgspec.Raw(msgspec.json.encode(request.parameters)),
        queue=request.queue,
        priority=request.priority,
        max_retries=request.max_retries,
        timeout_seconds=request.timeout_seconds,
        expires_after_seconds=request.expires_after_seconds,
        unique_key=request.unique_key,
        unique_for_seconds=request.unique_for_seconds,
        unique_policy=request.unique_policy,
        materialize_at=now if repeats else None,
        created_at=now,
        batch_id=batch_id,
        execution_id=None if repeats else new_execution_id(job_id, unix_microseconds),
        # Never before now: workers pass over instants that lie well behind.
        due_at=None if repeats else max(schedule.scheduled_time or now, now),
    )
