"""Sentences about schedules. Those about cron expressions are in `test_cron_words`."""

from datetime import UTC, datetime

import pytest

from app.domain import cron
from app.domain.english import every
from app.domain.schedule import Immediate, Interval, Once, Recurring
from app.domain.schedule_words import describe, rhythm
from app.domain.timezones import resolve


def test_how_often() -> None:
    assert rhythm("0 2 * * TUE", None) == "every Tuesday at 02:00"
    assert rhythm("17 3,5,6,7,9,11,13,20 * * *", None) == "cron 17 3,5,6,7,9,11,13,20 * * *"
    assert rhythm(None, 900) == "every 15 minutes"


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
    daily = Recurring(expression=cron.parse("30 2 * * *"), zone=new_york)
    bounded = Recurring(expression=daily.expression, zone=new_york, starts_at=start, ends_at=end)
    ending = Recurring(expression=daily.expression, zone=new_york, ends_at=end)

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
    schedule = Recurring(expression=cron.parse("0 2 * * TUE"), zone=zone)
    assert describe(schedule, zone) == "every Tuesday at 02:00 (America/Los_Angeles)"
