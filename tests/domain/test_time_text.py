"""Durations and times as people write them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.errors import InvalidSchedule
from app.domain.time_text import parse_duration, parse_instant
from app.domain.timezones import Fold, Gap, resolve

NEW_YORK = resolve("America/New_York")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT90S", 90),
        ("PT1.5S", 1.5),
        ("PT1M", 60),
        ("PT2H", 7200),
        ("P1D", 86_400),
        ("P1DT12H30M", 131_400),
        ("P2W", 1_209_600),
        ("pt90s", 90),
        ("90", 90),
        ("0.5", 0.5),
        (90, 90),
        (1.5, 1.5),
        (0, 0),
    ],
)
def test_reads_durations(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("P1M", "'P1M': months and years vary in length, give days"),
        ("P1Y2M", "'P1Y2M': months and years vary in length, give days"),
        ("P1Y", "'P1Y': months and years vary in length, give days"),
        ("-PT5S", "'-PT5S' is negative"),
        ("PT", "'PT' is not a duration such as PT90S or P1D"),
        ("P", "'P' is not a duration such as PT90S or P1D"),
        ("", "'' is not a duration such as PT90S or P1D"),
        ("-90", "'-90' is not a duration such as PT90S or P1D"),
        ("five minutes", "'five minutes' is not a duration such as PT90S or P1D"),
        ("P1W2D", "'P1W2D' is not a duration such as PT90S or P1D"),
        ("P999999999999D", "'P999999999999D' is not a duration such as PT90S or P1D"),
        ("\u0665", "'\\u0665' is not a duration such as PT90S or P1D"),
        (-1, "-1 is not a number of seconds"),
        (float("nan"), "nan is not a number of seconds"),
        (float("inf"), "inf is not a number of seconds"),
    ],
)
def test_refuses_other_durations_with_the_reason(text: str | float, detail: str) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        parse_duration(text)

    assert refusal.value.detail == detail


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2025-07-01T12:00:00Z", "2025-07-01T12:00:00+00:00"),
        ("2025-07-01t12:00:00.25z", "2025-07-01T12:00:00.250000+00:00"),
        ("2025-07-01 12:00:00+02:00", "2025-07-01T10:00:00+00:00"),
        ("2025-07-01T12:00:00-00:00", "2025-07-01T12:00:00+00:00"),
        ("2025-07-01T12:00Z", "2025-07-01T12:00:00+00:00"),
        ("2025-07-01T12:00:00.123456789Z", "2025-07-01T12:00:00.123456+00:00"),
        ("2025-07-01T12:00:00", "2025-07-01T16:00:00+00:00"),
        ("2025-07-01T12:00", "2025-07-01T16:00:00+00:00"),
        ("2025-01-01 12:00", "2025-01-01T17:00:00+00:00"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00"),
        ("9999-12-29T12:00:00", "9999-12-29T17:00:00+00:00"),
        (1_751_371_200, "2025-07-01T12:00:00+00:00"),
        (1_751_371_200.25, "2025-07-01T12:00:00.250000+00:00"),
        ("1751371200", "2025-07-01T12:00:00+00:00"),
        ("1751371200.25", "2025-07-01T12:00:00.250000+00:00"),
        (0, "1970-01-01T00:00:00+00:00"),
    ],
)
def test_reads_times_with_an_offset_wall_times_and_unix_seconds(text: str | float, instant: str) -> None:
    assert parse_instant(text, zone=NEW_YORK).isoformat() == instant


@pytest.mark.parametrize(
    ("fold", "instant"),
    [
        (Fold.FIRST, datetime(2025, 11, 2, 5, 30, tzinfo=UTC)),
        (Fold.SECOND, datetime(2025, 11, 2, 6, 30, tzinfo=UTC)),
        (Fold.BOTH, datetime(2025, 11, 2, 5, 30, tzinfo=UTC)),
    ],
)
def test_an_ambiguous_wall_time_is_one_instant_by_the_fold_policy(fold: Fold, instant: datetime) -> None:
    assert parse_instant("2025-11-02T01:30:00", zone=NEW_YORK, fold=fold) == instant


def test_a_wall_time_in_a_gap_is_the_end_of_the_gap_or_refused() -> None:
    text = "2025-03-09T02:30:00"

    assert parse_instant(text, zone=NEW_YORK) == datetime(2025, 3, 9, 7, tzinfo=UTC)
    with pytest.raises(
        InvalidSchedule, match="02:30:00 does not exist in America/New_York, and gap is 'skip'"
    ):
        parse_instant(text, zone=NEW_YORK, gap=Gap.SKIP)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2025-07-01",
        "20250701T120000Z",
        "2025-W27-2T12:00Z",
        "2025-07-01T12Z",
        "2025-07-01T24:00:00Z",
        "2025-07-01T23:59:60Z",
        "2025-02-29T12:00:00Z",
        "2025-07-01T12:00:00+24:00",
        "2025-07-01T12:00:00 Z",
        "2025-07-01T12:00:00Z\n",
        "٢٠٢٥-07-01T12:00:00Z",
        "1969-12-31T23:59:59Z",
        "0001-01-01T00:00:00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59",
        "9999-12-31T23:59:59-12:00",
        "10000-01-01T00:00:00Z",
        "x" * 10_000,
        -1,
        1_751_371_200_000,
        "1751371200000",
        "9" * 20,
        1e300,
        float("nan"),
        float("inf"),
    ],
)
def test_refuses_other_times(text: str | float) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        parse_instant(text, zone=NEW_YORK)

    assert refusal.value.code == "invalid_schedule"
    assert refusal.value.detail.isprintable()
    assert len(refusal.value.detail) < 200


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(9999, 12, 29), timezones=st.just(UTC)),  # noqa: DTZ001 - hypothesis wants naive ones
    st.integers(-23 * 60, 23 * 60),
)
@settings(deadline=None)
def test_reading_back_what_is_shown_changes_nothing(instant: datetime, offset_minutes: int) -> None:
    shown = (
        (instant + timedelta(minutes=offset_minutes)).replace(tzinfo=None).isoformat(timespec="microseconds")
    )
    hours, minutes = divmod(abs(offset_minutes), 60)

    assert parse_instant(f"{instant.isoformat()}", zone=NEW_YORK) == instant
    assert (
        parse_instant(f"{shown}{'+-'[offset_minutes < 0]}{hours:02}:{minutes:02}", zone=NEW_YORK) == instant
    )


@given(st.text(max_size=30) | st.text(alphabet="0123456789-:TZ+. PDHMSW", max_size=30))
@settings(deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_duration, lambda text: parse_instant(text, zone=NEW_YORK).timestamp()):
        try:
            answer = f"{read(text):.6f}"
        except InvalidSchedule as refusal:
            answer = refusal.detail

        assert not answer.startswith("-")
        assert answer.isprintable()
