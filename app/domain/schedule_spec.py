"""What people write about when a job runs, and the `Schedule` it means."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import assert_never

import msgspec

from app.domain import cron, timezones
from app.domain.errors import FieldError, InvalidInput, InvalidSchedule
from app.domain.schedule import Immediate, Interval, Once, Recurring, Schedule
from app.domain.time_text import parse_duration, parse_instant
from app.domain.timezones import Fold, Gap, Zone

MIN_INTERVAL_SECONDS = 1
MAX_INTERVAL_SECONDS = 3653 * 86_400
"""Ten years, with the most leap days they can have."""
_TIMING = {"expression", "scheduled_time", "every", "starts_at", "ends_at"}


class ScheduleType(StrEnum):
    """How a schedule says when. `CRON` is a synonym of `RECURRING` and is read back as that."""

    IMMEDIATE = "IMMEDIATE"
    ONCE = "ONCE"
    RECURRING = "RECURRING"
    CRON = "CRON"
    INTERVAL = "INTERVAL"


_FITTING: Mapping[ScheduleType, frozenset[str]] = {
    ScheduleType.IMMEDIATE: frozenset(),
    ScheduleType.ONCE: frozenset({"scheduled_time"}),
    ScheduleType.RECURRING: frozenset({"expression", "starts_at", "ends_at"}),
    ScheduleType.INTERVAL: frozenset({"every", "starts_at", "ends_at"}),
}


class ScheduleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The timing part of a job's `schedule`, as it is written and read back.

    Times are RFC 3339 or Unix seconds, without an offset wall time in `timezone`; `every` is an ISO 8601
    duration or a number of seconds; `expression` may be several cron expressions divided by `;`. Which fields
    fit depends on `type`; `null` is the same as not given.
    """

    type: ScheduleType
    expression: str | None = None
    scheduled_time: str | float | None = None
    every: str | float | None = None
    timezone: str = "UTC"
    gap: Gap = Gap.RUN_AFTER_GAP
    fold: Fold = Fold.FIRST
    starts_at: str | float | None = None
    ends_at: str | float | None = None

    def __post_init__(self) -> None:
        """Replace the synonym, so that whatever is stored or shown has one name for it."""
        if self.type == ScheduleType.CRON:
            msgspec.structs.force_setattr(self, "type", ScheduleType.RECURRING)


def compile_schedule(
    spec: ScheduleSpec, *, now: datetime, aliases: Mapping[str, str], created_at: datetime | None = None
) -> Schedule:
    """Check what was written and return the schedule it means. A ONCE in the past is due at once, no error.

    `aliases` are zone names of our own (see `timezones.resolve`). An INTERVAL counts from `starts_at`, else
    from `created_at`, else (a preview) from `now`. Raises an `InvalidInput` whose pointers begin with
    `/schedule`.
    """
    _refuse_unfit(spec)
    with _within("/schedule/timezone"):
        zone = timezones.resolve(spec.timezone, aliases)
    match spec.type:
        case ScheduleType.IMMEDIATE:
            return Immediate()
        case ScheduleType.ONCE:
            return _compile_once(spec, zone)
        case ScheduleType.RECURRING | ScheduleType.CRON:
            return _compile_recurring(spec, zone)
        case ScheduleType.INTERVAL:
            return _compile_interval(spec, zone, created_at=created_at or now)
        case _:
            assert_never(spec.type)


def _refuse_unfit(spec: ScheduleSpec) -> None:
    """Refuse fields that this type would ignore in silence."""
    fitting = _FITTING[spec.type]
    unfit = sorted(name for name in _TIMING - fitting if getattr(spec, name) is not None)
    if unfit:
        detail = f"does not fit type {spec.type}, which takes {', '.join(sorted(fitting)) or 'none of these'}"
        errors = [FieldError(f"/schedule/{name}", InvalidSchedule.code, f"{name} {detail}") for name in unfit]
        raise InvalidSchedule(f"{', '.join(unfit)} {detail}", errors=tuple(errors))


def _compile_once(spec: ScheduleSpec, zone: Zone) -> Once:
    if spec.scheduled_time is None:
        raise _missing("scheduled_time", spec.type)
    return Once(scheduled_time=_instant(spec.scheduled_time, "scheduled_time", spec=spec, zone=zone))


def _compile_recurring(spec: ScheduleSpec, zone: Zone) -> Recurring:
    if spec.expression is None:
        raise _missing("expression", spec.type)
    with _within("/schedule/expression"):
        expressions = cron.parse_all(spec.expression)
    starts_at, ends_at = _bounds(spec, zone)
    return Recurring(
        expressions=expressions, zone=zone, gap=spec.gap, fold=spec.fold, starts_at=starts_at, ends_at=ends_at
    )


def _compile_interval(spec: ScheduleSpec, zone: Zone, *, created_at: datetime) -> Interval:
    if spec.every is None:
        raise _missing("every", spec.type)
    with _within("/schedule/every"):
        every_seconds = parse_duration(spec.every)
        if not MIN_INTERVAL_SECONDS <= every_seconds <= MAX_INTERVAL_SECONDS:
            raise InvalidSchedule("an interval lasts from 1 second to 10 years")
    starts_at, ends_at = _bounds(spec, zone)
    return Interval(every_seconds=every_seconds, anchor=starts_at or created_at, ends_at=ends_at)


def _bounds(spec: ScheduleSpec, zone: Zone) -> tuple[datetime | None, datetime | None]:
    starts_at, ends_at = (
        None if time is None else _instant(time, name, spec=spec, zone=zone)
        for name, time in (("starts_at", spec.starts_at), ("ends_at", spec.ends_at))
    )
    if starts_at and ends_at and ends_at < starts_at:
        raise InvalidSchedule("ends_at lies before starts_at", pointer="/schedule/ends_at")
    return starts_at, ends_at


def _instant(time: str | float, name: str, *, spec: ScheduleSpec, zone: Zone) -> datetime:
    with _within(f"/schedule/{name}"):
        return parse_instant(time, zone=zone, gap=spec.gap, fold=spec.fold)


def _missing(name: str, schedule_type: ScheduleType) -> InvalidSchedule:
    return InvalidSchedule(f"a schedule of type {schedule_type} needs {name}", pointer=f"/schedule/{name}")


@contextmanager
def _within(pointer: str) -> Iterator[None]:
    """Say which field holds what the body refuses."""
    try:
        yield
    except InvalidInput as error:
        raise error.within(pointer) from None
