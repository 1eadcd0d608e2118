"""Reading cron expressions: fields, days, and what is refused."""

import string
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import cron
from app.domain.errors import InvalidCron, InvalidInput, NeverFires


@pytest.mark.parametrize(
    ("hours", "values"),
    [
        ("7", (7,)),
        ("007", (7,)),
        ("1,3,1", (1, 3)),
        ("9-12", (9, 10, 11, 12)),
        ("9-9", (9,)),
        ("9-17/4", (9, 13, 17)),
        ("*/10", (0, 10, 20)),
        ("*/90", (0,)),
        ("20/2", (20, 22)),
        ("23/2", (23,)),
        ("22-2", (0, 1, 2, 22, 23)),
        ("22-2/2", (0, 2, 22)),
        ("21-2/2", (1, 21, 23)),
        ("20-3/9", (20,)),
        ("22-1,12", (0, 1, 12, 22, 23)),
        ("*", tuple(range(24))),
        ("0-23", tuple(range(24))),
    ],
)
def test_expands_numbers_lists_steps_and_wrapping_ranges(hours: str, values: tuple[int, ...]) -> None:
    assert cron.parse(f"0 {hours} * * *").hours == values


@pytest.mark.parametrize(
    ("weekdays", "values"),
    [
        ("sun", {0}),
        ("7", {0}),
        ("0,7", {0}),
        ("7-7", {0}),
        ("MON-fri", {1, 2, 3, 4, 5}),
        ("fri-mon", {5, 6, 0, 1}),
        ("fri-sun", {5, 6, 0}),
        ("5-7", {5, 6, 0}),
        ("7-1", {0, 1}),
        ("1-7/2", {1, 3, 5, 0}),
        ("0-7/2", {0, 2, 4, 6}),
        ("Mon-Sun", {0, 1, 2, 3, 4, 5, 6}),
        ("0-7", {0, 1, 2, 3, 4, 5, 6}),
        ("*/7", {0}),
        ("7/2", {0, 2, 4, 6}),
        ("4/2", {4, 6}),
    ],
)
def test_expands_weekdays_with_sunday_as_0_and_7(weekdays: str, values: set[int]) -> None:
    assert cron.parse(f"0 0 * * {weekdays}").days.weekdays == values


@pytest.mark.parametrize(
    ("months", "values"),
    [
        ("jan", (1,)),
        ("nov-feb", (1, 2, 11, 12)),
        ("nov-feb/2", (1, 11)),
        ("Jan-MAR,dec", (1, 2, 3, 12)),
        ("10/2", (10, 12)),
    ],
)
def test_expands_months(months: str, values: tuple[int, ...]) -> None:
    assert cron.parse(f"0 0 1 {months} *").days.months == values


@pytest.mark.parametrize(
    ("day_of_month", "day_of_week", "month", "days"),
    [
        ("L", "*", (2024, 2), [29]),
        ("L", "*", (2100, 2), [28]),
        ("L-3", "*", (2025, 2), [25]),
        ("l-30", "*", (2025, 4), []),
        ("L-30", "*", (2025, 5), [1]),
        ("1,15,L", "*", (2025, 4), [1, 15, 30]),
        ("LW", "*", (2025, 8), [29]),
        ("LW", "*", (2025, 7), [31]),
        ("15W", "*", (2025, 8), [15]),
        ("16W", "*", (2025, 8), [15]),
        ("17w", "*", (2025, 8), [18]),
        ("1W", "*", (2025, 2), [3]),
        ("1W", "*", (2025, 6), [2]),
        ("31W", "*", (2025, 8), [29]),
        ("30W", "*", (2025, 11), [28]),
        ("31W", "*", (2025, 6), []),
        ("1W,15W", "*", (2025, 2), [3, 14]),
        ("*", "MON#2", (2025, 9), [8]),
        ("*", "1#5", (2025, 9), [29]),
        ("*", "1#5", (2025, 10), []),
        ("*", "mon#1,mon#3,fri", (2025, 9), [1, 5, 12, 15, 19, 26]),
        ("*", "7#1", (2025, 9), [7]),
        ("*", "5L", (2025, 9), [26]),
        ("*", "L5", (2025, 9), [26]),
        ("*", "friL", (2025, 10), [31]),
        ("*", "Lsun", (2025, 11), [30]),
        ("13", "5", (2025, 6), [6, 13, 20, 27]),
        ("13", "*", (2025, 6), [13]),
        ("*/2", "1", (2025, 6), [9, 23]),
        ("13", "*/2", (2025, 6), []),
        ("15", "*/2", (2025, 6), [15]),
        ("1,*", "1", (2025, 6), list(range(1, 31))),
        ("?", "1", (2025, 6), [2, 9, 16, 23, 30]),
        ("13", "?", (2025, 6), [13]),
        ("?", "?", (2025, 6), list(range(1, 31))),
        ("L", "5", (2025, 6), [6, 13, 20, 27, 30]),
    ],
)
def test_chooses_days(day_of_month: str, day_of_week: str, month: tuple[int, int], days: list[int]) -> None:
    assert cron.parse(f"0 0 {day_of_month} * {day_of_week}").days.in_month(*month) == days


