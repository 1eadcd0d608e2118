"""Which instants run, which are passed over, and that each is judged exactly once whenever somebody looks."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import cron
from app.domain.planning import MISSED_AT_ONCE, ROWS_AHEAD, SOONEST, Misfire, MisfirePolicy, Plan, plan
from app.domain.schedule import Interval, Recurring, Schedule, next_occurrences, occurrences
from app.domain.statuses import Disposition
from app.domain.timezones import resolve

START = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
EACH_MINUTE = Interval(every_seconds=60, anchor=START)


def look(
    schedule: Schedule,
    policy: MisfirePolicy,
    now: datetime,
    *,
    since: datetime = START,
    horizon: timedelta = timedelta(seconds=1),
) -> list[Plan]:
    """Look as often as it takes at one moment to judge all that was missed by then."""
    plans = [plan(schedule, policy, materialized_until=since, now=now, horizon=horizon)]
    while (reached := plans[-1].materialized_until) < now:
        plans.append(plan(schedule, policy, materialized_until=reached, now=now, horizon=horizon))
    return plans


def instants(plans: list[Plan]) -> list[datetime]:
    """Return what the plans create."""
    return [instant for each in plans for instant in each.instants]


def passed_over(plans: list[Plan]) -> dict[Disposition, int]:
    """Return how many instants were passed over, by what became of them."""
    counts: Counter[Disposition] = Counter()
    for each in plans:
        counts.update({span.disposition: span.occurrences for span in each.passed_over})
    return dict(counts)


@pytest.mark.parametrize("missed", [0, 1, 99, 100, 101, 9_999, 10_000, 10_001, 100_000])
def test_missed_instants_follow_the_policy(missed: int) -> None:
    now = START + missed * MINUTE + timedelta(seconds=45)  # the latest is 45 s late, more than its grace
    every_one = [START + n * MINUTE for n in range(1, missed + 1)]

    skip, once, every = (look(EACH_MINUTE, MisfirePolicy(misfire, 30), now) for misfire in Misfire)

    assert instants(skip) == []
    assert passed_over(skip) == ({Disposition.SKIPPED_MISFIRE: missed} if missed else {})
    assert instants(once) == every_one[-1:]
    assert passed_over(once) == ({Disposition.COALESCED: missed - 1} if missed > 1 else {})
    assert instants(every) == every_one
    assert passed_over(every) == {}


def test_an_instant_runs_up_to_its_grace_and_not_a_microsecond_longer(subtests: pytest.Subtests) -> None:
    instant = START + MINUTE
    for grace_seconds in (0.0, 0.5, 30.0):
        with subtests.test(grace_seconds=grace_seconds):
            policy = MisfirePolicy(Misfire.SKIP, grace_seconds)
            last_moment = instant + timedelta(seconds=grace_seconds)
            assert instants(look(EACH_MINUTE, policy, last_moment)) == [instant]
            assert instants(look(EACH_MINUTE, policy, last_moment + timedelta.resolution)) == []


def test_nothing_is_made_up_for_when_an_instant_within_its_grace_runs_anyway() -> None:
    now = START + 10 * MINUTE + timedelta(seconds=5)

    plans = look(EACH_MINUTE, MisfirePolicy(Misfire.RUN_ONCE, 30), now)

    assert instants(plans) == [START + 10 * MINUTE]
    assert passed_over(plans) == {Disposition.COALESCED: 9}


def test_passed_over_ranges_say_from_when_to_when_how_many_and_why() -> None:
    (only,) = look(EACH_MINUTE, MisfirePolicy(Misfire.SKIP, 0.5), START + 7 * MINUTE + SOONEST)

    (span,) = only.passed_over
    assert (span.first_time, span.last_time, span.occurrences) == (START + MINUTE, START + 7 * MINUTE, 7)
    assert span.cause == "materialised more than 0.5 s late; misfire policy skip"


def test_a_long_absence_is_judged_in_pieces() -> None:
    schedule = Interval(every_seconds=1, anchor=START)
    week = timedelta(days=7)

    plans = look(schedule, MisfirePolicy(Misfire.SKIP, 60), START + week)

    sizes = [span.occurrences for each in plans for span in each.passed_over]
    assert max(sizes) == MISSED_AT_ONCE
    assert sum(sizes) == week.total_seconds() - 61
    assert all(each.materialize_at == START + week for each in plans[:-1])


@pytest.mark.parametrize(("every_seconds", "rows"), [(1, ROWS_AHEAD), (60, 60), (3600, 1), (86_400, 0)])
def test_at_most_a_hundred_rows_ahead_and_refilled_at_half(every_seconds: int, rows: int) -> None:
    schedule = Interval(every_seconds=every_seconds, anchor=START)

    (only,) = look(schedule, MisfirePolicy(Misfire.RUN_ONCE, 60), START, horizon=HOUR)

    assert len(only.instants) == rows
    following = next_occurrences(schedule, after=only.materialized_until, count=1)[0]
    assert only.materialize_at is not None
    assert START + SOONEST <= only.materialize_at < following
    assert only.materialize_at == max(START + (only.materialized_until - START) / 2, following - HOUR)


def test_a_schedule_that_has_ended_is_not_looked_at_again() -> None:
    schedule = Interval(every_seconds=60, anchor=START, ends_at=START + 30 * MINUTE)
    policy = MisfirePolicy(Misfire.RUN_ONCE, 60)

    (first,) = look(schedule, policy, START, horizon=10 * MINUTE)
    (last,) = look(schedule, policy, START + 25 * MINUTE, since=START + 25 * MINUTE, horizon=10 * MINUTE)
    (late,) = look(schedule, policy, START + DAY, horizon=10 * MINUTE)

    assert (len(first.instants), first.materialize_at is None) == (10, False)
    assert (len(last.instants), last.materialize_at) == (5, None)
    assert (late.instants, late.materialize_at) == ([START + 30 * MINUTE], None)


def test_a_watermark_ahead_of_the_horizon_stays() -> None:
    """The horizon was shortened, or the database was set back: what is materialised stays so."""
    ahead = START + DAY

    (only,) = look(EACH_MINUTE, MisfirePolicy(Misfire.RUN_ONCE, 60), START + HOUR, since=ahead, horizon=HOUR)

    assert (only.instants, only.passed_over, only.materialized_until) == ([], [], ahead)
    assert only.materialize_at == ahead + MINUTE - HOUR


SCHEDULES = st.one_of(
    st.builds(
        Interval,
        every_seconds=st.sampled_from([30, 60, 3600, 90_000]),
        anchor=st.just(START),
        ends_at=st.none() | st.just(START + 2 * DAY),
    ),
    st.builds(
        Recurring,
        expressions=st.sampled_from(
            ["*/5 * * * *", "30 2 * * *", "0 0 1 * *", "*/20 0 * * * *", "30 2 * * *; 0 */7 * * *"]
        ).map(cron.parse_all),
        zone=st.sampled_from(["UTC", "America/New_York"]).map(resolve),  # its clocks change on 8 March
        ends_at=st.none() | st.just(START + 8 * DAY),
    ),
)
POLICIES = st.builds(MisfirePolicy, st.sampled_from(Misfire), st.sampled_from([0.0, 1.0, 60.0, 7200.0]))
GAPS = st.lists(
    st.sampled_from([timedelta(0), timedelta(seconds=1), MINUTE, HOUR, 5 * HOUR, DAY]),
    min_size=1,
    max_size=12,
)


@given(schedule=SCHEDULES, policy=POLICIES, gaps=GAPS, horizon=st.sampled_from([MINUTE, HOUR, DAY]))
@settings(max_examples=100, deadline=None)
def test_every_instant_is_judged_once_whenever_somebody_looks(
    schedule: Schedule, policy: MisfirePolicy, gaps: list[timedelta], horizon: timedelta
) -> None:
    now = reached = START
    created: list[datetime] = []
    for gap in gaps:
        now += gap
        plans = look(schedule, policy, now, since=reached, horizon=horizon)
        _check_one_look(schedule, policy, plans, since=reached, now=now)
        reached = plans[-1].materialized_until
        created += instants(plans)

    every = occurrences(schedule, after=START, until=reached, limit=10**6)
    assert created == sorted(set(created))
    assert set(created) <= set(every)
    if policy.misfire is Misfire.RUN_ALL:
        assert created == every


def _check_one_look(
    schedule: Schedule, policy: MisfirePolicy, plans: list[Plan], *, since: datetime, now: datetime
) -> None:
    """Compare with an oracle that has all instants of the window before it."""
    marks = [since, *(each.materialized_until for each in plans)]
    window = occurrences(schedule, after=since, until=marks[-1], limit=10**6)
    missed = [x for x in window if x < now - timedelta(seconds=policy.grace_seconds)]
    on_time = window[len(missed) :]
    made_up = {
        Misfire.SKIP: [],
        Misfire.RUN_ONCE: [] if on_time and on_time[0] <= now else missed[-1:],
        Misfire.RUN_ALL: missed,
    }[policy.misfire]

    assert instants(plans) == made_up + on_time
    assert sum(passed_over(plans).values()) == len(missed) - len(made_up)
    spans = [(span.first_time, span.last_time) for each in plans for span in each.passed_over]
    assert all(first <= last < following for (first, last), (following, _) in pairwise(spans))
    assert marks == sorted(marks)
    left = bool(next_occurrences(schedule, after=marks[-1], count=1))
    assert (plans[-1].materialize_at is not None) == left
