"""Warnings: each is true, and near changes of the clock none is missing."""
# ruff: noqa: DTZ001 - naive datetimes are wall times

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import cron
from app.domain.errors import InvalidInput
from app.domain.schedule import Recurring, occurrences
from app.domain.schedule_preview import preview
from app.domain.schedule_warnings import AHEAD, WarningCode, warnings_of
from app.domain.stored_schedule import JobSchedule
from app.domain.timezones import Fold, Gap, resolve
from app.domain.wall_changes import changes_between

NOW = datetime(2026, 11, 29, 21, tzinfo=UTC)
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata")
ALIASES = {"America/Cupertino": "America/Los_Angeles"}


def warned(**schedule: Any) -> list[tuple[str, str, datetime | None]]:
    found = preview(JobSchedule(**schedule), now=NOW, count=3, aliases=ALIASES).warnings
    return [(one.code.value, one.detail, one.at) for one in found]


def of_cron(expression: str, zone: str = "UTC", **more: Any) -> list[tuple[str, str, datetime | None]]:
    return warned(type="CRON", expression=expression, timezone=zone, **more)


@pytest.mark.parametrize(
    "expression",
    ["* * * * *", "0 2 * * *", "0 9 * * 1-5", "0 0 L * *", "0 0 * * 5L", "0 0 1-31 * 1", "0 0 ? * 1"],
)
def test_usual_schedules_have_nothing_to_warn_of(expression: str) -> None:
    assert of_cron(expression) == []


def test_two_day_fields() -> None:
    [(code, detail, at)] = of_cron("0 9 13 * FRI")
    assert (code, at) == ("either_day_field", None)
    assert "needs to fit one of them only" in detail
    [(code, *_)] = of_cron("0 9 */2 * FRI")
    assert code == "both_day_fields"


@pytest.mark.parametrize(
    "schedule", [{"type": "CRON", "expression": "0,30 * * * * *"}, {"type": "INTERVAL", "every": 59.9}]
)
def test_more_often_than_once_a_minute(schedule: dict[str, Any]) -> None:
    assert [code for code, *_ in warned(**schedule)] == ["more_than_once_a_minute"]


@pytest.mark.parametrize(
    "schedule", [{"type": "CRON", "expression": "30 * * * * *"}, {"type": "INTERVAL", "every": 60}]
)
def test_once_a_minute_is_no_warning(schedule: dict[str, Any]) -> None:
    assert warned(**schedule) == []


def test_a_time_that_the_clock_jumps_over() -> None:
    at = datetime(2027, 3, 14, 7, tzinfo=UTC)
    [gap] = of_cron("30 2 * * *", "America/New_York")
    assert gap == (
        "dst_gap",
        "02:30 on 2027-03-14 does not exist in America/New_York (the clock jumps from 02:00 to 03:00): "
        "it runs once at 03:00 instead",
        at,
    )
    [(_, detail, _)] = of_cron("30 2 * * *", "America/New_York", gap=Gap.SKIP)
    assert detail.endswith("it does not run then")


@pytest.mark.parametrize(
    ("fold", "runs", "hour"),
    [("first", "the first time", 5), ("second", "the second time", 6), ("both", "both times", 5)],
)
def test_a_time_that_the_clock_shows_twice(fold: str, runs: str, hour: int) -> None:
    [(code, detail, at)] = of_cron("30 1 * * *", "America/New_York", fold=Fold(fold))
    assert (code, at) == ("dst_fold", datetime(2027, 11, 7, hour, 30, tzinfo=UTC))
    assert detail.endswith(f"it runs {runs}")


@pytest.mark.parametrize("expression", ["*/15 * * * *", "30 * * * *", "* * * * * *"])
def test_what_goes_on_as_time_does_meets_no_change_of_the_clock(expression: str) -> None:
    assert "dst_gap" not in {code for code, *_ in of_cron(expression, "America/New_York")}


def test_bounds_leave_changes_out() -> None:
    assert of_cron("30 2 * * *", "America/New_York", ends_at="2027-03-01T00:00") == []
    assert of_cron("30 2 * * *", "America/New_York", starts_at="2027-03-15T00:00") == []


