"""What a schedule comes to, before anything is stored: by the same check and the same engine as of stored jobs."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from app.domain.schedule import Once, Schedule, next_occurrences
from app.domain.schedule_spec import compile_schedule
from app.domain.schedule_warnings import ScheduleWarning, warnings_of, warnings_of_wall
from app.domain.schedule_words import describe
from app.domain.stored_schedule import REPEATING, JobSchedule, schedule_columns, stored_schedule
from app.domain.timezones import Zone, resolve


class ZoneNames(msgspec.Struct, frozen=True, omit_defaults=True):
    """The time zone as it was asked for, the IANA name it stands for, and, for a link, where that leads."""

    requested: str
    resolved: str
    target: str | None = None


class SchedulePreview(msgspec.Struct, frozen=True, kw_only=True):
    """The coming instants, the schedule as a sentence, and what to know about it."""

    occurrences: list[datetime]
    description: str
    timezone: ZoneNames
    warnings: list[ScheduleWarning]


def preview(spec: JobSchedule, *, now: datetime, count: int, aliases: Mapping[str, str]) -> SchedulePreview:
    """Return what a job with this schedule would do if it were created at `now`.

    Raises what creating it would: an `InvalidInput` whose pointers begin with `/schedule`.
    """
    schedule_columns(spec, now=now, aliases=aliases)
    schedule, zone = compile_schedule(spec, now=now, aliases=aliases), resolve(spec.timezone, aliases)
    return SchedulePreview(
        occurrences=next_occurrences(schedule, after=now, count=count),
        description=describe(schedule, zone),
        timezone=ZoneNames(zone.requested, zone.resolved, zone.link_target),
        warnings=[*warnings_of(schedule, zone, now=now), *_of_wall_time(spec, schedule, zone)],
    )


def stored_warnings(
    columns: Mapping[str, Any], *, scheduled_time: datetime | None, now: datetime
) -> list[ScheduleWarning]:
    """Return what to know about a stored job's schedule; `columns` are its `SCHEDULE_FIELDS`."""
    zone = resolve(columns["timezone"])
    if columns["schedule_type"] in REPEATING:
        return warnings_of(stored_schedule(**columns), zone, now=now)
    return warnings_of(Once(scheduled_time=scheduled_time), zone, now=now) if scheduled_time else []


def _of_wall_time(spec: JobSchedule, schedule: Schedule, zone: Zone) -> list[ScheduleWarning]:
    """Return what to know about the time of one that runs once, if it was written without an offset."""
    if not isinstance(schedule, Once):
        return []
    try:
        wall = datetime.fromisoformat(str(spec.scheduled_time).upper())
    except ValueError:  # Unix seconds
        return []
    return [] if wall.tzinfo else warnings_of_wall(wall, zone, schedule.scheduled_time.astimezone(UTC))
