"""The grammar of one field of a cron expression.

A field is a list (`,`) of items: `*`, a value, a range `low-high`, each with an optional step `/n`. A value
is a number or, for months and weekdays, the first three letters of its English name. `low/n` runs to the last
value of the field. A range whose low end is the greater one wraps: `22-2` is 22, 23, 0, 1, 2, and its step
counts on over the wrap. The day fields know further items, see `cron_days`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from croniter import croniter

from app.domain.cron_days import FromLast, LastWeekday, LastWorkday, NearestWorkday, NthWeekday, Selector
from app.domain.errors import InvalidCron

_RANGE = re.compile(r"(\*|\w+)(?:-(\w+))?", re.ASCII)
_FROM_LAST = re.compile(r"L(?:-(\d+))?", re.ASCII | re.IGNORECASE)
_NEAREST = re.compile(r"(\d+)W", re.ASCII | re.IGNORECASE)
_NTH = re.compile(r"(\w+)#(\w*)", re.ASCII)
_LAST_WEEKDAY = re.compile(r"([a-z]{3}|\d+)L|L([a-z]{3}|\d+)", re.ASCII | re.IGNORECASE)
_MOST_WEEKS = 5


class Span(NamedTuple):
    """The values `low`, `low + step` … up to `high`."""

    low: int
    high: int
    step: int

    def __str__(self) -> str:
        """Return it as cron text. A single value stands alone: croniter reads `5-5` as the whole field."""
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}/{self.step}"


@dataclass(frozen=True, kw_only=True)
class Field:
    """One of the six fields: its name, its values, and the reading of items that only it knows."""

    label: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    low_again: int | None = None
    """A second number of the lowest value: weekday 7 is Sunday, as 0 is."""
    selector: Callable[[str], Selector | None] = lambda _: None

    @property
    def allowed(self) -> str:
        """Return the allowed values in words."""
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{self.low}-{self.low_again or self.high}{names}"

    def value(self, text: str) -> int:
        """Read one value as it stands: 7 stays 7."""
        if text.lower() in self.names:
            return self.low + self.names.index(text.lower())
        if not text.isdigit():
            raise InvalidCron(f"'{text}' is not in {self.allowed}")
        if not self.low <= int(text) <= (self.low_again or self.high):
            raise InvalidCron(f"{text} is not in {self.allowed}")
        return int(text)

    def canonical(self, value: int) -> int:
        """Return the number that stands for `value` in a set."""
        return self.low if value == self.low_again else value


def read(column: str, field: Field) -> tuple[list[Span], list[Selector]]:
    """Read one field: its plain values as spans that do not wrap, and its `L`, `W` and `#` items.

    Raises `InvalidCron` with the reason, without the field's name.
    """
    spans: list[Span] = []
    selectors: list[Selector] = []
    for item in column.split(","):
        selector = field.selector(item)
        if selector is None:
            spans += _read_spans(item, field)
        else:
            selectors.append(selector)
    return spans, selectors


def expand(columns: Sequence[list[Span]]) -> list[tuple[int, ...]]:
    """Return the values of the six columns (seconds first), ascending; a column without spans has none."""
    text = " ".join(",".join(map(str, spans)) or "*" for spans in columns)
    *others, second = croniter.expand(text, second_at_beginning=True)[0]
    return [
        _values(expanded, field) if spans else ()
        for expanded, spans, field in zip((second, *others), columns, FIELDS, strict=True)
    ]


def _values(expanded: Sequence[int | str], field: Field) -> tuple[int, ...]:
    """Undo croniter's shorthand for a field that is full."""
    if expanded == ["*"]:
        return tuple(range(field.low, field.high + 1))
    return tuple(sorted(int(value) for value in expanded))


def _read_spans(item: str, field: Field) -> list[Span]:
    body, slash, step = item.partition("/")
    match = _RANGE.fullmatch(body)
    if match is None or (match[1] == "*" and match[2]):
        raise InvalidCron(f"'{item}' is not a value, a range or a step")
    if slash and not (step.isdigit() and int(step) >= 1):
        raise InvalidCron(f"the step '{step}' of '{item}' is not a whole number of 1 or more")
    low, high = _ends(match[1], match[2], field=field, stepped=bool(slash))
    return _unwrap(low, high, step=int(step or 1), field=field)


def _ends(low: str, high: str | None, *, field: Field, stepped: bool) -> tuple[int, int]:
    """Return the ends of a range; the second is the lower one if the range wraps."""
    if low == "*":
        return field.low, field.high
    first = field.value(low)
    last = field.value(high) if high else first
    if high is None and stepped:
        last = field.high
    if (first, last) == (field.low, field.low_again):  # 0-7: both ends are Sunday, yet it is the whole week
        return field.low, field.high
    return field.canonical(first), field.canonical(last)


def _unwrap(low: int, high: int, *, step: int, field: Field) -> list[Span]:
    """Split a range that wraps in two (croniter loses count of the step there)."""
    if low <= high:
        return [Span(low, high, step)]
    head = range(low, field.high + 1, step)
    rest = field.low + (head[-1] + step) - (field.high + 1)
    tail = [Span(rest, high, step)] if rest <= high else []
    return [Span(low, field.high, step), *tail]


def _month_day(item: str) -> Selector | None:
    if item.upper() == "LW":
        return LastWorkday()
    if match := _FROM_LAST.fullmatch(item):
        return FromLast(_within(match[1], 1, 30) if match[1] else 0)
    if match := _NEAREST.fullmatch(item):
        return NearestWorkday(_within(match[1], 1, 31))
    return None


def _week_day(item: str) -> Selector | None:
    if match := _NTH.fullmatch(item):
        return NthWeekday(_weekday(match[1]), _within(match[2], 1, _MOST_WEEKS))
    if match := _LAST_WEEKDAY.fullmatch(item):
        return LastWeekday(_weekday(match[1] or match[2]))
    if item.upper() == "L":
        raise InvalidCron("L needs a weekday here: 5L is the last Friday of the month")
    return None


def _weekday(text: str) -> int:
    return DAY_OF_WEEK.canonical(DAY_OF_WEEK.value(text))


def _within(text: str, low: int, high: int) -> int:
    if not (text.isdigit() and low <= int(text) <= high):
        raise InvalidCron(f"'{text}' is not in {low}-{high}")
    return int(text)


SECOND = Field(label="second", low=0, high=59)
MINUTE = Field(label="minute", low=0, high=59)
HOUR = Field(label="hour", low=0, high=23)
DAY_OF_MONTH = Field(label="day of month", low=1, high=31, selector=_month_day)
MONTH = Field(
    label="month",
    low=1,
    high=12,
    names=("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
)
DAY_OF_WEEK = Field(
    label="day of week",
    low=0,
    high=6,
    low_again=7,
    names=("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
    selector=_week_day,
)
FIELDS = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
