"""Cron expressions: from text to the wall times that match.

Five fields (minute, hour, day of month, month, day of week) or six, with seconds first; or one of `@hourly`,
`@daily` (`@midnight`), `@weekly`, `@monthly`, `@yearly` (`@annually`). The grammar of a field is in
`cron_fields`, the days are in `cron_days`, and `timezones` makes instants of wall times. A job may have several,
divided by `;`: it fires whenever one of them does.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime, time
from functools import lru_cache

import msgspec

from app.domain.cron_days import Days, Selector
from app.domain.cron_fields import FIELDS, Field, Span, expand, read
from app.domain.errors import InvalidCron, NeverFires

MAX_LENGTH = 256
_MIDNIGHT = time()
_ZONE_PREFIX = re.compile(r"(?:CRON_)?TZ\s*=", re.IGNORECASE)
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_NO_MACROS = {
    "@reboot": "has no meaning in a service: use a schedule of type IMMEDIATE",
    "@every": "is no cron expression: use a schedule of type INTERVAL",
}


class CronExpression(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed expression. `text` is it with single blanks; the tuples ascend."""

    text: str
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Days
    follows_elapsed_time: bool
    """The minute or the hour field begins with `*`: such a job repeats, it has no time of day of its own.

    Vixie cron (cron(8)) lets it run in both passes of a fold and makes up nothing after a gap.
    """

    def walls(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the wall times that match, ascending, from `start` to the end of the day of `end`."""
        first_day = start.date()
        for day in self.days.between(first_day, end.date()):
            for moment in self._times(start.time() if day == first_day else _MIDNIGHT):
                yield datetime.combine(day, moment)

    def _times(self, start: time) -> Iterator[time]:
        for hour in _at_least(self.hours, start.hour):
            for minute in _at_least(self.minutes, start.minute if hour == start.hour else 0):
                for second in self.seconds:
                    moment = time(hour, minute, second)
                    if moment >= start:
                        yield moment


def parse(expression: str) -> CronExpression:
    """Read a cron expression.

    Raises `InvalidCron` with the field and the reason, or `NeverFires` if no day fits (30 February).
    """
    _check_characters(expression)
    text = " ".join(expression.split())
    if _ZONE_PREFIX.match(text):
        raise InvalidCron("the expression holds a time zone: give it as the schedule's timezone")
    return _compile(text)


def parse_all(text: str) -> tuple[CronExpression, ...]:
    """Read one expression, or several divided by `;`. Raises what `parse` raises, saying of which one."""
    _check_length(text)
    given = text.split(";")
    if len(given) == 1:
        return (parse(text),)
    return tuple(_parse_one_of(one, number) for number, one in enumerate(given, 1))


def _parse_one_of(expression: str, number: int) -> CronExpression:
    try:
        return parse(expression)
    except (InvalidCron, NeverFires) as error:
        raise type(error)(f"expression {number} of those divided by ';': {error.detail}") from None


def _check_length(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise InvalidCron(f"the expression has {len(text)} characters, at most {MAX_LENGTH} may be")


def _check_characters(expression: str) -> None:
    _check_length(expression)
    if not expression.strip():
        raise InvalidCron("the expression is empty: give 5 fields, such as '0 2 * * *'")
    for character in expression:
        if not (" " <= character <= "~" or character == "\t"):
            raise InvalidCron(f"the character {character!a} may not occur: use one line of printable ASCII")


# Many jobs share few expressions, and a materializer reads each again at every tick.
@lru_cache(maxsize=8192)
def _compile(text: str) -> CronExpression:
    given = _split(text)
    columns = ["0", *given][-len(FIELDS) :]  # without a seconds field: at second 0
    numbers = range(len(given) - 5, len(given) + 1)
    spans, selectors = zip(*map(_read, columns, FIELDS, numbers), strict=True)
    seconds, minutes, hours, dates, months, weekdays = expand(spans)
    _, minute, hour, date, _, weekday = (column.startswith("*") for column in columns)
    days = Days(
        months=months,
        dates=frozenset(dates),
        date_selectors=tuple(selectors[3]),
        weekdays=frozenset(weekdays),
        weekday_selectors=tuple(selectors[5]),
        both=date or weekday,
    )
    if not days.ever():
        raise NeverFires(f"'{text}' never fires: no date fits its day of month, month and day of week")
    return CronExpression(
        text=text,
        seconds=seconds,
        minutes=minutes,
        hours=hours,
        days=days,
        follows_elapsed_time=minute or hour,
    )


def _split(text: str) -> list[str]:
    """Return the five or six fields; a `?` alone in a day field is a `*`."""
    columns = (_expand_macro(text) if text.startswith("@") else text).split()
    if len(columns) not in (5, 6):
        raise InvalidCron(f"the expression has {len(columns)} fields: give 5, or 6 with seconds first")
    for day_field in (-3, -1):
        columns[day_field] = "*" if columns[day_field] == "?" else columns[day_field]
    return columns


def _expand_macro(text: str) -> str:
    name = text.lower()
    if name in _MACROS:
        return _MACROS[name]
    reason = _NO_MACROS.get(name.split()[0], f"is unknown: use one of {', '.join(_MACROS)}")
    raise InvalidCron(f"'{text}' {reason}")


def _read(column: str, field: Field, number: int) -> tuple[list[Span], list[Selector]]:
    try:
        return read(column, field)
    except InvalidCron as error:
        raise InvalidCron(f"field {number} ({field.label}): {error.detail}") from None


def _at_least(values: tuple[int, ...], low: int) -> tuple[int, ...]:
    return values[bisect_left(values, low) :]
