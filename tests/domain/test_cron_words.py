"""Cron expressions as sentences: what they say, read back word by word, is when the engine fires."""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.cron import parse
from app.domain.cron_words import cron_words
from app.domain.errors import NeverFires

SENTENCES = [
    ("30 2 * * *", "every day at 02:30"),
    ("0 2 * * TUE", "every Tuesday at 02:00"),
    ("@daily", "every day at 00:00"),
    ("0 0,12 * * *", "every day at 00:00 and 12:00"),
    ("15 30 2 * * *", "every day at 02:30:15"),
    ("0 9 * * 1-5", "from Monday to Friday at 09:00"),
    ("0 9 * * 5-7", "from Friday to Sunday at 09:00"),
    ("0 9 * * 6-1", "every Monday, Saturday and Sunday at 09:00"),
    ("0 6 * 6-8 SAT,SUN", "every Saturday and Sunday in June, July and August at 06:00"),
    ("0 6 * 6 *", "every day in June at 06:00"),
    ("* * * * *", "every minute"),
    ("* * * * * *", "every second"),
    ("*/10 * * * * *", "every 10 seconds"),
    ("15 * * * * *", "every minute at second 15"),
    ("*/15 * * * *", "every 15 minutes"),
    ("*/15 9-17 * * 1-5", "every 15 minutes from 09:00 to 17:45, from Monday to Friday"),
    ("* 9-17 * * SUN", "every minute from 09:00 to 17:59, on Sundays"),
    ("0 * * * *", "every hour on the hour"),
    ("5 * * * *", "every hour at minute 5"),
    ("5,20 * * * *", "every hour at minutes 5 and 20"),
    ("30 9-17 * * *", "every hour from 09:30 to 17:30"),
    ("0 */2 * * *", "every 2 hours from 00:00 to 22:00"),
    ("0 0 1 * *", "on the 1st of every month at 00:00"),
    ("0 0 1,15 1,7 *", "on the 1st and 15th of January and July at 00:00"),
    ("0 0 1-7 * *", "from the 1st to the 7th of every month at 00:00"),
    ("@yearly", "on the 1st of January at 00:00"),
    ("0 0 L * *", "on the last day of every month at 00:00"),
    ("0 0 L-3 * *", "on the 3rd day before the last one of every month at 00:00"),
    ("0 0 LW * *", "on the last working day of every month at 00:00"),
    ("0 0 15W * *", "on the working day nearest to the 15th of every month at 00:00"),
    ("0 0 * * MON#2", "on the second Monday of every month at 00:00"),
    ("0 0 * * 5L", "on the last Friday of every month at 00:00"),
    ("*/5 * 1 * *", "every 5 minutes, on the 1st of every month"),
    # The traps.
    ("0 0 13 * FRI", "on the 13th of every month and every Friday at 00:00"),  # one of the two is enough
    ("0 0 1-31 * MON", "every day at 00:00"),  # the same: the 1st to the 31st are all days
    ("0 0 31 * *", "on the 31st of every month, where there is one, at 00:00"),
    ("*/5 * 31 * *", "every 5 minutes, on the 31st of every month, where there is one"),
    ("0 0 29 2 *", "on the 29th of February, where there is one, at 00:00"),
    ("0 0 31 12 *", "on the 31st of December at 00:00"),
    ("0 0 * * MON#5", "on the fifth Monday of every month, where there is one, at 00:00"),
    ("*/7 * * * *", None),  # 56, 0, 7: not every 7 minutes
    ("*/45 * * * *", "every hour at minutes 0 and 45"),
    ("*/40 * * * * *", None),
    ("0 0 */2 * MON", None),  # both must fit
    ("0 0 * * MON,FRI#2", None),
    ("*/7 9-17 * * *", None),
    ("30 */5 * * * *", None),
    ("0 0 1,3,5,7,9,11,13 * *", None),
]


