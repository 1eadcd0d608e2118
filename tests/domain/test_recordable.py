"""Whatever a handler returns can be recorded."""

import collections
import json
import math
import os
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType, SimpleNamespace
from typing import Any, NoReturn
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.json_writer import MAX_VALUES
from app.domain.recordable import RESULT_LIMIT_BYTES, clean_text, recordable

NOT_A_NUMBER = "NaN and infinite numbers were stored as null"
TOO_DEEP = "what is nested deeper than 64 was stored as text"
CYCLE = "what contains itself was stored as text"
HUGE = "integers of more than 4,300 digits were stored as text"


def read(text: str) -> Any:
    """Read JSON text as strictly as jsonb does: no NaN, no NUL, no lone surrogate."""
    text.encode()
    assert "\\u0000" not in text.replace("\\\\", "")
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in {text[:80]}"))


@dataclass
class Region:
    name: str
    since: date


class Step(msgspec.Struct):
    key: str
    done: bool


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 1


class Word(StrEnum):
    YES = "yes"


class Text(str):
    __slots__ = ()

    def __str__(self) -> NoReturn:
        raise RuntimeError("no text")


Point = collections.namedtuple("Point", "x y")


class Unprintable:
    def __repr__(self) -> NoReturn:
        raise RuntimeError("no repr")


class Exiting:
    def __repr__(self) -> NoReturn:
        sys.exit("from repr")


class Garbage:
    def __repr__(self) -> str:
        return "a\0b\ud800"


class Endless:
    def __repr__(self) -> str:
        return "x" * 100_000_000


