"""On which days a cron expression fires: dates, weekdays, and Quartz's `L`, `W` and `#`.

Weekdays are cron's: 0 is Sunday, 6 is Saturday.
"""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple, Self

import msgspec

SUNDAY, SATURDAY = 0, 6
_EVERY_SHAPE_OF_YEAR = range(2001, 2029)
"""28 years without a skipped leap year hold all 14 kinds of year (leap or not, by its first weekday)."""


class Month(NamedTuple):
    """The shape of a month: the weekday of the day before the first, and how many days it has."""

    weekday_before: int
    length: int

    @classmethod
    def of(cls, year: int, month: int) -> Self:
        """Return the shape of a month of the Gregorian calendar."""
        monday_based, length = monthrange(year, month)
        return cls(int(monday_based), length)  # Monday is 0 there and 1 here: the day before

    def weekday(self, day: int) -> int:
        """Return the weekday of a day of this month."""
        return (self.weekday_before + day) % 7


class FromLast(msgspec.Struct, frozen=True):
    """`L` (0): the last day of the month; `L-3`: three days before it."""

    days_before: int

    def within(self, month: Month) -> set[int]:
        """Return the days chosen in `month`."""
        return {day for day in (month.length - self.days_before,) if day >= 1}


class NearestWorkday(msgspec.Struct, frozen=True):
    """`15W`: the day from Monday to Friday that is nearest to the 15th and in the same month.

    A month without the day has none, as for a plain `31`.
    """

    day: int

    def within(self, month: Month) -> set[int]:
        """Return the days chosen in `month`."""
        if self.day > month.length:
            return set()
        if month.weekday(self.day) == SATURDAY:
            return {self.day - 1 if self.day > 1 else self.day + 2}
        if month.weekday(self.day) == SUNDAY:
            return {self.day + 1 if self.day < month.length else self.day - 2}
        return {self.day}


class LastWorkday(msgspec.Struct, frozen=True):
    """`LW`: the last day from Monday to Friday of the month."""

    def within(self, month: Month) -> set[int]:
        """Return the days chosen in `month`."""
        return NearestWorkday(month.length).within(month)


class NthWeekday(msgspec.Struct, frozen=True):
    """`MON#2`: the second Monday of the month; months without a fifth one have no `MON#5`."""

    weekday: int
    nth: int

    def within(self, month: Month) -> set[int]:
        """Return the days chosen in `month`."""
        first = 1 + (self.weekday - month.weekday(1)) % 7
        return {day for day in (first + 7 * (self.nth - 1),) if day <= month.length}


class LastWeekday(msgspec.Struct, frozen=True):
    """`5L` or `L5`: the last Friday of the month."""

    weekday: int

    def within(self, month: Month) -> set[int]:
        """Return the days chosen in `month`."""
        return {month.length - (month.weekday(month.length) - self.weekday) % 7}


Selector = FromLast | NearestWorkday | LastWorkday | NthWeekday | LastWeekday


class Days(msgspec.Struct, frozen=True, kw_only=True):
    """The three day fields of an expression together.

    The rule is Vixie cron's (crontab(5)): if one of the two day fields begins with `*`, a day must satisfy
    both (`both`); otherwise one of them is enough. The month must always fit.
    """

    months: tuple[int, ...]
    dates: frozenset[int]
    date_selectors: tuple[Selector, ...]
    weekdays: frozenset[int]
    weekday_selectors: tuple[Selector, ...]
    both: bool

    def in_month(self, year: int, month: int) -> list[int]:
        """Return the days of one month (which must be one of `months`), ascending."""
        shape = Month.of(year, month)
        by_date = {day for day in self.dates if day <= shape.length}
        by_weekday = {day for day in range(1, shape.length + 1) if shape.weekday(day) in self.weekdays}
        for selector in self.date_selectors:
            by_date |= selector.within(shape)
        for selector in self.weekday_selectors:
            by_weekday |= selector.within(shape)
        return sorted(by_date & by_weekday if self.both else by_date | by_weekday)

    def between(self, start: date, end: date) -> Iterator[date]:
        """Yield the days from `start` to `end`, both included, ascending."""
        for year in range(start.year, end.year + 1):
            for month in self.months:
                if (start.year, start.month) <= (year, month) <= (end.year, end.month):
                    yield from self._days_of(year, month, start=start, end=end)

    def ever(self) -> bool:
        """Say whether any day of any year fits: 30 February does not."""
        return any(self.in_month(year, month) for year in _EVERY_SHAPE_OF_YEAR for month in self.months)

    def _days_of(self, year: int, month: int, *, start: date, end: date) -> Iterator[date]:
        days = (date(year, month, day) for day in self.in_month(year, month))
        return (day for day in days if start <= day <= end)
