"""Reads sentences about cron expressions back: what somebody expects who knows the sentence only.

It knows nothing of how sentences are made, and reads English by its own rules.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from functools import cache
from itertools import pairwise

Fits = Callable[[date], bool]
Moments = frozenset[int]
"""Seconds of a day."""

_DAY = 86_400
_UNITS = {"second": 1, "minute": 60, "hour": 3_600}
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_RHYTHM = re.compile(
    r"every (?:(\d+) )?(second|minute|hour)s?"
    r"(?: at (minute|second) (\d+)| from ([\d:]+)(?: to ([\d:]+))?)?"
)
_OF_HOURS = re.compile(
    r"(?:at minutes? (?P<minutes>[\d, and]+)"
    r"|every (?:(?P<step>\d+) )?minutes? from minute (?P<low>\d+) to (?P<high>\d+))"
    r" of (?:every hour(?: from (?P<first>\d+) to (?P<last>\d+))?|(?:the hours|hour) (?P<hours>[\d, and]+))"
)


def read(sentence: str) -> Callable[[datetime], bool]:
    """Return the question whether a schedule of this sentence fires at a wall time (with whole seconds)."""
    fits, moments = _split(sentence)
    fits = cache(fits)
    return lambda wall: _second(wall.time()) in moments and fits(wall.date())


def _split(sentence: str) -> tuple[Fits, Moments]:
    days, at, times = sentence.rpartition(" at ")
    if at and re.fullmatch(r"\d\d:\d\d(?::\d\d)?(?:(?:, | and )\d\d:\d\d(?::\d\d)?)*", times):
        return _days(days.rstrip(",")), frozenset(_clock(one) for one in re.split(", | and ", times))
    for cut in [match.start() for match in re.finditer(", ", sentence)]:
        try:
            moments = _rhythm(sentence[:cut])
            return _days(sentence[cut + 2 :]), moments
        except LookupError:
            continue
    return (lambda _: True), _rhythm(sentence)


def _rhythm(text: str) -> Moments:
    if match := _OF_HOURS.fullmatch(text):
        return _of_hours(match)
    match = _RHYTHM.fullmatch(text)
    if match is None:
        raise LookupError(text)
    count, unit, place, number, first, last = match.groups()
    step = int(count or 1) * _UNITS[unit]
    start = int(number) * _UNITS[place] if place else _clock(first or "00:00")
    end = _clock(last) if last else start + _DAY - 1
    return frozenset(second % _DAY for second in range(start, end + 1, step))


def _of_hours(match: re.Match[str]) -> Moments:
    if match["minutes"]:
        minutes = _numbers(match["minutes"])
    else:
        minutes = list(range(int(match["low"]), int(match["high"]) + 1, int(match["step"] or 1)))
    if match["hours"]:
        hours = _numbers(match["hours"])
    else:
        hours = list(range(int(match["first"] or 0), int(match["last"] or 23) + 1))
    return frozenset(hour * 3_600 + minute * 60 for hour in hours for minute in minutes)


def _days(text: str) -> Fits:
    text, _, condition = text.partition(", if that is a ")
    parts = _parts_of(text)
    kinds = {_WEEKDAYS.index(name) for name in re.split(", | or ", condition)} if condition else None
    return lambda day: any(part(day) for part in parts) and (kinds is None or day.weekday() in kinds)


def _parts_of(text: str) -> list[Fits]:
    """Split `on the 13th of every month and every Friday` where a new kind of day begins."""
    weekdays, months = "|".join(_WEEKDAYS), "|".join(_MONTHS)
    starts = rf"(?:every|on|(?:{weekdays}) to)"
    ends = rf"(?:{weekdays}|{months}|month|there is one\)|that there are\))"
    cuts = [
        match.start()
        for match in re.finditer(rf"(?<=\w|\)) and {starts} ", text)
        if re.search(rf"{ends}$", text[: match.start()])
    ]
    edges = [0, *cuts, len(text)]
    return [_part(text[low:high].removeprefix(" and ")) for low, high in pairwise(edges)]


def _part(text: str) -> Fits:
    text = re.sub(r" \((?:if there is one|those that there are)\)$", "", text)
    match = re.fullmatch(r"every day(?: in (.+))?", text)
    if match:
        months = _months(match[1])
        return lambda day: day.month in months
    if " of " in text:
        nouns, _, of = text.rpartition(" of ")
        months = _months(None if of == "every month" else of)
        chosen = [_noun(noun) for noun in re.split(r", | and ", nouns.removeprefix("on "))]
        return lambda day: day.month in months and any(noun(day) for noun in chosen)
    names, _, of = text.partition(" in ")
    months, weekdays = _months(of or None), _weekdays(names)
    return lambda day: day.month in months and day.weekday() in weekdays


def _noun(text: str) -> Fits:
    for pattern, meaning in _NOUNS.items():
        if match := re.fullmatch(pattern, text.removeprefix("the ")):
            return meaning(*match.groups())
    raise LookupError(text)


def _stepped(step: str, low: str, high: str) -> Fits:
    return lambda day: day.day in range(int(low), int(high) + 1, int(step))


def _from_last(before: str | None) -> Fits:
    return lambda day: day.day == monthrange(day.year, day.month)[1] - int(before or 0)


def _of_kind(which: str, name: str) -> Fits:
    weekday = _WEEKDAYS.index(name)
    place = -1 if which == "last" else _NTH[which] - 1

    def fits(day: date) -> bool:
        kind = [one for one in _month(day) if one.weekday() == weekday]
        return place < len(kind) and day == kind[place]

    return fits


def _month(day: date) -> list[date]:
    return [day.replace(day=number) for number in range(1, monthrange(day.year, day.month)[1] + 1)]


def _nearest(day: date, number: int) -> date | None:
    """Return the workday of the month that is nearest to a date which the month has."""
    month = _month(day)
    if number > len(month):
        return None
    target = day.replace(day=number)
    return min((one for one in month if one.weekday() < 5), key=lambda one: abs(one - target) / timedelta(1))


def _weekdays(text: str) -> set[int]:
    if match := re.fullmatch(r"(\w+) to (\w+)", text):
        first, last = (_WEEKDAYS.index(name) for name in match.groups())
        return {(first + number) % 7 for number in range((last - first) % 7 + 1)}
    if not text.startswith("every "):
        raise LookupError(text)
    return {_index(_WEEKDAYS, name) for name in re.split(", | and ", text.removeprefix("every "))}


def _months(text: str | None) -> set[int]:
    if text is None:
        return set(range(1, 13))
    if match := re.fullmatch(r"(\w+) to (\w+)", text):
        first, last = (_index(_MONTHS, name) + 1 for name in match.groups())
        return set(range(first, last + 1))
    return {_index(_MONTHS, name) + 1 for name in re.split(", | and ", text)}


def _index(names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise LookupError(name)
    return names.index(name)


def _numbers(text: str) -> list[int]:
    return [int(one) for one in re.split(", | and ", text)]


def _clock(text: str) -> int:
    return _second(time.fromisoformat(text))


def _second(moment: time) -> int:
    return moment.hour * 3_600 + moment.minute * 60 + moment.second


_NOUNS: dict[str, Callable[..., Fits]] = {
    r"every (\d+) days from the (\d+)\w\w to the (\d+)\w\w": _stepped,
    r"(\d+)\w\w to (\d+)\w\w": lambda low, high: _stepped("1", low, high),
    r"(\d+)(?:st|nd|rd|th)": lambda number: _stepped("1", number, number),
    r"(?:(\d+)\w\w day before the )?last(?: day)?": _from_last,
    r"last workday": lambda: lambda day: day == max(one for one in _month(day) if one.weekday() < 5),
    r"workday nearest the (\d+)\w\w": lambda number: lambda day: day == _nearest(day, int(number)),
    r"(\w+) (\w+day)": _of_kind,
}
