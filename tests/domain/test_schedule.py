"""When schedules fire."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from app.domain import cron
from app.domain.errors import InvalidCron, NeverFires
from app.domain.schedule import (
    Immediate,
    Interval,
    Once,
    Recurring,
    ensure_fires,
    next_occurrences,
    occurrences,
)
from app.domain.timezones import Fold, Gap, resolve

YEAR = timedelta(days=366)


def time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def shown(instants: list[datetime]) -> list[str]:
    return [instant.isoformat().replace("+00:00", "Z") for instant in instants]


def recurring(expression: str, zone: str = "UTC", **options: object) -> Recurring:
    return msgspec.structs.replace(
        Recurring(expressions=(cron.parse(expression),), zone=resolve(zone)), **options
    )


@pytest.mark.parametrize(
    ("gap", "instants"),
    [
        (Gap.RUN_AFTER_GAP, ["2025-03-08T07:30:00Z", "2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"]),
        (Gap.SKIP, ["2025-03-08T07:30:00Z", "2025-03-10T06:30:00Z", "2025-03-11T06:30:00Z"]),
    ],
)
def test_a_time_of_day_in_a_gap_follows_the_gap_policy(gap: Gap, instants: list[str]) -> None:
    schedule = recurring("30 2 * * *", "America/New_York", gap=gap)

    assert shown(next_occurrences(schedule, after=time("2025-03-08T00:00:00Z"), count=3)) == instants


@pytest.mark.parametrize(
    ("fold", "instants"),
    [
        (Fold.FIRST, ["2025-11-02T05:30:00Z", "2025-11-03T06:30:00Z", "2025-11-04T06:30:00Z"]),
        (Fold.SECOND, ["2025-11-02T06:30:00Z", "2025-11-03T06:30:00Z", "2025-11-04T06:30:00Z"]),
        (Fold.BOTH, ["2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z", "2025-11-03T06:30:00Z"]),
    ],
)
def test_a_time_of_day_in_a_fold_follows_the_fold_policy(fold: Fold, instants: list[str]) -> None:
    schedule = recurring("30 1 * * *", "America/New_York", fold=fold)

    assert shown(next_occurrences(schedule, after=time("2025-11-02T00:00:00Z"), count=3)) == instants


@pytest.mark.parametrize("gap", Gap)
@pytest.mark.parametrize("fold", Fold)
def test_a_repeating_job_follows_elapsed_time_under_any_policy(gap: Gap, fold: Fold) -> None:
    schedule = recurring("*/30 * * * *", "America/New_York", gap=gap, fold=fold)
    for day in ("2025-03-09T00:00:00Z", "2025-11-02T00:00:00Z"):
        instants = next_occurrences(schedule, after=time(day), count=48)

        assert instants == [time(day) + timedelta(minutes=30) * number for number in range(1, 49)]


def test_all_times_in_a_gap_make_one_run_at_its_end() -> None:
    schedule = recurring("0,20,40 2,3 * * *", "America/New_York")
    instants = next_occurrences(schedule, after=time("2025-03-09T05:00:00Z"), count=3)

    assert shown(instants) == ["2025-03-09T07:00:00Z", "2025-03-09T07:20:00Z", "2025-03-09T07:40:00Z"]


def test_both_passes_of_a_fold_over_midnight_come_in_order() -> None:
    schedule = recurring("59 23 * * *", "America/St_Johns", fold=Fold.BOTH)  # until 2011: 00:01 became 23:01
    midnight = recurring("0,30 0,23 * * *", "America/St_Johns", fold=Fold.BOTH)
    after, until = time("2008-11-02T01:00:00Z"), time("2008-11-02T04:00:00Z")

    assert shown(occurrences(schedule, after=after, until=until, limit=9)) == [
        "2008-11-02T02:29:00Z",
        "2008-11-02T03:29:00Z",
    ]
    assert shown(occurrences(midnight, after=after, until=until, limit=9)) == [
        "2008-11-02T01:30:00Z",
        "2008-11-02T02:00:00Z",
        "2008-11-02T02:30:00Z",
        "2008-11-02T03:00:00Z",
        "2008-11-02T03:30:00Z",
        "2008-11-02T04:00:00Z",
    ]


def test_a_window_that_ends_in_a_second_pass_holds_the_first_pass_of_the_next_day() -> None:
    schedule = recurring("0 0 * * *", "America/St_Johns")
    after, until = time("2008-11-02T02:00:00Z"), time("2008-11-02T02:45:00Z")  # the wall shows 23:15 again

    assert shown(occurrences(schedule, after=after, until=until, limit=9)) == ["2008-11-02T02:30:00Z"]


def test_a_window_that_begins_in_a_first_pass_holds_the_whole_second_pass() -> None:
    after = time("2025-11-02T05:40:00Z")  # the wall shows 01:40, and in 20 minutes 01:00 again

    repeating = recurring("*/30 * * * *", "America/New_York")
    second = recurring("0,30 1 * * *", "America/New_York", fold=Fold.SECOND)

    for schedule in (repeating, second):
        instants = next_occurrences(schedule, after=after, count=2)

        assert shown(instants) == ["2025-11-02T06:00:00Z", "2025-11-02T06:30:00Z"]


def test_seconds_repeat_in_a_fold_after_the_whole_first_pass() -> None:
    schedule = recurring("0,30 30 1 * * *", "America/New_York", fold=Fold.BOTH)

    assert shown(next_occurrences(schedule, after=time("2025-11-02T00:00:00Z"), count=4)) == [
        "2025-11-02T05:30:00Z",
        "2025-11-02T05:30:30Z",
        "2025-11-02T06:30:00Z",
        "2025-11-02T06:30:30Z",
    ]


def test_bounds_of_a_recurring_schedule_are_included() -> None:
    starts_at, ends_at = time("2030-06-01T00:00:00Z"), time("2030-06-03T00:00:00+00:00")
    schedule = recurring("0 0 * * *", starts_at=starts_at, ends_at=ends_at)
    days = ["2030-06-01T00:00:00Z", "2030-06-02T00:00:00Z", "2030-06-03T00:00:00Z"]

    assert shown(next_occurrences(schedule, after=time("1999-01-01T00:00:00Z"), count=9)) == days
    assert shown(next_occurrences(schedule, after=starts_at, count=9)) == days[1:]
    assert next_occurrences(schedule, after=ends_at, count=9) == []
    assert next_occurrences(
        recurring("0 0 * * *", starts_at=time("2500-01-01T00:00Z")), after=starts_at, count=1
    )


def test_an_interval_counts_from_its_anchor_and_never_drifts() -> None:
    schedule = Interval(every_seconds=0.1 + 0.2 + 1, anchor=time("2025-01-01T00:00:00.5+01:00"))
    anchor = time("2024-12-31T23:00:00.5Z")
    far = anchor + timedelta(microseconds=1_300_000) * 10**9

    assert next_occurrences(schedule, after=anchor - YEAR, count=2) == [
        anchor + timedelta(seconds=1.3),
        anchor + timedelta(seconds=2.6),
    ]
    assert next_occurrences(schedule, after=far - timedelta(microseconds=1), count=1) == [far]
    assert next_occurrences(schedule, after=far, count=1) == [far + timedelta(seconds=1.3)]


def test_an_interval_ends_with_its_end() -> None:
    anchor = time("2025-01-01T00:00:00Z")
    schedule = Interval(every_seconds=60, anchor=anchor, ends_at=anchor + timedelta(minutes=2))

    assert len(next_occurrences(schedule, after=anchor, count=9)) == 2
    assert next_occurrences(schedule, after=anchor + YEAR, count=9) == []


def test_once_fires_once_however_far_away() -> None:
    schedule = Once(scheduled_time=time("2400-01-01T01:00:00+01:00"))
    instant = time("2400-01-01T00:00:00Z")

    assert shown(next_occurrences(schedule, after=time("2025-01-01T00:00:00Z"), count=5)) == [
        "2400-01-01T00:00:00Z"
    ]
    assert occurrences(schedule, after=instant - YEAR, until=instant, limit=5) == [instant]
    assert occurrences(schedule, after=instant, until=instant + YEAR, limit=5) == []


def test_immediate_has_no_instants_to_come() -> None:
    assert next_occurrences(Immediate(), after=time("2025-01-01T00:00:00Z"), count=5) == []


@pytest.mark.parametrize("limit", [0, -1])
def test_nothing_is_asked_for_and_nothing_is_given(limit: int) -> None:
    start = time("2025-01-01T00:00:00Z")

    assert occurrences(recurring("* * * * *"), after=start, until=start + YEAR, limit=limit) == []
    assert next_occurrences(recurring("* * * * *"), after=start, count=limit) == []
    assert occurrences(recurring("* * * * *"), after=start, until=start, limit=5) == []


def test_waits_forty_years_for_a_leap_sunday() -> None:
    schedule = recurring("0 0 29 2 */7")
    instants = next_occurrences(schedule, after=time("2088-02-29T00:00:00Z"), count=2)

    assert shown(instants) == ["2128-02-29T00:00:00Z", "2156-02-29T00:00:00Z"]


def test_the_ends_of_the_calendar_are_no_trap() -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    schedule = recurring("0 0 1 1 *", "Pacific/Kiritimati")

    assert occurrences(schedule, after=first, until=last, limit=1)[0].year == 1970
    assert next_occurrences(schedule, after=time("9998-06-01T00:00:00Z"), count=5) == [
        time("9998-12-31T10:00:00Z")
    ]
    assert next_occurrences(schedule, after=last, count=5) == []
    assert next_occurrences(Interval(every_seconds=1, anchor=first), after=last, count=5) == []


def test_a_schedule_that_has_no_instant_left_is_refused() -> None:
    now = time("2025-01-01T00:00:00Z")
    ensure_fires(recurring("0 0 29 2 *"), after=now)
    ensure_fires(Once(scheduled_time=now - YEAR), after=now)
    ensure_fires(Immediate(), after=now)

    with pytest.raises(NeverFires, match=r"no instant after 2025-01-01T00:00:00\+00:00 and up to 2025-02-01"):
        ensure_fires(recurring("0 0 29 2 *", ends_at=time("2025-02-01T00:00:00Z")), after=now)
    with pytest.raises(NeverFires):
        ensure_fires(Interval(every_seconds=60, anchor=now - YEAR, ends_at=now), after=now)
    with pytest.raises(NeverFires):  # the second Sunday of March at 02:30 is always in the gap
        ensure_fires(recurring("30 2 8-14 3 */7", "America/New_York", gap=Gap.SKIP), after=now)


def test_several_expressions_are_read_and_kept_as_one_text() -> None:
    schedule = Recurring(
        expressions=cron.parse_all("0 9 * *  MON ;30 14 * * FRI"), zone=resolve("Europe/Berlin")
    )

    assert schedule.text == "0 9 * * MON; 30 14 * * FRI"
    assert shown(next_occurrences(schedule, after=time("2026-01-01T00:00:00Z"), count=3)) == [
        "2026-01-02T13:30:00Z", "2026-01-05T08:00:00Z", "2026-01-09T13:30:00Z",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 9 * * *;", "expression 2 of those divided by ';': the expression is empty"),
        ("0 9 * * *; 61 * * * *", "expression 2 of those divided by ';': field 1 (minute)"),
        ("0 0 30 2 *; 0 9 * * *", "expression 1 of those divided by ';': '0 0 30 2 *' never fires"),
        ("0 9 * * *;" * 30, "the expression has 300 characters, at most 256 may be"),
    ],
)
def test_of_several_expressions_the_wrong_one_is_named(text: str, says: str) -> None:
    with pytest.raises((InvalidCron, NeverFires)) as refusal:
        cron.parse_all(text)

    assert refusal.value.detail.startswith(says)
