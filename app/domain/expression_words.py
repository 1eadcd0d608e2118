"""Cron expressions in words: `every Tuesday at 02:00`. What cannot be said shortly and exactly is not said at all.

The words are made of the values that fire, not of the text: `*/1` is every minute, and what starts anew each hour
(`*/7`) is not called "every 7 minutes". Days are in `day_words`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from app.domain.cron import CronExpression, parse
from app.domain.day_words import EVERY_DAY, day_words
from app.domain.english import every, listed, step_of

DAY, HOUR, MINUTE = 86_400, 3_600, 60
_LISTED_FIRST = 4
"""Times of day that are listed rather than called a rhythm: 00:00, 06:00, 12:00 and 18:00."""
_MOST_LISTED = 6


class _Times(NamedTuple):
    """The times of a day in words."""

    words: str
    at: bool = False
    """`at 02:30`: said after the days."""
    all_day: bool = False
    """The rhythm goes over midnight unbroken."""


@lru_cache(maxsize=4096)
def expression_words(text: str) -> str | None:
    """Return an expression in words, without its zone; None where words would be long or not quite true.

    Raises `InvalidInput` if it is no expression.
    """
    expression = parse(text)
    days, times = day_words(expression.days), _times(expression)
    if days is None or times is None:
        return None
    if times.at:
        return f"{days} {times.words}"
    return times.words if times.all_day and days == EVERY_DAY else f"{times.words}, {days.rstrip(',')}"


def _times(expression: CronExpression) -> _Times | None:
    hours, minutes, seconds = expression.hours, expression.minutes, expression.seconds
    count = len(hours) * len(minutes) * len(seconds)
    if len(seconds) > 1 and count > _MOST_LISTED:
        return _within_minutes(expression)
    moments = [
        hour * HOUR + minute * MINUTE + second for hour in hours for minute in minutes for second in seconds
    ]
    if count <= _LISTED_FIRST:
        return _at(moments)
    if step := step_of(moments):
        return _rhythm(moments[0], moments[-1], step)
    return _at(moments) if count <= _MOST_LISTED else _within_hours(expression)


def _at(moments: Sequence[int]) -> _Times:
    return _Times(f"at {listed([_clock(moment) for moment in moments])}", at=True)


def _rhythm(first: int, last: int, step: int) -> _Times:
    """Word times of day at equal distances."""
    if first + DAY - last != step:
        return _Times(f"{every(step)} from {_clock(first)} to {_clock(last)}")
    if first == 0:
        return _Times(every(step), all_day=True)
    if step == HOUR and first % MINUTE == 0:
        return _Times(f"every hour at minute {first // MINUTE}", all_day=True)
    if step == MINUTE:
        return _Times(f"every minute at second {first}", all_day=True)
    return _Times(f"{every(step)} from {_clock(first)}", all_day=True)


def _within_minutes(expression: CronExpression) -> _Times | None:
    """Word several seconds of each minute, if they go on from minute to minute and from hour to hour."""
    hours, seconds = expression.hours, expression.seconds
    step = step_of(seconds)
    unbroken = step is not None and seconds[0] + MINUTE - seconds[-1] == step
    if step is None or not unbroken or len(expression.minutes) < MINUTE or not _is_run(hours):
        return None
    return _rhythm(hours[0] * HOUR + seconds[0], hours[-1] * HOUR + 59 * MINUTE + seconds[-1], step)


def _within_hours(expression: CronExpression) -> _Times | None:
    """Word several minutes that are the same in each hour."""
    minutes, hours = _minute_words(expression.minutes), _hour_words(expression.hours)
    if minutes is None or hours is None or expression.seconds != (0,):
        return None
    return _Times(f"{minutes} of {hours}", all_day=len(expression.hours) == 24)


def _minute_words(minutes: Sequence[int]) -> str | None:
    if len(minutes) == 1:
        return f"at minute {minutes[0]}"
    if len(minutes) <= _MOST_LISTED:
        return f"at minutes {listed([str(minute) for minute in minutes])}"
    if step := step_of(minutes):
        return f"{every(step * MINUTE)} from minute {minutes[0]} to {minutes[-1]}"
    return None


def _hour_words(hours: Sequence[int]) -> str | None:
    if len(hours) == 24:
        return "every hour"
    if len(hours) == 1:
        return f"hour {hours[0]:02}"
    if _is_run(hours):
        return f"every hour from {hours[0]:02} to {hours[-1]:02}"
    return f"the hours {listed([f'{hour:02}' for hour in hours])}" if len(hours) <= _MOST_LISTED else None


def _is_run(values: Sequence[int]) -> bool:
    return values[-1] - values[0] == len(values) - 1


def _clock(second: int) -> str:
    hours, rest = divmod(second, HOUR)
    minutes, seconds = divmod(rest, MINUTE)
    return f"{hours:02}:{minutes:02}" + (f":{seconds:02}" if seconds else "")