@pytest.mark.parametrize(("expression", "sentence"), SENTENCES)
def test_says_when(expression: str, sentence: str | None) -> None:
    assert cron_words(parse(expression)) == sentence


@pytest.mark.parametrize("expression", [text for text, sentence in SENTENCES if sentence])
def test_the_example_is_right(expression: str) -> None:
    _check(expression)


def _field(low: int, high: int, *extra: str) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    item = st.one_of(
        st.just("*"),
        value.map(str),
        st.tuples(value, value).map(lambda ends: f"{min(ends)}-{max(ends)}"),
        st.integers(1, 31).map(lambda step: f"*/{step}"),
        st.tuples(value, st.integers(1, 20)).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        *([st.sampled_from(extra)] if extra else []),
    )
    return st.one_of(
        item, st.lists(item.filter(lambda one: one[0] != "*"), min_size=1, max_size=3).map(",".join)
    )


CLOCK = st.sampled_from(["0 0", "30 2", "*/15 *", "0 9-17", "0 */6", "5,50 8", "*/20 22-23", "* *", "59 */2"])
EXPRESSIONS = st.one_of(
    st.tuples(_field(0, 59), _field(0, 23), st.just("* * *")),
    st.tuples(_field(0, 59), _field(0, 59), _field(0, 23), st.just("* * *")),
    st.tuples(
        CLOCK,
        _field(1, 31, "L", "LW", "L-2", "L-28", "1W", "15W", "31W"),
        _field(1, 12),
        _field(0, 6, "MON#1", "FRI#5", "5L", "0L"),
    ),
).map(" ".join)


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS)
def test_a_sentence_read_back_fires_when_the_engine_does(expression: str) -> None:
    try:
        _check(expression)
    except NeverFires:
        return


# --- reading sentences: it knows English and the calendar, and nothing of cron

DAY_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTH_NAMES = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
               "November", "December"]  # fmt: skip
NTH = ["first", "second", "third", "fourth", "fifth"]
Fits = Callable[[date], bool]
SAMPLE = [date(2027, 1, 1) + timedelta(days=days) for days in range(2 * 365)]  # 2028 is a leap year


def _check(expression: str) -> None:
    cron = parse(expression)
    sentence = cron_words(cron)
    if sentence is None:
        return
    fits, times = _read(sentence)
    assert [day for day in SAMPLE if fits(day)] == list(cron.days.between(SAMPLE[0], SAMPLE[-1])), sentence
    day = next(day for day in cron.days.between(date(2027, 1, 1), date(2127, 1, 1)))
    midnight = datetime.combine(day, time())
    assert times == [wall.time() for wall in cron.walls(midnight, midnight)], sentence


def _read(sentence: str) -> tuple[Fits, list[time]]:
    if match := re.fullmatch(r"(.*?) at ((?:\d\d:\d\d(?::\d\d)?(?:, | and )?)+)", sentence):
        return _days(match[1].removesuffix(",")), [time.fromisoformat(one) for one in _names(match[2])]
    for pattern, read in PACES:
        if match := re.fullmatch(pattern + r"(?:, (.*))?", sentence):
            *given, days = match.groups()
            return _days(days or "every day"), read(*given)
    raise AssertionError(sentence)


