"""Occurrences against an oracle that knows nothing of how they are computed.

It walks the minutes of UTC one by one, looks at what the wall clock of the zone shows, and asks of each
minute whether it matches. Expressions are made together with their meaning: the oracle parses nothing.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import cron
from app.domain.errors import NeverFires
from app.domain.schedule import Recurring, occurrences
from app.domain.timezones import Fold, Gap, resolve, zone_names

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LONGEST_FOLD = 8 * HOUR  # since 1976: Vostok, 7 hours in 1994
WINDOW = 24 * HOUR
DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
Field = tuple[str, frozenset[int]]
Fits = Callable[[date], bool]


class Tick(NamedTuple):
    """An instant and a wall time that goes with it."""

    instant: datetime
    wall: datetime


@dataclass(frozen=True)
class Expression:
    """Text and meaning."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    fits: Fits
    repeats: bool

    def matches(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self.fits(wall.date())


def stepped(low: int, count: int, step: int, *, bottom: int, top: int) -> frozenset[int]:
    """Return every `step`-th of `count` values from `low` on, coming back to `bottom` after `top`."""
    return frozenset(
        (low - bottom + offset) % (top - bottom + 1) + bottom for offset in range(0, count, step)
    )


def items(bottom: int, top: int) -> st.SearchStrategy[Field]:
    """One item of a list: a value, a range (perhaps wrapping, perhaps with a step), or a step."""
    numbers, size = st.integers(bottom, top), top - bottom + 1

    def value(number: int) -> Field:
        return f"{number}", frozenset({number})

    def span(low: int, high: int, step: int) -> Field:
        suffix = "" if step == 1 else f"/{step}"
        return f"{low}-{high}{suffix}", stepped(low, (high - low) % size + 1, step, bottom=bottom, top=top)

    def onward(low: int, step: int) -> Field:
        return f"{low}/{step}", stepped(low, top - low + 1, step, bottom=bottom, top=top)

    def star(step: int) -> Field:
        return f"*/{step}", stepped(bottom, size, step, bottom=bottom, top=top)

    return (
        numbers.map(value)
        | st.builds(span, numbers, numbers, st.integers(1, 5))
        | st.builds(onward, numbers, st.integers(1, size))
        | st.integers(1, size).map(star)
    )


def fields(bottom: int, top: int) -> st.SearchStrategy[Field]:
    def joined(chosen: list[Field]) -> Field:
        return ",".join(text for text, _ in chosen), frozenset().union(*(values for _, values in chosen))

    every = st.just(("*", frozenset(range(bottom, top + 1))))
    return every | items(bottom, top) | st.lists(items(bottom, top), min_size=2, max_size=3).map(joined)


def cron_weekday(day: date) -> int:
    return day.isoweekday() % 7


def is_nearest_workday(day: date, number: int) -> bool:
    month = [date(day.year, day.month, 1) + DAY * offset for offset in range(31)]
    month = [other for other in month if other.month == day.month]
    workdays = [other for other in month if other.isoweekday() <= 5]
    return len(month) >= number and day == min(workdays, key=lambda other: abs(other.day - number))


def month_days() -> st.SearchStrategy[tuple[str, Fits]]:
    numbers = st.integers(1, 31)
    return (
        fields(1, 31).map(lambda field: (field[0], lambda day: day.day in field[1]))
        | st.just(("L", lambda day: (day + DAY).month != day.month))
        | numbers.map(lambda n: (f"{n},L", lambda day: day.day == n or (day + DAY).month != day.month))
        | numbers.map(lambda n: (f"{n}W", lambda day: is_nearest_workday(day, n)))
    )


def week_days() -> st.SearchStrategy[tuple[str, Fits]]:
    numbers = st.integers(0, 6)

    def nth(number: int, week: int) -> tuple[str, Fits]:
        return f"{number}#{week}", lambda day: cron_weekday(day) == number and (day.day - 1) // 7 == week - 1

    def last(number: int) -> tuple[str, Fits]:
        return f"{number}L", lambda day: cron_weekday(day) == number and (day + 7 * DAY).month != day.month

    return (
        fields(0, 6).map(lambda field: (field[0], lambda day: cron_weekday(day) in field[1]))
        | numbers.map(lambda n: (DAY_NAMES[n], lambda day: cron_weekday(day) == n))
        | st.builds(nth, numbers, st.integers(1, 5))
        | numbers.map(last)
    )


def both_or_either(month: frozenset[int], by_date: Fits, by_weekday: Fits, *, both: bool) -> Fits:
    combine = all if both else any
    return cache(lambda day: day.month in month and combine((by_date(day), by_weekday(day))))


def expression_of(
    minute: Field, hour: Field, month_day: tuple[str, Fits], month: Field, week_day: tuple[str, Fits]
) -> Expression:
    columns = (minute[0], hour[0], month_day[0], month[0], week_day[0])
    return Expression(
        text=" ".join(columns),
        minutes=minute[1],
        hours=hour[1],
        fits=both_or_either(month[1], month_day[1], week_day[1], both="*" in (columns[2][0], columns[4][0])),
        repeats="*" in (columns[0][0], columns[1][0]),
    )


# Made once: hypothesis takes longer to make a strategy than to draw from it.
EVERY_MONTH = st.just(("*", frozenset(range(1, 13))))
EXPRESSIONS = st.builds(
    expression_of, fields(0, 59), fields(0, 23), month_days(), EVERY_MONTH | fields(1, 12), week_days()
)


@cache
def changes(name: str, year: int) -> list[datetime]:
    """Return the days of a year (and one day if there is none) on which the clock is changed."""
    zone = resolve(name)
    days = [datetime(year, 1, 1, tzinfo=UTC) + DAY * offset for offset in range(366)]
    shown = [(day, zone.wall(day) - day.replace(tzinfo=None)) for day in days]
    return [day for (day, before), (_, after) in pairwise(shown) if before != after] or days[59:60]


@st.composite
def windows(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone and a moment, most often near a change of its clock."""
    name = draw(st.sampled_from(sorted(zone_names())))
    near = draw(st.sampled_from(changes(name, draw(st.integers(1976, 2037)))))
    return name, near + HOUR * draw(st.integers(-24, 24)) + timedelta(seconds=draw(st.integers(0, 3599)))


class Walk:
    """The minutes around a window as the clock of a zone shows them, and those that it jumps over."""

    def __init__(self, name: str, after: datetime) -> None:
        zone = resolve(name).info
        start = after.replace(second=0) - LONGEST_FOLD
        minutes = [start + MINUTE * offset for offset in range((WINDOW + 2 * LONGEST_FOLD) // MINUTE)]
        self.ticks = [
            Tick(minute, minute.astimezone(zone).replace(tzinfo=None, fold=0)) for minute in minutes
        ]
        self.missing = [
            Tick(tick.instant, last.wall + MINUTE * offset)
            for last, tick in pairwise(self.ticks)
            for offset in range(1, (tick.wall - last.wall) // MINUTE)
        ]
        """Wall times in a gap, each with the instant that ends it."""

    def fires(self, expression: Expression, *, gap: Gap, fold: Fold) -> list[datetime]:
        passes = defaultdict(list)
        for instant, wall in self.ticks:
            if expression.matches(wall):
                passes[wall].append(instant)
        if expression.repeats:
            return sorted(instant for instants in passes.values() for instant in instants)
        chosen = {Fold.FIRST: slice(0, 1), Fold.SECOND: slice(-1, None), Fold.BOTH: slice(None)}[fold]
        fires = {instant for instants in passes.values() for instant in instants[chosen]}
        if gap == Gap.RUN_AFTER_GAP:
            fires |= {end for end, wall in self.missing if expression.matches(wall)}
        return sorted(fires)


@given(
    window=windows(),
    batch=st.lists(EXPRESSIONS, min_size=10, max_size=10),
    gap=st.sampled_from(Gap),
    fold=st.sampled_from(Fold),
)
@settings(max_examples=200, deadline=None)
def test_occurrences_are_the_minutes_that_match(
    window: tuple[str, datetime], batch: list[Expression], gap: Gap, fold: Fold
) -> None:
    name, after = window
    until = after + WINDOW
    walk = Walk(name, after)
    for expression in batch:
        expected = [time for time in walk.fires(expression, gap=gap, fold=fold) if after < time <= until]
        try:
            parsed = cron.parse(expression.text)
        except NeverFires:
            assert expected == [], expression.text
            continue
        schedule = Recurring(expressions=(parsed,), zone=resolve(name), gap=gap, fold=fold)
        assert occurrences(schedule, after=after, until=until, limit=5000) == expected, expression.text


@given(expression=EXPRESSIONS)
@settings(max_examples=50, deadline=None)
def test_never_fires_is_said_of_days_that_no_year_has(expression: Expression) -> None:
    days = (date(2001, 1, 1) + DAY * offset for offset in range(28 * 366))
    try:
        cron.parse(expression.text)
    except NeverFires:
        assert not any(map(expression.fits, days)), expression.text
    else:
        assert any(map(expression.fits, days)), expression.text