@pytest.mark.parametrize(
    ("macro", "expression"),
    [
        ("@hourly", "0 * * * *"),
        ("@Daily", "0 0 * * *"),
        (" @midnight ", "0 0 * * *"),
        ("@weekly", "0 0 * * sun"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@ANNUALLY", "0 0 1 jan *"),
    ],
)
def test_macros_are_short_for_expressions(macro: str, expression: str) -> None:
    window = (datetime(2025, 1, 1), datetime(2026, 2, 1))  # noqa: DTZ001 - wall times

    assert list(cron.parse(macro).walls(*window)) == list(cron.parse(expression).walls(*window))


def test_six_fields_have_seconds_first() -> None:
    walls = cron.parse("*/20 30 9 * * mon").walls(datetime(2025, 6, 2, 9, 30, 1), datetime(2025, 6, 9))  # noqa: DTZ001

    assert [f"{wall:%d %H:%M:%S}" for wall in walls] == [
        "02 09:30:20",
        "02 09:30:40",
        "09 09:30:00",
        "09 09:30:20",
        "09 09:30:40",
    ]


def test_walls_begin_at_the_start_and_end_with_the_last_day() -> None:
    walls = cron.parse("0,30 22-1 * * *").walls(datetime(2025, 6, 1, 22, 30), datetime(2025, 6, 2))  # noqa: DTZ001

    assert [f"{wall:%d %H:%M}" for wall in walls] == [
        *("01 22:30", "01 23:00", "01 23:30"),
        *("02 00:00", "02 00:30", "02 01:00", "02 01:30", "02 22:00", "02 22:30", "02 23:00", "02 23:30"),
    ]


@pytest.mark.parametrize("expression", ["* 2 * * *", "*/15 2 * * *", "30 * * * *", "30 */2 * * *", "@hourly"])
def test_a_minute_or_hour_that_begins_with_a_star_follows_elapsed_time(expression: str) -> None:
    assert cron.parse(expression).follows_elapsed_time


@pytest.mark.parametrize(
    "expression", ["0-59 2 * * *", "30 2 * * *", "30 0-23 * * *", "30 0,* * * *", "* 30 2 * * *", "@daily"]
)
def test_other_expressions_have_a_time_of_day(expression: str) -> None:
    assert not cron.parse(expression).follows_elapsed_time


@pytest.mark.parametrize(
    ("expression", "detail"),
    [
        ("0 25 * * *", "field 2 (hour): 25 is not in 0-23"),
        ("60 * * * *", "field 1 (minute): 60 is not in 0-59"),
        ("60 0 0 * * *", "field 1 (second): 60 is not in 0-59"),
        ("0 0 24 * * *", "field 3 (hour): 24 is not in 0-23"),
        ("0 0 0 * *", "field 3 (day of month): 0 is not in 1-31"),
        ("0 0 1 13 *", "field 4 (month): 13 is not in 1-12 or jan-dec"),
        ("0 0 * foo *", "field 4 (month): 'foo' is not in 1-12 or jan-dec"),
        ("0 0 * * 8", "field 5 (day of week): 8 is not in 0-7 or sun-sat"),
        ("0 0 * * 1-8", "field 5 (day of week): 8 is not in 0-7 or sun-sat"),
        ("0 0 mon * *", "field 3 (day of month): 'mon' is not in 1-31"),
        ("*/0 * * * *", "field 1 (minute): the step '0' of '*/0' is not a whole number of 1 or more"),
        ("*/-5 * * * *", "field 1 (minute): the step '-5' of '*/-5' is not a whole number of 1 or more"),
        ("*/1.5 * * * *", "field 1 (minute): the step '1.5' of '*/1.5' is not a whole number of 1 or more"),
        ("*/ * * * *", "field 1 (minute): the step '' of '*/' is not a whole number of 1 or more"),
        ("1/2/3 * * * *", "field 1 (minute): the step '2/3' of '1/2/3' is not a whole number of 1 or more"),
        ("-5 * * * *", "field 1 (minute): '-5' is not a value, a range or a step"),
        ("1,,2 * * * *", "field 1 (minute): '' is not a value, a range or a step"),
        ("5- * * * *", "field 1 (minute): '5-' is not a value, a range or a step"),
        ("1-2-3 * * * *", "field 1 (minute): '1-2-3' is not a value, a range or a step"),
        ("*-5 * * * *", "field 1 (minute): '*-5' is not a value, a range or a step"),
        ("? * * * *", "field 1 (minute): '?' is not a value, a range or a step"),
        ("0 0 ?/2 * *", "field 3 (day of month): '?/2' is not a value, a range or a step"),
        ("H * * * *", "field 1 (minute): 'H' is not in 0-59"),
        ("5L * * * *", "field 1 (minute): '5L' is not in 0-59"),
        ("0 0 32W * *", "field 3 (day of month): '32' is not in 1-31"),
        ("0 0 L-31 * *", "field 3 (day of month): '31' is not in 1-30"),
        ("0 0 * * mon#6", "field 5 (day of week): '6' is not in 1-5"),
        ("0 0 * * mon#0", "field 5 (day of week): '0' is not in 1-5"),
        ("0 0 * * 8#1", "field 5 (day of week): 8 is not in 0-7 or sun-sat"),
        ("0 0 * * 8L", "field 5 (day of week): 8 is not in 0-7 or sun-sat"),
        ("0 0 * * L", "field 5 (day of week): L needs a weekday here: 5L is the last Friday of the month"),
        ("* * * *", "the expression has 4 fields: give 5, or 6 with seconds first"),
        ("0 0 0 1 1 * 2030", "the expression has 7 fields: give 5, or 6 with seconds first"),
        ("", "the expression is empty: give 5 fields, such as '0 2 * * *'"),
        (" \t ", "the expression is empty: give 5 fields, such as '0 2 * * *'"),
        ("0 0 * * *\n", "the character '\\n' may not occur: use one line of printable ASCII"),
        ("\r0 0 * * *", "the character '\\r' may not occur: use one line of printable ASCII"),
        ("0 0 * * *\u2028", "the character '\\u2028' may not occur: use one line of printable ASCII"),
        ("0\xa00 * * *", "the character '\\xa0' may not occur: use one line of printable ASCII"),
        ("\u0665 * * * *", "the character '\\u0665' may not occur: use one line of printable ASCII"),
        ("\x00 * * * *", "the character '\\x00' may not occur: use one line of printable ASCII"),
        ("*" * 257, "the expression has 257 characters, at most 256 may be"),
        ("TZ=UTC 0 0 * * *", "the expression holds a time zone: give it as the schedule's timezone"),
        (" cron_tz=UTC 0 0 * * *", "the expression holds a time zone: give it as the schedule's timezone"),
        ("@reboot", "'@reboot' has no meaning in a service: use a schedule of type IMMEDIATE"),
        ("@every 5m", "'@every 5m' is no cron expression: use a schedule of type INTERVAL"),
        ("@daily *", "'@daily *' is unknown: use one of @hourly, @daily, "),
        ("@", "'@' is unknown: use one of @hourly, @daily, "),
    ],
)
def test_refusals_name_the_field_and_the_reason(expression: str, detail: str) -> None:
    with pytest.raises(InvalidCron) as refusal:
        cron.parse(expression)

    assert refusal.value.detail.startswith(detail)
    assert refusal.value.code == "invalid_cron"


@pytest.mark.parametrize(
    "expression",
    ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30W 2 ?", "0 0 */30 * 1#3", "0 0 L-29 2 *"],
)
def test_refuses_days_that_never_come(expression: str) -> None:
    with pytest.raises(NeverFires, match="never fires"):
        cron.parse(expression)


@pytest.mark.parametrize(
    "expression", ["0 0 29 2 *", "0 0 29 2 */7", "0 0 31 1-12/2 *", "0 0 L-28 2 *", "0 0 * 2 mon#5"]
)
def test_accepts_days_that_come_rarely(expression: str) -> None:
    assert cron.parse(expression).text == expression


@given(st.text(max_size=40) | st.text(alphabet="0123456789*/,-#?LWlw @jansumofr", max_size=40))
@settings(max_examples=500, deadline=None)
def test_any_text_is_parsed_or_refused_in_printable_words(text: str) -> None:
    try:
        answer = cron.parse(text).text
    except InvalidInput as refusal:
        answer = refusal.detail

    assert answer.isascii()
    assert answer.isprintable()


@given(st.lists(st.text(alphabet=string.digits + "*/,-#?LW", min_size=1, max_size=6), min_size=5, max_size=6))
@settings(max_examples=500, deadline=None)
def test_what_is_parsed_lies_within_the_fields(columns: list[str]) -> None:
    try:
        parsed = cron.parse(" ".join(columns))
    except InvalidInput:
        return

    assert set(parsed.seconds) | set(parsed.minutes) <= set(range(60))
    assert set(parsed.hours) <= set(range(24))
    assert set(parsed.days.months) <= set(range(1, 13))
    assert parsed.days.dates <= set(range(1, 32))
    assert parsed.days.weekdays <= set(range(7))
    assert all(
        list(values) == sorted(set(values)) != [] for values in (parsed.seconds, parsed.minutes, parsed.hours)
    )
