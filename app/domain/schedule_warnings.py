"""What people should know about a schedule before they trust it. A warning refuses nothing, and is always true."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from app.domain.cron import CronExpression
from app.domain.schedule import Interval, Once, Recurring, Schedule
from app.domain.timezones import Fold, Gap, Zone
from app.domain.wall_changes import WallChange, changes_between

AHEAD = timedelta(days=425)
"""Fourteen months: a change of the clock comes into view before the one a year earlier is over."""
_DAY_SECONDS = 86_400


class WarningCode(StrEnum):
    """What a warning is about."""

    EITHER_DAY_FIELD = "either_day_field"
    BOTH_DAY_FIELDS = "both_day_fields"
    DST_GAP = "dst_gap"
    DST_FOLD = "dst_fold"
    ELAPSED_TIME = "elapsed_time"
    MORE_THAN_ONCE_A_MINUTE = "more_than_once_a_minute"
    IN_THE_PAST = "in_the_past"


class ScheduleWarning(msgspec.Struct, frozen=True):
    """One thing to know; `at` is the instant that it concerns, where there is one."""

    code: WarningCode
    detail: str
    at: datetime | None = None


def warnings_of(schedule: Schedule, zone: Zone, *, now: datetime) -> list[ScheduleWarning]:
    """Return what to know about a schedule; changes of the clock up to `AHEAD` of `now`."""
    match schedule:
        case Recurring():
            fast = any(len(expression.seconds) > 1 for expression in schedule.expressions)
            each = schedule.expressions
            return [
                *dict.fromkeys(warning for expression in each for warning in _of_days(expression)),
                *_of_pace(fast),
                *(warning for expression in each for warning in _of_clock(schedule, expression, now)),
            ]
        case Interval():
            return [*_of_pace(schedule.every_seconds < 60), *_of_elapsed_time(schedule, zone, now)]
        case Once(scheduled_time=time) if time <= now:
            detail = "this instant has passed: it runs at once when the job is saved"
            return [ScheduleWarning(WarningCode.IN_THE_PAST, detail, time)]
        case _:
            return []


def warnings_of_wall(wall: datetime, zone: Zone, instant: datetime) -> list[ScheduleWarning]:
    """Return what to know about a wall time (naive) that somebody wrote, and that was taken for `instant`."""
    passes = zone.instants(wall, gap=Gap.SKIP, fold=Fold.BOTH)
    if len(passes) == 1:
        return []
    day = f"{wall:%H:%M} on {wall:%Y-%m-%d}"
    if not passes:
        detail = f"the clock in {zone.resolved} jumps over {day}: it means {zone.wall(instant):%H:%M} then"
        return [ScheduleWarning(WarningCode.DST_GAP, detail, instant)]
    which = "first" if instant == passes[0] else "second"
    detail = f"the clock in {zone.resolved} shows {day} twice: the {which} time is meant"
    return [ScheduleWarning(WarningCode.DST_FOLD, detail, instant)]


def _of_days(expression: CronExpression) -> Iterator[ScheduleWarning]:
    days = expression.days
    if len(days.dates) == 31 or len(days.weekdays) == 7:
        return
    if days.both:
        detail = "a day must fit both day fields, because one of them begins with *"
        yield ScheduleWarning(WarningCode.BOTH_DAY_FIELDS, detail)
    else:
        detail = (
            "day of month and day of week are both set: a day needs to fit one of them only, as in every cron"
        )
        yield ScheduleWarning(WarningCode.EITHER_DAY_FIELD, detail)


def _of_pace(fast: bool) -> Iterator[ScheduleWarning]:  # noqa: FBT001 - a question that was answered
    if fast:
        detail = "this is more often than once a minute: each run is an execution, with its row and its logs"
        yield ScheduleWarning(WarningCode.MORE_THAN_ONCE_A_MINUTE, detail)


def _of_clock(schedule: Recurring, expression: CronExpression, now: datetime) -> Iterator[ScheduleWarning]:
    if expression.follows_elapsed_time and len(expression.hours) == 24:
        return  # it goes on as time does: nothing is left out and nothing comes twice
    start = max(now, schedule.starts_at or now)
    end = min(now + AHEAD, schedule.ends_at or now + AHEAD)
    for change in changes_between(schedule.zone, start, end):
        walls = [wall for wall in expression.walls(change.low, change.high) if wall < change.high]
        if walls:
            tell = _of_gap if change.is_gap else _of_fold
            yield tell(schedule, expression, change, walls)


def _of_gap(
    schedule: Recurring, expression: CronExpression, change: WallChange, walls: list[datetime]
) -> ScheduleWarning:
    made_up = schedule.gap is Gap.RUN_AFTER_GAP and not expression.follows_elapsed_time
    what = f"runs once at {change.high:%H:%M} instead" if made_up else "does not run then"
    detail = f"{_said(walls)} on {walls[0]:%Y-%m-%d} does not exist in {schedule.zone.resolved} (the clock jumps " \
             f"from {change.low:%H:%M} to {change.high:%H:%M}): it {what}"  # fmt: skip
    return ScheduleWarning(WarningCode.DST_GAP, detail, change.at)


def _of_fold(
    schedule: Recurring, expression: CronExpression, change: WallChange, walls: list[datetime]
) -> ScheduleWarning:
    fold = Fold.BOTH if expression.follows_elapsed_time else schedule.fold
    what = {Fold.FIRST: "the first time", Fold.SECOND: "the second time", Fold.BOTH: "both times"}[fold]
    detail = f"{_said(walls)} on {walls[0]:%Y-%m-%d} comes twice in {schedule.zone.resolved} (the clock goes back " \
             f"from {change.high:%H:%M} to {change.low:%H:%M}): it runs {what}"  # fmt: skip
    [at, *_] = schedule.zone.instants(walls[0], fold=fold)
    return ScheduleWarning(WarningCode.DST_FOLD, detail, at)


def _of_elapsed_time(schedule: Interval, zone: Zone, now: datetime) -> Iterator[ScheduleWarning]:
    """Tell that whole days of 24 hours do not keep their time of day."""
    if schedule.every_seconds % _DAY_SECONDS:
        return
    end = min(now + AHEAD, schedule.ends_at or now + AHEAD)
    for change in changes_between(zone, max(now, schedule.anchor), end):
        day = f"{change.at.astimezone(zone.info):%Y-%m-%d}"
        detail = f"an interval is elapsed time: from {day} on it runs at another time of day in {zone.resolved}; " \
                 "cron keeps the time of day"  # fmt: skip
        yield ScheduleWarning(WarningCode.ELAPSED_TIME, detail, change.at)
        return


def _said(walls: list[datetime]) -> str:
    return f"{walls[0]:%H:%M}" if len(walls) == 1 else f"{walls[0]:%H:%M} to {walls[-1]:%H:%M}"