@given(
    zone=st.sampled_from(ZONES),
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    gap=st.sampled_from(Gap),
    fold=st.sampled_from(Fold),
    start=st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)),
)
@settings(max_examples=60, deadline=None)
def test_every_day_that_is_out_of_the_ordinary_is_told_and_no_other(
    zone: str, minute: int, hour: int, gap: Gap, fold: Fold, start: datetime
) -> None:
    """A daily job runs once a day at its time: whatever day does not, has a warning that says what happens."""
    now, place = start.replace(hour=0, minute=0, tzinfo=UTC), resolve(zone)
    schedule = Recurring(expressions=(cron.parse(f"{minute} {hour} * * *"),), zone=place, gap=gap, fold=fold)
    told = warnings_of(schedule, place, now=now)
    fires = occurrences(schedule, after=now, until=now + AHEAD, limit=1_000)
    odd = {place.wall(at).date() for at in fires if place.wall(at).time() != time(hour, minute)}
    first, days = place.wall(now).date() + timedelta(days=2), AHEAD.days - 4
    for day in (first + timedelta(days=number) for number in range(days)):
        passes = place.instants(datetime.combine(day, time(hour, minute)), gap=Gap.SKIP, fold=Fold.BOTH)
        runs = [at for at in fires if place.wall(at).date() == day]
        about = [one for one in told if day.isoformat() in one.detail]
        assert bool(about) == (len(passes) != 1), day
        for one in about:
            assert (day in odd) == ("instead" in one.detail)
            assert len(runs) == (0 if "does not run" in one.detail else 2 if "both" in one.detail else 1)
            assert one.at in runs or "does not run" in one.detail


def test_days_of_24_hours_do_not_keep_their_time_of_day() -> None:
    [(code, detail, at)] = warned(type="INTERVAL", every="P1D", timezone="Europe/Berlin")
    assert (code, at) == ("elapsed_time", datetime(2027, 3, 28, 1, tzinfo=UTC))
    assert "from 2027-03-28 on" in detail
    assert warned(type="INTERVAL", every="P1D", timezone="Asia/Kolkata") == []
    assert warned(type="INTERVAL", every="PT1H", timezone="Europe/Berlin") == []


def test_a_single_time_in_the_past_runs_at_once() -> None:
    [(code, detail, at)] = warned(type="ONCE", scheduled_time="2026-11-29T20:00:00Z")
    assert (code, at) == ("in_the_past", datetime(2026, 11, 29, 20, tzinfo=UTC))
    assert "at once" in detail


@pytest.mark.parametrize(
    ("wall", "code", "says"),
    [
        ("2027-03-14T02:30", WarningCode.DST_GAP, "it means 03:00 then"),
        ("2027-11-07 01:30", WarningCode.DST_FOLD, "the first time is meant"),
    ],
)
def test_a_single_wall_time_near_a_change_of_the_clock(wall: str, code: str, says: str) -> None:
    [(found, detail, _)] = warned(type="ONCE", scheduled_time=wall, timezone="America/New_York")
    assert found == code
    assert says in detail
    assert warned(type="ONCE", scheduled_time="2027-03-14T02:30-05:00", timezone="America/New_York") == []


def test_a_preview_refuses_what_creating_a_job_does() -> None:
    with pytest.raises(InvalidInput) as refused:
        preview(
            JobSchedule(type="CRON", expression="0 2 * * *", ends_at="2020-01-01T00:00Z"),
            now=NOW,
            count=3,
            aliases={},
        )  # type: ignore[arg-type]
    assert (refused.value.code, refused.value.pointer) == ("never_fires", "/schedule")


def test_an_alias_is_told_with_the_zone_it_stands_for() -> None:
    found = preview(
        JobSchedule(type="CRON", expression="0 2 * * TUE", timezone="America/Cupertino"),
        now=NOW,
        count=1,
        aliases=ALIASES,
    )  # type: ignore[arg-type]
    assert (found.timezone.requested, found.timezone.resolved) == ("America/Cupertino", "America/Los_Angeles")
    assert found.occurrences == [datetime(2026, 12, 1, 10, tzinfo=UTC)]
    assert found.description == "every Tuesday at 02:00 (America/Los_Angeles)"


def test_changes_of_the_clock() -> None:
    [back, ahead] = changes_between(
        resolve("Australia/Lord_Howe"), datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
    )
    assert (back.at, back.is_gap) == (datetime(2027, 4, 3, 15, tzinfo=UTC), False)
    assert (back.low, back.high) == (datetime(2027, 4, 4, 1, 30), datetime(2027, 4, 4, 2))
    assert (ahead.at, ahead.is_gap) == (datetime(2027, 10, 2, 15, 30, tzinfo=UTC), True)
    assert (ahead.low, ahead.high) == (datetime(2027, 10, 3, 2), datetime(2027, 10, 3, 2, 30))
    assert list(changes_between(resolve("UTC"), NOW, NOW + AHEAD)) == []
