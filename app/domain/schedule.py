"""Schedules: when a job runs, and the instants that follow from it.

`occurrences` is the one function that says when a schedule fires: for the materializer, the preview and the
forecast alike. `schedule_spec` makes a `Schedule` of what people write.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import dropwhile, groupby, islice, takewhile
from typing import assert_never

import msgspec

from app.domain import timezones
from app.domain.cron import CronExpression
from app.domain.errors import NeverFires
from app.domain.timezones import FIRST_INSTANT, LAST_INSTANT, Fold, Gap, Zone

_LONGEST_WAIT = timedelta(days=41 * 366)
"""An expression can wait 40 years: from Sunday 29 February 2088 to the next one in 2128."""
_TICK = timedelta.resolution


class Immediate(msgspec.Struct, frozen=True):
    """Now: the execution is made with the job, so that no instants follow."""


class Once(msgspec.Struct, frozen=True, kw_only=True):
    """At one instant, which may have passed: then it is due at once."""

    scheduled_time: datetime


class Recurring(msgspec.Struct, frozen=True, kw_only=True):
    """By cron expressions on the wall clock of a zone, whenever one of them fires, within bounds (both included).

    `gap` and `fold` concern expressions with a fixed time of day. One that follows elapsed time
    (`CronExpression.follows_elapsed_time`) runs in both passes of a fold and makes up nothing after a gap.
    """

    expressions: tuple[CronExpression, ...]
    zone: Zone
    gap: Gap = Gap.RUN_AFTER_GAP
    fold: Fold = Fold.FIRST
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    @property
    def text(self) -> str:
        """Return the expressions as they are stored and read back."""
        return "; ".join(expression.text for expression in self.expressions)


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """At anchor + n x every, n >= 1, up to `ends_at` (included): never drifting, whatever restarts."""

    every_seconds: float
    anchor: datetime
    ends_at: datetime | None = None


Schedule = Immediate | Once | Recurring | Interval


def occurrences(schedule: Schedule, *, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """Return the instants strictly after `after` and at or before `until`.

    At most `limit` of them, ascending, in UTC, each once. Whatever the schedule says, none lies before 1970.
    Windows compose: those of (a, b] and of (b, c] are those of (a, c].
    """
    after = max(after, FIRST_INSTANT).astimezone(UTC)
    until = min(until, LAST_INSTANT).astimezone(UTC)
    if limit <= 0 or after >= until:
        return []
    match schedule:
        case Immediate():
            return []
        case Once(scheduled_time=time):
            return [time.astimezone(UTC)] if after < time <= until else []
        case Recurring():
            return list(islice(_recurring(schedule, after=after, until=until), limit))
        case Interval():
            return _interval(schedule, after=after, until=until, limit=limit)
        case _:
            assert_never(schedule)


def next_occurrences(schedule: Schedule, *, after: datetime, count: int) -> list[datetime]:
    """Return the first `count` instants strictly after `after`; fewer if the schedule ends before."""
    if not isinstance(schedule, Recurring):
        return occurrences(schedule, after=after, until=LAST_INSTANT, limit=count)
    found: list[datetime] = []
    cursor = _not_before_start(schedule, max(after, FIRST_INSTANT))
    while len(found) < count:
        until = cursor + min(_LONGEST_WAIT, LAST_INSTANT - cursor)
        batch = occurrences(schedule, after=cursor, until=until, limit=count - len(found))
        if not batch:
            break
        found += batch
        cursor = batch[-1]
    return found


def ensure_fires(schedule: Schedule, *, after: datetime) -> None:
    """Raise `NeverFires` if a repeating schedule has no instant after `after`.

    Its `ends_at` may lie too early, or under `Gap.SKIP` each of its times in a gap.
    """
    if isinstance(schedule, Recurring | Interval) and not next_occurrences(schedule, after=after, count=1):
        end = f" and up to {schedule.ends_at.isoformat()}" if schedule.ends_at else ""
        raise NeverFires(f"the schedule has no instant after {after.isoformat()}{end}", pointer="/schedule")


def _not_before_start(schedule: Recurring, after: datetime) -> datetime:
    """Return `after`, or the last moment before the schedule starts."""
    return max(after, schedule.starts_at - _TICK) if schedule.starts_at else after


def _recurring(schedule: Recurring, *, after: datetime, until: datetime) -> Iterator[datetime]:
    after = _not_before_start(schedule, after)
    until = min(until, schedule.ends_at or until)
    span = schedule.zone.span(after, until)
    each = [_instants(schedule, expression, span) for expression in schedule.expressions]
    instants = (instant for instant, _ in groupby(merge(*each)))
    return takewhile(lambda instant: instant <= until, dropwhile(lambda instant: instant <= after, instants))


def _instants(
    schedule: Recurring, expression: CronExpression, span: tuple[datetime, datetime]
) -> Iterator[datetime]:
    gap, fold = schedule.gap, schedule.fold
    if expression.follows_elapsed_time:
        gap, fold = Gap.SKIP, Fold.BOTH
    return timezones.to_instants(expression.walls(*span), zone=schedule.zone, gap=gap, fold=fold)


def _interval(schedule: Interval, *, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """Count in whole microseconds, which is what `timedelta` holds: exact at any distance."""
    anchor, every = schedule.anchor.astimezone(UTC), timedelta(seconds=schedule.every_seconds)
    until = min(until, schedule.ends_at or until)
    first = max(1, (after - anchor) // every + 1)
    last = min((until - anchor) // every, first + limit - 1)
    return [anchor + number * every for number in range(first, last + 1)]
