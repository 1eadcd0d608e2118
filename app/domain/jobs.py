"""Jobs: what people ask for, and the row it becomes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from app.domain import timezones
from app.domain.cron import parse as parse_cron
from app.domain.ids import new_execution_id, new_job_id, shard_of
from app.domain.planning import Misfire
from app.domain.schedule import Immediate, Interval, Once, Recurring, Schedule, ensure_fires
from app.domain.schedule_spec import ScheduleSpec, ScheduleType, compile_schedule
from app.domain.timezones import Fold, Gap

Tag = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,63}$")]
Priority = Annotated[int, msgspec.Meta(ge=0, le=3)]
MaxRetries = Annotated[int, msgspec.Meta(ge=0, le=1000)]
TimeoutSeconds = Annotated[float, msgspec.Meta(gt=0, le=31 * 86_400)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class JobSchedule(ScheduleSpec, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When a job runs, and what happens to instants that nobody could materialise in time."""

    misfire: Misfire = Misfire.RUN_ONCE
    misfire_grace_seconds: Annotated[float, msgspec.Meta(ge=0, le=31 * 86_400)] = 60.0


class JobRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job as people ask for it."""

    task_id: str
    schedule: JobSchedule
    parameters: dict[str, Any] = {}
    user_id: str | None = None
    """Defaults to the owner of the API key; only an admin may name somebody else."""
    name: Name | None = None
    tags: Annotated[list[Tag], msgspec.Meta(max_length=50)] = []
    overlap: Literal["allow"] = "allow"
    queue: str | None = None
    priority: Priority | None = None
    max_retries: MaxRetries | None = None
    timeout_seconds: TimeoutSeconds | None = None


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job ready to be stored, with the execution of one that runs once."""

    shard: int
    job_id: UUID
    user_id: str
    task_id: str
    task_version: int
    """Version of the task whose schema the parameters satisfy."""
    name: str | None
    tags: list[str]
    schedule_type: str
    expression: str | None
    scheduled_time: datetime | None
    every_seconds: float | None
    timezone: str
    timezone_requested: str
    gap: str
    fold: str
    starts_at: datetime | None
    ends_at: datetime | None
    misfire: str
    misfire_grace_seconds: float
    overlap: str
    parameters: str
    """JSON text."""
    queue: str | None
    priority: int | None
    max_retries: int | None
    timeout_seconds: float | None
    materialize_at: datetime | None
    created_at: datetime
    execution_id: UUID | None
    due_at: datetime | None


def plan_job(
    request: JobRequest,
    *,
    user_id: str,
    task_version: int,
    now: datetime,
    unix_microseconds: int,
    aliases: Mapping[str, str],
) -> NewJob:
    """Turn a request, whose parameters are checked, into the job to store.

    `now` and `unix_microseconds` are the database's time. Raises `InvalidInput` with pointers under `/schedule`.
    """
    schedule = compile_schedule(request.schedule, now=now, aliases=aliases)
    ensure_fires(schedule, after=now)
    zone = timezones.resolve(request.schedule.timezone, aliases)
    job_id = new_job_id(unix_microseconds)
    once = isinstance(schedule, Immediate | Once)
    return NewJob(
        shard=shard_of(job_id),
        job_id=job_id,
        user_id=user_id,
        task_id=request.task_id,
        task_version=task_version,
        name=request.name,
        tags=request.tags,
        schedule_type=request.schedule.type,
        expression=schedule.expression.text if isinstance(schedule, Recurring) else None,
        scheduled_time=schedule.scheduled_time if isinstance(schedule, Once) else None,
        every_seconds=schedule.every_seconds if isinstance(schedule, Interval) else None,
        timezone=zone.resolved,
        timezone_requested=zone.requested,
        gap=request.schedule.gap,
        fold=request.schedule.fold,
        starts_at=_starts_at(schedule),
        ends_at=schedule.ends_at if isinstance(schedule, Recurring | Interval) else None,
        misfire=request.schedule.misfire,
        misfire_grace_seconds=request.schedule.misfire_grace_seconds,
        overlap=request.overlap,
        parameters=msgspec.json.encode(request.parameters).decode(),
        queue=request.queue,
        priority=request.priority,
        max_retries=request.max_retries,
        timeout_seconds=request.timeout_seconds,
        materialize_at=None if once else now,
        created_at=now,
        execution_id=new_execution_id(job_id, unix_microseconds) if once else None,
        due_at=_due_at(schedule, now) if once else None,
    )


def stored_schedule(
    *,
    schedule_type: str,
    expression: str | None,
    every_seconds: float | None,
    timezone: str,
    gap: str,
    fold: str,
    starts_at: datetime | None,
    ends_at: datetime | None,
) -> Schedule:
    """Return the schedule of a stored recurring job. An INTERVAL's anchor is its `starts_at`."""
    if schedule_type == ScheduleType.INTERVAL and every_seconds and starts_at:
        return Interval(every_seconds=every_seconds, anchor=starts_at, ends_at=ends_at)
    return Recurring(
        expression=parse_cron(expression or ""),
        zone=timezones.resolve(timezone),
        gap=Gap(gap),
        fold=Fold(fold),
        starts_at=starts_at,
        ends_at=ends_at,
    )


def _starts_at(schedule: Schedule) -> datetime | None:
    match schedule:
        case Interval(anchor=anchor):
            return anchor
        case Recurring(starts_at=starts_at):
            return starts_at
        case _:
            return None


def _due_at(schedule: Schedule, now: datetime) -> datetime:
    """Never before now: workers pass over instants that lie well behind."""
    return max(schedule.scheduled_time, now) if isinstance(schedule, Once) else now