def _clock(step_seconds: int, first: str = "00:00", last: str = "23:59:59", offset: int = 0) -> list[time]:
    moments = range(_seconds(first) + offset, _seconds(last) + 1, step_seconds)
    return [time(one // 3600, one // 60 % 60, one % 60) for one in moments]


def _seconds(text: str) -> int:
    moment = time.fromisoformat(text)
    return 3600 * moment.hour + 60 * moment.minute + moment.second


UNITS = {"second": 1, "minute": 60, "hour": 3600}
PACES: list[tuple[str, Callable[..., list[time]]]] = [
    (r"every (second|minute)", lambda unit: _clock(UNITS[unit])),
    (r"every (\d+) (second|minute)s", lambda count, unit: _clock(int(count) * UNITS[unit])),
    (r"every minute at second (\d+)", lambda second: _clock(60, offset=int(second))),
    (r"every hour on the hour", lambda: _clock(3600)),
    (
        r"every hour at minutes? ([\d, and]+)",
        lambda minutes: sorted(t for m in _names(minutes) for t in _clock(3600, offset=60 * int(m))),
    ),
    (
        r"every (minute|hour) from (\S+) to (\d\d:\d\d)",
        lambda unit, first, last: _clock(UNITS[unit], first, last),
    ),
    (
        r"every (\d+) (minute|hour)s from (\S+) to (\d\d:\d\d)",
        lambda count, unit, first, last: _clock(int(count) * UNITS[unit], first, last),
    ),
]


def _days(words: str) -> Fits:
    either = re.fullmatch(r"((?:on|from) the .*?),? and ((?:every|on|from) .*)", words)
    if either:
        one, other = _days(either[1]), _days(either[2])
        return lambda day: one(day) or other(day)
    fits, months = _within_months(words.removesuffix(", where there is one"))
    return lambda day: day.month in months and fits(day)


def _within_months(words: str) -> tuple[Fits, set[int]]:
    match = re.fullmatch(r"(.*?)(?: (?:in|of) (every month|(?:\w+(?:, | and )?)+))?", words)
    assert match
    named = match[2] or "every month"
    months = range(1, 13) if named == "every month" else [MONTH_NAMES.index(one) + 1 for one in _names(named)]
    return _day(match[1]), set(months)


def _day(words: str) -> Fits:
    if words == "every day":
        return lambda day: True  # noqa: ARG005 - it fits every day
    if match := re.fullmatch(r"from the (\d+)\w\w to the (\d+)\w\w", words):
        return lambda day: int(match[1]) <= day.day <= int(match[2])
    if match := re.fullmatch(r"from (\w+) to (\w+)", words):
        ends = DAY_NAMES.index(match[1]), DAY_NAMES.index(match[2])
        return lambda day: ends[0] <= day.weekday() <= ends[1]
    if words.startswith("on the "):
        choices = [_date(one) for one in _names(words.removeprefix("on the "))]
        return lambda day: any(fits(day) for fits in choices)
    names = {one.removesuffix("s") for one in _names(re.sub(r"^(every|on) ", "", words))}
    assert names <= set(DAY_NAMES), words
    return lambda day: DAY_NAMES[day.weekday()] in names


def _date(words: str) -> Fits:
    for pattern, fits in DATES:
        if match := re.fullmatch(pattern, words):
            return partial(_fits, fits, match.groups())
    raise AssertionError(words)


def _fits(fits: Callable[..., bool], found: tuple[str, ...], day: date) -> bool:
    return fits(day, *found)


DATES: list[tuple[str, Callable[..., bool]]] = [
    (r"(\d+)\w\w", lambda day, nth: day.day == int(nth)),
    (r"last day", lambda day: day.day == _length(day)),
    (r"(\d+)\w\w day before the last one", lambda day, before: day.day == _length(day) - int(before)),
    (r"last working day", lambda day: day.day == max(_working_days(day))),
    (r"working day nearest to the (\d+)\w\w", lambda day, nth: day.day == _nearest(day, int(nth))),
    (r"last (\w+day)", lambda day, name: DAY_NAMES[day.weekday()] == name and day.day + 7 > _length(day)),
    (
        r"(\w+) (\w+day)",
        lambda day, nth, name: DAY_NAMES[day.weekday()] == name and (day.day - 1) // 7 == NTH.index(nth),
    ),
]


def _nearest(day: date, nth: int) -> int | None:
    """Return the working day of the month nearest to a date, None where the month has no such date."""
    return min(_working_days(day), key=lambda one: abs(one - nth)) if nth <= _length(day) else None


def _length(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _working_days(day: date) -> list[int]:
    return [d for d in range(1, _length(day) + 1) if day.replace(day=d).weekday() < 5]


def _names(words: str) -> list[str]:
    return re.split(r", | and ", words)
