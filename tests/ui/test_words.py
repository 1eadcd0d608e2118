"""Times, durations and errors in words."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.db.reads.audit import ChangeView
from app.db.reads.executions import ErrorView
from app.domain.timezones import resolve
from app.ui import words

NOW = datetime(2030, 1, 31, 9, 0, 0, 123_456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (0.99, "now"),
        (-1, "1 s ago"),
        (1.9, "in 1 s"),
        (-59.9, "59 s ago"),
        (60, "in 1 min"),
        (-3599, "59 min ago"),
        (3600, "in 1 h"),
        (-86_399, "23 h ago"),
        (86_400, "in 1 d"),
        (-29 * 86_400, "29 d ago"),
        (30 * 86_400, "2030-03-02"),
    ],
)
def test_an_instant_seen_from_now(seconds: float, text: str) -> None:
    assert words.relative(NOW + timedelta(seconds=seconds), NOW) == text


def test_an_instant_in_full_names_its_zone() -> None:
    local = NOW.astimezone(tz=datetime.now().astimezone().tzinfo)

    assert words.absolute(local, resolve("UTC")) == "2030-01-31 09:00:00 UTC"
    assert words.absolute(local, resolve("Asia/Kathmandu")) == "2030-01-31 14:45:00 +0545"
    assert words.clock(local, resolve("Europe/Berlin")) == "10:00:00"
    assert words.rfc3339(local) == "2030-01-31T09:00:00.123Z"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0.0 ms"),
        (0.42, "0.4 ms"),
        (0.97, "1 ms"),
        (12.4, "12 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (2400, "2.4 s"),
        (59_949, "59.9 s"),
        (59_951, "59 s"),
        (60_000, "1 min"),
        (190_500, "3 min 10 s"),
        (7_500_000, "2 h 5 min"),
        (180_061_000, "2 d 2 h"),
    ],
)
def test_lateness_to_two_or_three_digits(milliseconds: float, text: str) -> None:
    assert words.lateness(milliseconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5, "5 s"), (2.5, "2.5 s"), (90, "1 min 30 s"), (3600, "1 h"), (93_784, "1 d 2 h 3 min 4 s")],
)
def test_durations_are_exact(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("kind", "message", "line"),
    [
        ("ValueError", "no such region", "ValueError: no such region"),
        ("ValueError", "\n first\nsecond", "ValueError: first"),
        ("KeyError", "", "KeyError"),
        ("E", "x" * 500, "E: " + "x" * 196 + "…"),
    ],
)
def test_an_error_fits_a_line(kind: str, message: str, line: str) -> None:
    error = ErrorView(type=kind, message=message, category="unknown", severity="low", fingerprint="f")

    assert words.error_line(error) == line


@pytest.mark.parametrize(("count", "text"), [(0, "0"), (999, "999"), (1000, "1,000+"), (5000, "1,000+")])
def test_a_count_that_stopped_says_so(count: int, text: str) -> None:
    assert words.capped(count, 1000) == text


@pytest.mark.parametrize(
    ("count", "more", "text"),
    [(0, False, "0 jobs"), (1, False, "1 job"), (1, True, "1+ jobs"), (1200, False, "1,200 jobs")],
)
def test_a_count_has_its_noun(count: int, more: bool, text: str) -> None:  # noqa: FBT001 - a case
    assert words.counted(count, "job", more=more) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0 %"), (1e-9, "0.1 %"), (0.5, "50.0 %"), (0.999999, "99.9 %"), (1, "100 %")]
)
def test_a_share_is_not_rounded_to_all_or_nothing(share: float, text: str) -> None:
    assert words.percent(share) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1500, "1.5 kB"),
        (167_155_391, "167 MB"),
        (2.5e12, "2.5 TB"),
        (4e15, "4,000.0 TB"),
    ],
)
def test_a_size_has_two_or_three_digits(count: float, text: str) -> None:
    assert words.size(count) == text


def test_a_short_id_is_the_end_that_differs() -> None:
    assert words.short_id(UUID("01890a5d-ac96-774b-bcce-b302099a8057")) == "…099a8057"


def test_a_change_is_told_in_words() -> None:
    change = _change(
        before={"queue": "general", "max_retries": None, "version": 1},
        after={"queue": "bulk", "max_retries": 3, "version": 2},
    )
    created = msgspec.structs.replace(change, before=None, action="task.create")
    long = msgspec.structs.replace(change, before={"description": ""}, after={"description": "x" * 5000})

    assert (words.actor(change.actor), words.deed(change.action)) == ("ada", "changed")
    assert words.differences(change) == [("max_retries", "none", "3"), ("queue", "general", "bulk")]
    assert (words.deed(created.action), words.differences(created)) == ("created", [])
    assert [len(new) for _, _, new in words.differences(long)] == [60]


def test_of_objects_that_changed_their_fields_are_told() -> None:
    change = _change(
        before={"parameters": {"version": 1, "region": "west", "old": True, "deep": {"a": 1, "b": 2}}},
        after={"parameters": {"version": 2, "region": "west", "new": [1], "deep": {"a": 1, "b": 3}}},
    )

    assert words.differences(change) == [
        ("parameters.deep.b", "2", "3"),
        ("parameters.new", "none", "[1]"),
        ("parameters.old", "true", "none"),
        ("parameters.version", "1", "2"),
    ]


def test_a_change_of_many_fields_is_cut() -> None:
    many = {"parameters": {str(n): n for n in range(1000)}}

    assert len(words.differences(_change(before={"parameters": {}}, after=many))) == 50


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"is_active": True}, {"is_active": False, "pause_reason": "why"}, "paused"),
        ({"is_active": False}, {"is_active": True}, "resumed"),
        ({"name": "a"}, {"name": "b"}, "changed"),
        (None, {"is_active": True}, "changed"),
    ],
)
def test_pausing_and_resuming_are_told_as_what_they_are(
    before: dict[str, Any] | None, after: dict[str, Any], told: str
) -> None:
    assert words.told_deed(_change(before=before, after=after)) == told
    assert "is_active" not in {name for name, _, _ in words.differences(_change(before=before, after=after))}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("user:ada", "ada"),
        ("user:a:b", "a:b"),
        ("system:resumer", "onthedot (resumer)"),
        ("sql:app", "app by SQL"),
        ("other", "other"),
    ],
)
def test_who_is_behind_a_change_is_named(name: str, told: str) -> None:
    assert words.actor(name) == told


def _change(*, before: dict[str, Any] | None, after: dict[str, Any] | None) -> ChangeView:
    return ChangeView(
        audit_id=1,
        at=NOW,
        actor="user:ada",
        action="task.update",
        target_type="task",
        target_id="report",
        before=before,
        after=after,
        reason=None,
        request_id=None,
        client="",
    )
