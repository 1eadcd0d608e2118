"""Schedules between what people write, the columns of a job, and the instants that follow."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from app.domain import timezones
from app.domain.cron import parse_all
from app.domain.planning import Misfire
from app.domain.schedule import Immediate, Interval, Once, Recurring, Schedule, ensure_fires
from app.domain.schedule_spec import ScheduleSpec, ScheduleType, compile_schedule
from app.domain.timezones import Fold, Gap

REPEATING = (ScheduleType.RECURRING.value, ScheduleType.INTERVAL.value)


SCHEDULE_FIELDS = (
    "schedule_type", "expression", "every_seconds", "timezone", "gap", "fold", "starts_at", "ends_at",
)  # fmt: skip
"""The columns that `stored_schedule` makes a schedule of."""


class JobSchedule(ScheduleSpec, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When a job runs, and what happens to instants that nobody could materialise in time."""

    misfire: Misfire = Misfire.RUN_ONCE
    misfire_grace_seconds: Annotated[float, msgspec.Meta(ge=0, le=31 * 86_400)] = 60.0


class ScheduleColumns(msgspec.Struct, frozen=True, kw_only=True):
    """A job's schedule as its columns hold it."""

    schedule_type: str
    expression: str | None = None
    scheduled_time: datetime | None = None
    every_seconds: float | None = None
    timezone: str
    timezone_requested: str
    gap: str
    fold: str
    starts_at: datetime | None = None
    """For an INTERVAL its anchor."""
    ends_at: datetime | None = None
    misfire: str
    misfire_grace_seconds: float


def schedule_columns(spec: JobSchedule, *, now: datetime, aliases: Mapping[str, str]) -> ScheduleColumns:
    """Check what was written and return the columns. An INTERVAL without `starts_at` counts from `now`.

    Raises `InvalidInput` with pointers under `/schedule`.
    """
    schedule = compile_schedule(spec, now=now, aliases=aliases)
    ensure_fires(schedule, after=now)
    zone = timezones.resolve(spec.timezone, aliases)
    return ScheduleColumns(
        schedule_type=spec.type,
        expression=schedule.text if isinstance(schedule, Recurring) else None,
        scheduled_time=schedule.scheduled_time if isinstance(schedule, Once) else None,
        every_seconds=schedule.every_seconds if isinstance(schedule, Interval) else None,
        timezone=zone.resolved,
        timezone_requested=zone.requested,
        gap=spec.gap,
        fold=spec.fold,
        starts_at=_starts_at(schedule),
        ends_at=schedule.ends_at if isinstance(schedule, Recurring | Interval) else None,
        misfire=spec.misfire,
        misfire_grace_seconds=spec.misfire_grace_seconds,
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
    """Return the schedule of a stored job that repeats."""
    if schedule_type == ScheduleType.INTERVAL and every_seconds and starts_at:
        return Interval(every_seconds=every_seconds, anchor=starts_at, ends_at=ends_at)
    return Recurring(
        expressions=parse_all(expression or ""),
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
        case Immediate() | Once():
            return None
