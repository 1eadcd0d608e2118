"""Which occurrences of a job are created now, which are passed over, and when to look again."""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from app.domain.schedule import Interval, Schedule, next_occurrences, occurrences
from app.domain.statuses import Disposition

ROWS_AHEAD = 100
"""Occurrences of one job created at once; a job that fires each second is looked at again after half of them."""
MISSED_AT_ONCE = 10_000
"""Missed instants judged at once: a week of a job that fires each second is taken in pieces."""
SOONEST = timedelta(seconds=1)


class Misfire(StrEnum):
    """What happens to instants that are materialised later than their grace, because nobody could do it in time."""

    SKIP = "skip"
    RUN_ONCE = "run_once"
    """The latest of them runs, unless one within its grace does."""
    RUN_ALL = "run_all"


class PassedOver(msgspec.Struct, frozen=True):
    """A range of instants that became no execution."""

    first_time: datetime
    last_time: datetime
    occurrences: int
    disposition: Disposition
    cause: str


class Plan(msgspec.Struct, frozen=True):
    """What one look at a job comes to."""

    instants: list[datetime]
    passed_over: list[PassedOver]
    materialized_until: datetime
    """No instant at or before this is ever created again."""
    materialize_at: datetime | None
    """When to look again; None: no instant is left."""


class MisfirePolicy(msgspec.Struct, frozen=True):
    """A job's misfire policy with its grace."""

    misfire: Misfire
    grace_seconds: float


def plan(
    schedule: Schedule,
    policy: MisfirePolicy,
    *,
    materialized_until: datetime,
    now: datetime,
    horizon: timedelta,
) -> Plan:
    """Plan the instants after the watermark `materialized_until` up to `now + horizon`."""
    too_late = now - timedelta(seconds=policy.grace_seconds) - timedelta.resolution
    missed: list[datetime] = []
    if policy.misfire is not Misfire.RUN_ALL:
        missed = occurrences(schedule, after=materialized_until, until=too_late, limit=MISSED_AT_ONCE + 1)
    if len(missed) > MISSED_AT_ONCE:
        del missed[-1]  # the next look judges it with what follows: it may be the one to make up for
        return Plan([], [_pass_over(missed, policy)], missed[-1], now)
    watermark = max(materialized_until, too_late) if missed else materialized_until
    coming = occurrences(schedule, after=watermark, until=now + horizon, limit=ROWS_AHEAD)
    make_up, passed_over = _judge(missed, policy, saved=bool(coming) and coming[0] <= now)
    until = coming[-1] if len(coming) == ROWS_AHEAD else max(watermark, now + horizon)
    return Plan(make_up + coming, passed_over, until, _look_again(schedule, until, now, horizon))


def passed_while_paused(schedule: Schedule, *, after: datetime, until: datetime) -> PassedOver | None:
    """Return the instants in (`after`, `until`] as a range that a pause took, or None where there are none."""
    first = occurrences(schedule, after=after, until=until, limit=1)
    if not first:
        return None
    if isinstance(schedule, Interval):  # counted, not enumerated: a year of seconds is no reason to wait
        every = timedelta(seconds=schedule.every_seconds)
        more = (min(until, schedule.ends_at or until) - first[0]) // every
        return _paused(first[0], first[0] + more * every, more + 1)
    last, count = first[0], 1
    while batch := occurrences(schedule, after=last, until=until, limit=MISSED_AT_ONCE):
        last, count = batch[-1], count + len(batch)
    return _paused(first[0], last, count)


def _paused(first_time: datetime, last_time: datetime, count: int) -> PassedOver:
    return PassedOver(first_time, last_time, count, Disposition.PAUSED, "the job was paused")


def paused_instants(instants: list[datetime]) -> PassedOver | None:
    """Return due instants that a pause took back as a range, or None where there are none."""
    return _paused(instants[0], instants[-1], len(instants)) if instants else None


def _judge(
    missed: list[datetime], policy: MisfirePolicy, *, saved: bool
) -> tuple[list[datetime], list[PassedOver]]:
    """Split missed instants into those that still run and those passed over.

    `saved`: an instant within its grace runs anyway, so none is made up for.
    """
    make_up = missed[-1:] if policy.misfire is Misfire.RUN_ONCE and not saved else []
    rest = missed[:-1] if make_up else missed
    return make_up, [_pass_over(rest, policy)] if rest else []


def _pass_over(instants: list[datetime], policy: MisfirePolicy) -> PassedOver:
    once = policy.misfire is Misfire.RUN_ONCE
    disposition = Disposition.COALESCED if once else Disposition.SKIPPED_MISFIRE
    cause = f"materialised more than {policy.grace_seconds:g} s late; misfire policy {policy.misfire}"
    return PassedOver(instants[0], instants[-1], len(instants), disposition, cause)


def _look_again(schedule: Schedule, until: datetime, now: datetime, horizon: timedelta) -> datetime | None:
    """Look again when half of what was planned has passed, or when the next instant enters the horizon."""
    following = next_occurrences(schedule, after=until, count=1)
    if not following:
        return None
    return max(now + (until - now) / 2, following[0] - horizon, now + SOONEST)
