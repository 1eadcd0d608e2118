"""The days of a cron expression in words: `every Tuesday`, `on the 1st and the last day of every month`."""

from collections.abc import Sequence

from app.domain.cron_days import (
    Days,
    FromLast,
    LastWeekday,
    LastWorkday,
    NearestWorkday,
    NthWeekday,
    Selector,
)
from app.domain.english import listed, ordinal, step_of

EVERY_DAY = "every day"
_MOST_LISTED = 8
_SHORTEST = {2: 28, 4: 30, 6: 30, 9: 30, 11: 30}
_NTH = ("first", "second", "third", "fourth", "fifth")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def day_words(days: Days) -> str | None:
    """Return the days in words; None where words would be long."""
    any_date, any_weekday = len(days.dates) == 31, len(days.weekdays) == 7
    if (any_date and any_weekday) or (not days.both and (any_date or any_weekday)):
        return EVERY_DAY + _in_months(days)
    if any_date:
        return _weekdays(days)
    dates = _dates(days)
    if any_weekday or dates is None:
        return dates
    return _on_both(dates, days) if days.both else f"{dates} and {_weekdays(days)}"


def _on_both(dates: str, days: Days) -> str | None:
    """Word dates that fire only where they fall on certain weekdays."""
    if days.weekday_selectors:
        return None
    return f"{dates}, if that is a {listed([_WEEKDAYS[day] for day in _from_monday(days.weekdays)], 'or')},"


def _dates(days: Days) -> str | None:
    plain = _plain_dates(sorted(days.dates))
    if plain is None:
        return None
    nouns = [*plain, *map(_date_selector, days.date_selectors)]
    rare = len(plain) == len(days.dates) and max(days.dates, default=0) > _shortest(days)
    rare = rare or any(_is_rare(selector, days) for selector in days.date_selectors)
    on = "" if nouns[0].startswith("every") else "on "
    return f"{on}{listed(nouns)} of {_month_names(days) or 'every month'}{_if_any(nouns) if rare else ''}"


def _plain_dates(dates: Sequence[int]) -> list[str] | None:
    if len(dates) >= 3 and dates[-1] - dates[0] == len(dates) - 1:
        return [f"the {ordinal(dates[0])} to {ordinal(dates[-1])}"]
    if len(dates) <= _MOST_LISTED:
        return [f"the {ordinal(date)}" for date in dates]
    step = step_of(dates)
    return [f"every {step} days from the {ordinal(dates[0])} to the {ordinal(dates[-1])}"] if step else None


def _date_selector(selector: Selector) -> str:
    match selector:
        case FromLast(days_before=0):
            return "the last day"
        case FromLast(days_before=days):
            return f"the {ordinal(days)} day before the last"
        case NearestWorkday(day=day):
            return f"the workday nearest the {ordinal(day)}"
        case LastWorkday():
            return "the last workday"
        case NthWeekday(weekday=weekday, nth=nth):
            return f"the {_NTH[nth - 1]} {_WEEKDAYS[weekday]}"
        case LastWeekday(weekday=weekday):
            return f"the last {_WEEKDAYS[weekday]}"


def _weekdays(days: Days) -> str:
    parts = []
    if days.weekdays:
        parts.append(_plain_weekdays(days.weekdays) + _in_months(days))
    if days.weekday_selectors:
        nouns = [_date_selector(selector) for selector in days.weekday_selectors]
        rare = any(_is_rare(selector, days) for selector in days.weekday_selectors)
        months = _month_names(days) or "every month"
        parts.append(f"on {listed(nouns)} of {months}{_if_any(nouns) if rare else ''}")
    return listed(parts)


def _plain_weekdays(weekdays: frozenset[int]) -> str:
    firsts = [day for day in weekdays if (day - 1) % 7 not in weekdays]
    if len(weekdays) >= 3 and len(firsts) == 1:
        return f"{_WEEKDAYS[firsts[0]]} to {_WEEKDAYS[(firsts[0] + len(weekdays) - 1) % 7]}"
    return f"every {listed([_WEEKDAYS[day] for day in _from_monday(weekdays)])}"


def _from_monday(weekdays: frozenset[int]) -> list[int]:
    return sorted(weekdays, key=lambda day: (day - 1) % 7)


def _in_months(days: Days) -> str:
    names = _month_names(days)
    return f" in {names}" if names else ""


def _month_names(days: Days) -> str:
    """Return the months; nothing where it is all of them."""
    months = days.months
    if len(months) == 12:
        return ""
    if len(months) >= 3 and months[-1] - months[0] == len(months) - 1:
        return f"{_MONTHS[months[0] - 1]} to {_MONTHS[months[-1] - 1]}"
    return listed([_MONTHS[month - 1] for month in months])


def _shortest(days: Days) -> int:
    """Return the days that each of the months has at least."""
    return min(_SHORTEST.get(month, 31) for month in days.months)


def _is_rare(selector: Selector, days: Days) -> bool:
    """Tell whether some of the months have no such day."""
    match selector:
        case FromLast(days_before=before):
            return before >= _shortest(days)
        case NearestWorkday(day=day):
            return day > _shortest(days)
        case NthWeekday(nth=nth):
            return nth == len(_NTH)
        case LastWorkday() | LastWeekday():
            return False


def _if_any(nouns: Sequence[str]) -> str:
    return " (if there is one)" if len(nouns) == 1 else " (those that there are)"
