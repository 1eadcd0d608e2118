"""Sentences about schedules: how they read, and that they are true."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.domain import cron
from app.domain.english import every
from app.domain.errors import InvalidInput
from app.domain.expression_words import expression_words
from app.domain.schedule import Immediate, Interval, Once, Recurring, occurrences
from app.domain.schedule_words import describe, rhythm
from app.domain.timezones import resolve
from tests.domain.said import read

START = datetime(2027, 12, 30, tzinfo=UTC)

READS = {
    "* * * * *": "every minute",
    "* * * * * *": "every second",
    "*/15 * * * *": "every 15 minutes",
    "5/15 * * * *": "every 15 minutes from 00:05",
    "*/7 * * * *": "every 7 minutes from minute 0 to 56 of every hour",
    "@hourly": "every hour",
    "5 * * * *": "every hour at minute 5",
    "30 * * * * *": "every minute at second 30",
    "*/10 * 9-17 * * *": "every 10 seconds from 09:00 to 17:59:50, every day",
    "30 2 * * *": "every day at 02:30",
    "0 */6 * * *": "every day at 00:00, 06:00, 12:00 and 18:00",
    "0 */2 * * *": "every 2 hours",
    "15 1-23/2 * * *": "every 2 hours from 01:15",
    "0 2 * * TUE": "every Tuesday at 02:00",
    "0 9 * * 1-5": "Monday to Friday at 09:00",
    "0 9 * * 0,6": "every Saturday and Sunday at 09:00",
    "0 9 * * 1-5/2": "every Monday, Wednesday and Friday at 09:00",
    "0 9 * * 5-1": "Friday to Monday at 09:00",
    "*/15 9-17 * * 1-5": "every 15 minutes from 09:00 to 17:45, Monday to Friday",
    "*/7 9,12 * * *": "every 7 minutes from minute 0 to 56 of the hours 09 and 12, every day",
    "1,4 8-18 * * *": "at minutes 1 and 4 of every hour from 08 to 18, every day",
    "@monthly": "on the 1st of every month at 00:00",
    "@yearly": "on the 1st of January at 00:00",
    "0 0 31 * *": "on the 31st of every month (if there is one) at 00:00",
    "0 0 29 2 *": "on the 29th of February (if there is one) at 00:00",
    "0 0 31 1,3 *": "on the 31st of January and March at 00:00",
    "0 9 1-7 3-10 *": "on the 1st to 7th of March to October at 09:00",
    "0 0 13 * 5": "on the 13th of every month and every Friday at 00:00",
    "0 0 */2 * 1": "every 2 days from the 1st to the 31st of every month, if that is a Monday, at 00:00",
    "0 0 1-31 * 1": "every day at 00:00",
    "0 0 L,15W * *": "on the last day and the workday nearest the 15th of every month at 00:00",
    "0 0 LW * *": "on the last workday of every month at 00:00",
    "0 0 L-3 * *": "on the 3rd day before the last of every month at 00:00",
    "0 9 * * MON#2,5L": "on the second Monday and the last Friday of every month at 09:00",
    "0 9 * * 1#5": "on the fifth Monday of every month (if there is one) at 09:00",
}  # fmt: skip
SAID_RAW = ("1,2,3,5,8,13,21,34 * * * *", "17 3,5,6,7,9,11,13,20 * * *", "0 0 1,2,3,5,8,9,11,13,21 * *")


@pytest.mark.parametrize(("expression", "words"), READS.items())
def test_expressions_in_words(expression: str, words: str) -> None:
    assert expression_words(expression) == words


@pytest.mark.parametrize("expression", SAID_RAW)
def test_what_has_no_short_words_stays_as_it_is(expression: str) -> None:
    assert expression_words(expression) is None
    assert rhythm(expression, None) == f"cron {expression}"


def _joined(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """Return fields as people write them: `*`, values, ranges, steps, lists."""
    value = st.integers(low, high).map(str)
    step = st.integers(1, high)
    item = st.one_of(
        value,
        st.builds("{}-{}".format, value, value),
        st.builds("{}-{}/{}".format, value, value, step),
        st.builds("*/{}".format, step),
        *map(st.just, names),
    )
    return st.one_of(st.just("*"), st.just("*"), item, st.lists(item, min_size=2, max_size=4).map(",".join))


EXPRESSIONS = st.builds(
    "{}{} {} {} {} {}".format,
    st.sampled_from(["", "", "", "0 ", "30 ", "*/20 ", "5,50 ", "* "]),
    _joined(0, 59),
    _joined(0, 23),
    _joined(1, 31, ("L", "LW", "15W", "1W", "31W", "L-2", "L-30")),
    _joined(1, 12),
    _joined(0, 7, ("MON#1", "5#5", "5L", "TUE")),
)


@given(expression=EXPRESSIONS, days=st.integers(0, 420))
@settings(max_examples=150, deadline=None)
def test_sentences_are_true(expression: str, days: int) -> None:
    """Whoever knows only the sentence expects exactly what fires."""
    words = _words(expression)
    assume(words is not None)
    expects, start = read(words or ""), START + timedelta(days=days)
    schedule = Recurring(expressions=(cron.parse(expression),), zone=resolve("UTC"))
    end = start + timedelta(days=2)

    fires = occurrences(schedule, after=start - timedelta(seconds=1), until=end, limit=5_000)
    end = fires[-1] if len(fires) == 5_000 else end

    known = set(fires)
    for moment in _candidates(start, end, expression):
        assert (moment in known) == expects(moment.replace(tzinfo=None)), (words, moment)


@given(expression=EXPRESSIONS.map(lambda text: f"0 12 {' '.join(text.split()[-3:])}"))
@settings(max_examples=150, deadline=None)
def test_days_are_true_for_years(expression: str) -> None:
    words = _words(expression)
    assume(words is not None)
    expects, end = read(words or ""), START + timedelta(days=500)
    schedule = Recurring(expressions=(cron.parse(expression),), zone=resolve("UTC"))

    noons = [START + timedelta(days=day, hours=12) for day in range(500)]
    expected = [noon for noon in noons if expects(noon.replace(tzinfo=None))]
    assert expected == occurrences(schedule, after=START, until=end, limit=1_000)


def _words(expression: str) -> str | None:
    try:
        return expression_words(expression)
    except InvalidInput:
        return None


def _candidates(start: datetime, end: datetime, expression: str) -> list[datetime]:
    """Return each minute of a window, and the seconds within it that a sixth field can name."""
    seconds = (0, 5, 20, 30, 31, 40, 50) if len(expression.split()) == 6 else (0, 30)
    minutes = int((end - start) / timedelta(minutes=1))
    moments = (
        start + timedelta(minutes=minute, seconds=second) for minute in range(minutes) for second in seconds
    )
    return [moment for moment in moments if moment <= end]


def test_most_of_what_people_write_has_words() -> None:
    usual = product(
        ("0", "30", "*/5", "*"), ("*", "2", "*/4", "9-17"), ("*", "1", "1,15"), "*", ("*", "1-5", "0")
    )
    assert all(expression_words(" ".join(fields)) for fields in usual)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "every second"),
        (0.5, "every 0.5 seconds"),
        (1.5, "every 1.5 seconds"),
        (90, "every 90 seconds"),
        (60, "every minute"),
        (5_400, "every 90 minutes"),
        (3_600, "every hour"),
        (86_400, "every 24 hours"),
        (172_800, "every 2 days"),
        (3_601, "every 1 hour and 1 second"),
        (90_061, "every 1 day, 1 hour, 1 minute and 1 second"),
        (3653 * 86_400, "every 3653 days"),
    ],
)
def test_intervals_in_words(seconds: float, words: str) -> None:
    assert every(seconds) == words


def test_sentences() -> None:
    new_york = resolve("America/New_York")
    start, end = datetime(2030, 1, 1, 5, tzinfo=UTC), datetime(2030, 7, 1, 3, 59, 59, tzinfo=UTC)
    daily = Recurring(expressions=(cron.parse("30 2 * * *"),), zone=new_york)
    bounded = Recurring(expressions=daily.expressions, zone=new_york, starts_at=start, ends_at=end)
    ending = Recurring(expressions=daily.expressions, zone=new_york, ends_at=end)

    assert describe(daily, new_york) == "every day at 02:30 (America/New_York)"
    assert describe(bounded, new_york) == (
        "every day at 02:30 (America/New_York), from 2030-01-01 00:00 until 2030-06-30 23:59:59"
    )
    assert describe(ending, new_york) == "every day at 02:30 (America/New_York), until 2030-06-30 23:59:59"
    assert describe(Once(scheduled_time=start), new_york) == "once at 2030-01-01 00:00 (America/New_York)"
    assert describe(Immediate(), new_york) == "once, at once"
    assert describe(Interval(every_seconds=900, anchor=start, ends_at=end), new_york) == (
        "every 15 minutes, counted from 2030-01-01 00:00 until 2030-06-30 23:59:59 (America/New_York)"
    )


def test_an_alias_reads_as_the_zone_it_stands_for() -> None:
    zone = resolve("America/Cupertino", {"America/Cupertino": "America/Los_Angeles"})
    schedule = Recurring(expressions=(cron.parse("0 2 * * TUE"),), zone=zone)
    assert describe(schedule, zone) == "every Tuesday at 02:00 (America/Los_Angeles)"
