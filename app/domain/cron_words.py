"""Cron expressions as sentences: `every day at 02:30`, `every 15 minutes, from Monday to Friday`.

A sentence says exactly when the expression fires, on the wall clock of its zone. What would take a sentence that
nobody can read, or one that is only nearly right (`*/7` is not every 7 minutes), has none: show the expression.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, assert_never

from app.domain.cron import CronExpression
from app.domain.cron_days import (
    Days,
    FromLast,
    LastWeekday,
    LastWorkday,
    NearestWorkday,
    NthWeekday,
    Selector,
)

MOST_LISTED = 6
"""Of times, days or months that a sentence names one by one."""
_DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTH_NAMES = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                "November", "December")  # fmt: skip
_LEAST_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_NTH = ("first", "second", "third", "fourth", "fifth")
_EVERY_DATE, _EVERY_WEEKDAY = frozenset(range(1, 32)), frozenset(range(7))
_SURE_DAYS = 28
"""Every month has as many."""


class _Days(NamedTuple):
    """Which days: before `at 02:30`, and after `every 15 minutes, `. Both empty: every day."""

    at: str
    during: str


def cron_words(expression: CronExpression) -> str | None:
    """Return a sentence that says when an expression fires, None where there is none worth reading."""
    days = _days(expression.days)
    if days is None:
        return None
    if times := _times_of_day(expression):
        return f"{days.at or 'every day'} at {times}"
    pace = _pace(expression)
    if pace is None:
        return None
    return f"{pace}, {days.during}".rstrip(",") if days.during else pace


# --- times


def _times_of_day(cron: CronExpression) -> str | None:
    """Return the times of a few runs a day."""
    if len(cron.hours) * len(cron.minutes) * len(cron.seconds) > MOST_LISTED:
        return None
    exact = cron.seconds != (0,)
    return _listed(
        f"{hour:02}:{minute:02}" + (f":{second:02}" if exact else "")
        for hour in cron.hours
        for minute in cron.minutes
        for second in cron.seconds
    )


def _pace(cron: CronExpression) -> str | None:
    """Return how often it runs through the day, or through some hours of it."""
    if len(cron.hours) == 24:
        return _through_the_day(cron.seconds, cron.minutes)
    if cron.seconds != (0,):
        return None
    first, last = cron.hours[0], cron.hours[-1]
    if len(cron.minutes) == 1 and (hours := _step(cron.hours)):
        [minute] = cron.minutes
        return f"every {_count(hours, 'hour')} from {first:02}:{minute:02} to {last:02}:{minute:02}"
    if _step(cron.hours) == 1 and (minutes := _whole_step(cron.minutes)):
        return f"every {_count(minutes, 'minute')} from {first:02}:00 to {last:02}:{cron.minutes[-1]:02}"
    return None


def _through_the_day(seconds: Sequence[int], minutes: Sequence[int]) -> str | None:
    if len(minutes) == 60:
        return _through_minutes(seconds)
    if seconds != (0,):
        return None
    if step := _whole_step(minutes):
        return f"every {_count(step, 'minute')}"
    if minutes == (0,):
        return "every hour on the hour"
    if len(minutes) > MOST_LISTED:
        return None
    return f"every hour at minute{'s' if len(minutes) > 1 else ''} {_listed(map(str, minutes))}"


def _through_minutes(seconds: Sequence[int]) -> str | None:
    if len(seconds) == 1:
        return f"every minute at second {seconds[0]}" if seconds[0] else "every minute"
    step = _whole_step(seconds)
    return f"every {_count(step, 'second')}" if step else None


def _step(values: Sequence[int]) -> int | None:
    """Return the distance between neighbours, where it is always the same."""
    steps = {high - low for low, high in pairwise(values)}
    return steps.pop() if len(steps) == 1 else None


def _whole_step(values: Sequence[int]) -> int | None:
    """Return the step of seconds or minutes that go on evenly from one round of the clock to the next, from 0 on."""
    step = _step(values)
    return step if step and values[0] == 0 and values[-1] + step == 60 else None


# --- days


def _days(days: Days) -> _Days | None:
    """Return the days; if `days.both` they must satisfy both fields, otherwise one is enough."""
    any_date, any_weekday = days.dates == _EVERY_DATE, days.weekdays == _EVERY_WEEKDAY
    if (any_date and any_weekday) if days.both else (any_date or any_weekday):
        return _every_day(days.months)
    if days.both and any_date:
        return _weekdays(days)
    if days.both and any_weekday:
        return _dates(days)
    if days.both:
        return None
    by_date, by_weekday = _dates(days), _weekdays(days)
    if by_date is None or by_weekday is None:
        return None
    return _Days(f"{by_date.at} and {by_weekday.at}", f"{by_date.during} and {by_weekday.during}")


def _every_day(months: Sequence[int]) -> _Days | None:
    if len(months) == 12:
        return _Days("", "")
    named = _months(months)
    return _Days(f"every day in {named}", f"every day in {named}") if named else None


def _weekdays(days: Days) -> _Days | None:
    if days.weekday_selectors:
        return None if days.weekdays else _chosen_days(days.weekday_selectors, (), days.months)
    of = _during(days.months)
    if of is None:
        return None
    ordered = sorted(days.weekdays, key=lambda day: (day - 1) % 7)  # weeks begin on Monday
    places = [(day - 1) % 7 for day in ordered]
    if len(ordered) > 2 and _step(places) == 1:
        span = f"from {_DAY_NAMES[ordered[0]]} to {_DAY_NAMES[ordered[-1]]}{of}"
        return _Days(span, span)
    names = [_DAY_NAMES[day] for day in ordered]
    return _Days(f"every {_listed(names)}{of}", f"on {_listed(f'{name}s' for name in names)}{of}")


def _dates(days: Days) -> _Days | None:
    dates = sorted(days.dates)
    if len(dates) > 2 and _step(dates) == 1 and not days.date_selectors:
        of = _of(days.months)
        span = f"from the {_ordinal(dates[0])} to the {_ordinal(dates[-1])} {of}"
        return _Days(span, span) if of else None
    return _chosen_days(days.date_selectors, dates, days.months)


def _chosen_days(selectors: Sequence[Selector], dates: Sequence[int], months: Sequence[int]) -> _Days | None:
    of = _of(months)
    if of is None or len(selectors) + len(dates) > MOST_LISTED:
        return None
    words = [*map(_ordinal, dates), *map(_selector_words, selectors)]
    least = min(_LEAST_DAYS[month - 1] for month in months)
    may_lack = any(date > least for date in dates) or any(_may_lack(one, least) for one in selectors)
    chosen = f"on the {_listed(words)} {of}{', where there is one,' if may_lack else ''}"
    return _Days(chosen, chosen)


def _selector_words(selector: Selector) -> str:
    match selector:
        case FromLast(days_before=0):
            return "last day"
        case FromLast(days_before=days):
            return f"{_ordinal(days)} day before the last one"
        case LastWorkday():
            return "last working day"
        case NearestWorkday(day=day):
            return f"working day nearest to the {_ordinal(day)}"
        case NthWeekday(weekday=weekday, nth=nth):
            return f"{_NTH[nth - 1]} {_DAY_NAMES[weekday]}"
        case LastWeekday(weekday=weekday):
            return f"last {_DAY_NAMES[weekday]}"
        case _:
            assert_never(selector)


def _may_lack(selector: Selector, least_days: int) -> bool:
    """Tell whether some month has no such day."""
    match selector:
        case FromLast(days_before=days):
            return days >= least_days
        case NearestWorkday(day=day):
            return day > least_days
        case NthWeekday(nth=nth):
            return nth * 7 > _SURE_DAYS
        case _:
            return False


# --- months


def _months(months: Sequence[int]) -> str | None:
    names = [_MONTH_NAMES[month - 1] for month in months]
    return _listed(names) if len(names) <= MOST_LISTED else None


def _of(months: Sequence[int]) -> str | None:
    """Return the months of dates; None where there are too many to name."""
    if len(months) == 12:
        return "of every month"
    named = _months(months)
    return f"of {named}" if named else None


def _during(months: Sequence[int]) -> str | None:
    """Return the months of weekdays, with a blank before; empty where it is every month."""
    if len(months) == 12:
        return ""
    named = _months(months)
    return f" in {named}" if named else None


# --- words


def _listed(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _count(number: int, unit: str) -> str:
    return unit if number == 1 else f"{number} {unit}s"


def _ordinal(number: int) -> str:
    last = 0 if 10 < number < 20 else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"
