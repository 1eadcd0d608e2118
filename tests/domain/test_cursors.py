"""Cursors survive the way out and back, and whatever else is sent in their place is refused."""

import base64
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cursors import read_cursor, write_cursor
from app.domain.errors import InvalidCursor

TIMES = st.datetimes(timezones=st.just(UTC))
FILTERS = st.dictionaries(
    st.sampled_from(["status", "user_id", "job_id"]), st.none() | st.text() | st.uuids()
)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ROW = UUID("0199c229-d976-7e9f-ac7c-93ab79356871")


@given(time=TIMES, row_id=st.uuids(), filters=FILTERS)
def test_a_cursor_comes_back_exact_to_the_microsecond(
    time: datetime, row_id: UUID, filters: dict[str, object]
) -> None:
    text = write_cursor(time, row_id, filters)
    cursor = read_cursor(text, dict(reversed(filters.items())))

    assert cursor
    assert (cursor.time, cursor.row_id) == (time, row_id)
    assert text.replace("-", "").replace("_", "").isalnum()  # fits an address as it is


def test_no_cursor_is_the_first_page() -> None:
    assert read_cursor(None, {"status": "FAILED"}) is None


@given(filters=FILTERS, other=FILTERS)
def test_a_cursor_of_other_filters_is_refused(filters: dict[str, object], other: dict[str, object]) -> None:
    text = write_cursor(NOON, ROW, filters)
    if filters == other:
        assert read_cursor(text, other)
        return
    with pytest.raises(InvalidCursor, match="the filters have changed; use `next_cursor`") as refusal:
        read_cursor(text, other)
    assert (refusal.value.code, refusal.value.pointer) == ("cursor_mismatch", "/cursor")


def packed(*values: object) -> str:
    """Return what a forger would send."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(values)).decode().rstrip("=")


def nested(depth: int) -> str:
    """Return a cursor with a fourth member that is nested so deep."""
    three = msgspec.msgpack.encode((1, ROW, b""))[1:]
    return base64.urlsafe_b64encode(b"\x94" + three + b"\x91" * depth + b"\xc0").decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "abcde",
        "not a cursor",
        "%00",
        "\0",
        "é",
        "\ud800",
        "a" * 100_000,
        packed(),
        packed(1, 2, 3),
        packed("1", ROW, b""),
        packed(10**18, ROW, b""),
        packed(-(10**18), ROW, b""),
        packed(1, ROW, b"", "more"),
        nested(5000),
        nested(100_000),
        write_cursor(NOON, ROW, {})[:-1],
        write_cursor(NOON, ROW, {}) + "AAAA",
    ],
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor) as refusal:
        read_cursor(text, {})
    assert "use `next_cursor` of the same list" in refusal.value.detail
    assert refusal.value.pointer == "/cursor"


@given(text=st.text())
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        read_cursor(text, {})


@given(junk=st.binary(max_size=60))
def test_any_bytes_are_a_cursor_or_refused(junk: bytes) -> None:
    with pytest.raises(InvalidCursor):
        read_cursor(base64.urlsafe_b64encode(junk).decode(), {})
