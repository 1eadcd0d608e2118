"""What holds for every schedule, near changes of the clock above all."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import cron
from app.domain.schedule import Interval, Recurring, Schedule, next_occurrences, occurrences
from app.domain.timezones import Fold, Gap, resolve

EXPRESSIONS = (
    "* * * * *",
    "*/7 */5 * * *",
    "15 1,2,3 * * *",
    "*/13 30 0-3 * * *",
    "0 0 L * 5#3",
    "* 59 23 * * *",
)
ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia", "Africa/Cairo")
CHANGES = (
    datetime(2025, 3, 9, 7, tzinfo=UTC),
    datetime(2025, 11, 2, 6, tzinfo=UTC),
    datetime(2025, 4, 5, 15, tzinfo=UTC),
    datetime(2008, 11, 2, 2, 31, tzinfo=UTC),
    datetime(2011, 12, 30, 10, tzinfo=UTC),
)
"""Instants at which a clock is changed in one of the zones."""

SCHEDULES = st.one_of(
    st.builds(
        Recurring,
        expressions=st.lists(st.sampled_from(EXPRESSIONS).map(cron.parse), min_size=1, max_size=3).map(tuple),
        zone=st.sampled_from(ZONES).map(resolve),
        gap=st.sampled_from(Gap),
        fold=st.sampled_from(Fold),
    ),
    st.builds(
        Interval,
        every_seconds=st.floats(1, 100_000),
        anchor=st.just(datetime(2008, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC)),
    ),
)
MOMENTS = st.builds(
    lambda change, offset: change + timedelta(seconds=offset),
    st.sampled_from(CHANGES),
    st.floats(-20_000, 20_000),
)


@given(schedule=SCHEDULES, ends=st.lists(MOMENTS, min_size=3, max_size=3).map(sorted))
@settings(max_examples=300, deadline=None)
def test_windows_compose(schedule: Schedule, ends: list[datetime]) -> None:
    start, middle, end = ends
    end = min(end, start + timedelta(hours=6))
    middle = min(middle, end)

    def window(after: datetime, until: datetime) -> list[datetime]:
        return occurrences(schedule, after=after, until=until, limit=100_000)

    assert window(start, end) == window(start, middle) + window(middle, end)


@given(schedule=SCHEDULES, after=MOMENTS, count=st.integers(1, 50))
@settings(max_examples=300, deadline=None)
def test_instants_ascend_and_none_comes_early_or_late(
    schedule: Schedule, after: datetime, count: int
) -> None:
    instants = next_occurrences(schedule, after=after, count=count)

    assert len(instants) == count
    assert instants == sorted(set(instants))
    assert all(instant > after and instant.tzinfo is UTC for instant in instants)
    assert occurrences(schedule, after=after, until=instants[-1], limit=count + 1) == instants


@given(schedule=SCHEDULES, after=MOMENTS)
@settings(max_examples=100, deadline=None)
def test_walking_one_by_one_misses_nothing(schedule: Schedule, after: datetime) -> None:
    walked, cursor = [], after
    for _ in range(20):
        walked += next_occurrences(schedule, after=cursor, count=1)
        cursor = walked[-1]

    assert walked == next_occurrences(schedule, after=after, count=20)


@given(schedule=SCHEDULES.filter(lambda one: isinstance(one, Recurring)), after=MOMENTS)
@settings(max_examples=200, deadline=None)
def test_several_expressions_fire_whenever_one_of_them_does(schedule: Recurring, after: datetime) -> None:
    until = after + timedelta(hours=6)
    alone = [msgspec.structs.replace(schedule, expressions=(one,)) for one in schedule.expressions]
    each = [occurrences(one, after=after, until=until, limit=100_000) for one in alone]

    assert occurrences(schedule, after=after, until=until, limit=100_000) == sorted(set().union(*each))