class WrongRepr:
    def __repr__(self) -> str:
        return 7  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (2**63 - 1, 2**63 - 1),
        (-(2**64), -(2**64)),
        (10**100, 10**100),
        (1.5, 1.5),
        (1e300, 1e300),
        ("é\u2028", "é\u2028"),
        ((1, 2), [1, 2]),
        ({}, {}),
        ([[], {}, ()], [[], {}, []]),
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        ("C:\\u0000dir", "C:\\u0000dir"),
        ({1: "a", None: "b", (2, 3): "c", False: "d"}, {"1": "a", "None": "b", "(2, 3)": "c", "False": "d"}),
        (datetime(2030, 1, 31, 9, 0, tzinfo=UTC), "2030-01-31T09:00:00Z"),
        (date(2030, 1, 31), "2030-01-31"),
        (timedelta(seconds=90), "PT90S"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("0.10"), "0.10"),
        (Decimal("NaN"), "NaN"),
        (Fraction(1, 4), 0.25),
        (Colour.RED, "red"),
        ([Level.HIGH, Word.YES], [1, "yes"]),
        (Region("eu", date(2030, 1, 1)), {"name": "eu", "since": "2030-01-01"}),
        ([Step("a", done=True)], [{"key": "a", "done": True}]),
        ({"seen"}, ["seen"]),
        (frozenset(), []),
        (collections.deque([1]), [1]),
        (collections.OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": {2}}), {"a": [2]}),
        ({"a": 1}.values(), [1]),
        (range(3), [0, 1, 2]),
        (Point(1, 2), [1, 2]),
        (PurePosixPath("/tmp/x"), "/tmp/x"),  # noqa: S108 - a path to write down
        (b"ok \xff", "ok \ufffd"),
        (bytearray(b"a\0"), "a\u2400"),
        (memoryview(b"abc"), "abc"),
        ("a\0b", "a\u2400b"),
        ({"k\0": "\ud800x", "e": "\U0001f600"}, {"k\u2400": "\ufffdx", "e": "\U0001f600"}),
        (Text("text"), "text"),
        ({Text("key"): 1}, {"key": 1}),
        (ValueError("bad"), "ValueError('bad')"),
        (Region, repr(Region)),
        (Garbage(), "a\u2400b\ufffd"),
        (Exiting(), "<Exiting>"),
        (Unprintable(), None),
        (WrongRepr(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_take_their_usual_json_form(value: object, stored: object) -> None:
    recorded = recordable(value)
    if stored is None and value is not None:
        assert f"{type(value).__name__}" in read(recorded.json_text)
    else:
        assert read(recorded.json_text) == stored
        assert type(read(recorded.json_text)) is type(stored)
    assert (recorded.truncated, recorded.note) == (False, None)


@pytest.mark.parametrize(
    ("value", "stored", "note"),
    [
        (math.nan, None, NOT_A_NUMBER),
        ({"a": [math.inf, -math.inf, 1.0]}, {"a": [None, None, 1.0]}, NOT_A_NUMBER),
        ([10**4400], [hex(10**4400)], HUGE),
        (1 << 10_000_000, "<integer of 10000001 bits>", HUGE),
    ],
    ids=lambda value: str(value)[:20] if not isinstance(value, int | list) else "integer",
)
def test_numbers_that_json_lacks_are_replaced_with_a_note(value: object, stored: object, note: str) -> None:
    recorded = recordable(value)
    assert read(recorded.json_text) == stored
    assert (recorded.truncated, recorded.note) == (False, note)


def nested(levels: int, inner: object = 1) -> object:
    for _ in range(levels):
        inner = [inner]
    return inner


def test_nesting_is_kept_to_64_and_text_below() -> None:
    assert recordable(nested(64)).json_text == "[" * 64 + "1" + "]" * 64
    assert recordable(nested(64)).note is None
    recorded = recordable(nested(65))
    assert recorded.json_text == "[" * 64 + '"[1]"' + "]" * 64
    assert recorded.note == TOO_DEEP
    read(recordable(nested(100_000)).json_text)


def test_what_contains_itself_becomes_text_where_it_returns() -> None:
    branch: dict[str, object] = {"shared": [1]}
    branch["self"] = branch
    branch["twice"] = branch["shared"]
    recorded = recordable(branch)
    stored = read(recorded.json_text)
    assert stored["shared"] == stored["twice"] == [1]
    assert isinstance(stored["self"], str)
    assert recorded.note == CYCLE


def test_each_note_is_given_once() -> None:
    recorded = recordable([math.nan, math.nan, nested(65), math.inf])
    assert recorded.note == f"{NOT_A_NUMBER}; {TOO_DEEP}"


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("x" * 100_000_000, 100_000_002),
        ("é" * 200_000, 400_002),
        (["x" * 1000] * 1000, 1_003_001),
        (["x" * 1000, math.nan] * 1000, 1_008_001),
        (b"x" * 1_000_000, 1_000_002),
    ],
    ids=["text", "two-byte text", "list", "list with NaN", "bytes"],
)
def test_what_is_over_the_limit_is_a_preview_with_its_size(value: object, size: int) -> None:
    recorded = recordable(value)
    assert recorded.truncated
    stored = read(recorded.json_text)
    assert stored["truncated"] is True
    assert stored["bytes"] == size
    assert len(stored["preview"]) == 4096
    assert stored["preview"].startswith(('"x', '"é', '["x'))


def test_the_limit_is_exact() -> None:
    assert recordable("x" * (RESULT_LIMIT_BYTES - 2)).truncated is False
    assert recordable("x" * (RESULT_LIMIT_BYTES - 1)).truncated is True
    assert recordable(["é", 1], limit_bytes=8) == recordable(["é", 1])
    assert recordable(["é", 1], limit_bytes=7).truncated
    assert recordable(["\n" * 100], limit_bytes=150).truncated
    assert recordable([math.nan], limit_bytes=6).truncated is False
    assert recordable([math.nan], limit_bytes=5).truncated is True


@pytest.mark.parametrize(
    "value",
    [range(10**12), [[[1] * 300] * 300] * 300, dict.fromkeys(range(3 * MAX_VALUES))],
    ids=["range", "nested lists", "dict"],
)
def test_a_value_too_big_to_walk_through_is_cut_short(value: object) -> None:
    recorded = recordable(value)
    assert recorded.truncated
    assert "only the first 150,000 values were looked at" in (recorded.note or "")
    assert read(recorded.json_text)["bytes"] > RESULT_LIMIT_BYTES


def test_many_values_that_fit_are_all_kept() -> None:
    fits = [math.nan, *[1] * 120_000]
    recorded = recordable(fits)
    assert not recorded.truncated
    assert read(recorded.json_text) == [None, *[1] * 120_000]


def test_a_repr_of_a_hundred_megabytes_is_cut() -> None:
    recorded = recordable({"a": Endless()})
    assert len(recorded.json_text) < 5000
    assert "xxx" in recorded.json_text


class HostileMapping(collections.abc.Mapping[str, int]):
    def __getitem__(self, key: str) -> NoReturn:
        raise KeyError(key)

    def __iter__(self) -> Any:
        yield "a"
        raise RuntimeError("broken off")

    def __len__(self) -> int:
        return 2


class HostileKey:
    def __str__(self) -> NoReturn:
        raise RuntimeError("no text")


@dataclass
class HostileField:
    a: int = 1

    def __getattribute__(self, name: str) -> Any:
        if name == "a":
            raise OSError("no field")
        return object.__getattribute__(self, name)


class HostilePath(os.PathLike[str]):
    def __fspath__(self) -> NoReturn:
        raise SystemExit(1)


@pytest.mark.parametrize("value", [HostileMapping(), {HostileKey(): 1}, [HostileField()], HostilePath()])
def test_a_value_whose_own_code_raises_is_named(value: object) -> None:
    recorded = recordable(value)
    assert "that cannot be read" in read(recorded.json_text)


anything: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.text(st.characters(codec=None))
    | st.binary() | st.decimals() | st.datetimes(timezones=st.just(UTC)) | st.timedeltas() | st.uuids()
    | st.builds(SimpleNamespace, a=st.text()) | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)  # fmt: skip


@settings(deadline=None)
@given(anything, st.sampled_from([5, 100, RESULT_LIMIT_BYTES]))
def test_any_value_is_recordable_within_the_limit(value: object, limit_bytes: int) -> None:
    recorded = recordable(value, limit_bytes=limit_bytes)
    read(recorded.json_text)
    assert recorded.truncated or len(recorded.json_text.encode()) <= limit_bytes


finite = st.floats(allow_nan=False, allow_infinity=False)
storable = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
plain: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | storable,
    lambda inner: st.lists(inner) | st.dictionaries(storable, inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(plain)
def test_plain_json_comes_back_unchanged(value: object) -> None:
    recorded = recordable(value)
    assert read(recorded.json_text) == value
    assert (recorded.truncated, recorded.note) == (False, None)


def test_clean_text_keeps_the_start_of_a_message_and_the_end_of_a_traceback() -> None:
    text = "ValueError in step 1\n" + "  File somewhere\n" * 10_000 + "ValueError: the reason"
    cut = clean_text(text, 300)
    assert len(cut) == 300
    assert cut.startswith("ValueError in step 1\n")
    assert cut.endswith("ValueError: the reason")
    assert "characters cut" in cut


@pytest.mark.parametrize(
    ("text", "limit", "cleaned"),
    [
        ("plain", 5, "plain"),
        ("a\0b\ud800c\udfff", 100, "a\u2400b\ufffdc\ufffd"),
        ("\U0001f600é", 100, "\U0001f600é"),
        ("", 0, ""),
        ("abc", 0, ""),
    ],
)
def test_clean_text_makes_text_storable(text: str, limit: int, cleaned: str) -> None:
    assert clean_text(text, limit) == cleaned


@settings(deadline=None)
@given(st.text(st.characters(codec=None)), st.integers(0, 200))
def test_clean_text_is_never_longer_than_its_limit_and_always_storable(text: str, limit: int) -> None:
    cleaned = clean_text(text, limit)
    assert len(cleaned) <= limit
    cleaned.encode()
    assert "\0" not in cleaned
