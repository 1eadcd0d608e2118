"""Failures are classified, grouped and recorded, whatever a handler raises."""

import errno
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NoReturn

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.failures import (
    LONGEST_WAIT_SECONDS,
    MESSAGE_LIMIT,
    TRACEBACK_LIMIT,
    Category,
    ErrorDescription,
    Failure,
    RemoteError,
    Severity,
    classify,
    fingerprint,
    types_of,
)


class Named(Exception):
    """Names its category itself, rightly or wrongly."""

    def __init__(self, category: object) -> None:
        self.category = category


class Asking(Exception):
    """Asks to be tried again later, in whatever form."""

    def __init__(self, retry_after_seconds: object) -> None:
        self.retry_after_seconds = retry_after_seconds


class Unreadable(Exception):
    def __str__(self) -> NoReturn:
        raise RuntimeError("no text")

    def __repr__(self) -> NoReturn:
        raise RuntimeError("no repr")


class Leaving(Exception):
    def __str__(self) -> NoReturn:
        raise SystemExit("from str")


class NotText(Exception):
    def __str__(self) -> Any:
        return 7  # noqa: PLE0307 - that is the point


class Trapped(Exception):
    @property
    def category(self) -> NoReturn:
        raise RuntimeError("trap")

    @property
    def retry_after_seconds(self) -> NoReturn:
        raise RuntimeError("trap")


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (TimeoutError(), Category.TIMEOUT),
        (ConnectionResetError(), Category.NETWORK),
        (BrokenPipeError(), Category.NETWORK),
        (MemoryError(), Category.RESOURCE_EXHAUSTION),
        (ValueError(), Category.UNKNOWN),
        (SystemExit(1), Category.UNKNOWN),
        (Named("rate_limiting"), Category.RATE_LIMITING),
        (Named(Category.CONFIGURATION_ERROR), Category.CONFIGURATION_ERROR),
        (Named("made up"), Category.UNKNOWN),
        (Named(7), Category.UNKNOWN),
        (Named([]), Category.UNKNOWN),
        (Trapped(), Category.UNKNOWN),
    ],
)
def test_an_exception_has_the_category_it_names_else_its_types(
    error: BaseException, category: Category
) -> None:
    assert classify(error) is category


@pytest.mark.parametrize(
    ("category", "severity"),
    [
        (Category.NETWORK, Severity.LOW),
        (Category.RATE_LIMITING, Severity.LOW),
        (Category.RESOURCE_EXHAUSTION, Severity.MEDIUM),
        (Category.CONFIGURATION_ERROR, Severity.HIGH),
        (Category.UNKNOWN, Severity.MEDIUM),
        (Category.TIMEOUT, Severity.MEDIUM),
        (Category.POISON, Severity.HIGH),
    ],
)
def test_severity_follows_from_the_category(category: Category, severity: Severity) -> None:
    assert Failure.build("Error", "no", category).severity is severity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "job 0199c229-d976-7e9f-ac7c-93ab79356871 is gone",
            "job 22730F53-DA97-4A53-AE4A-0D86C5066609 is gone",
        ),
        ("no user 7 in shard 12", "no user 123456 in shard 1"),
        ("<Pool at 0x7f3c71d14f10>", "<Pool at 0x55d0>"),
        ("took 1.5 s of 2 s", "took 13.25 s of 2.5 s"),
        ("at 2026-01-31T02:00:00Z", "at 2025-12-01T23:59:59Z"),
        ("commit 5f0e3c9ab1d2 failed", "commit a1b2c3d4e5f6 failed"),
        ("trace 4bf92f3577b34da6a3ce929d0e0e4736", "trace 00f067aa0ba902b7ffffffffffffffff"),
    ],
)
def test_failures_that_differ_in_numbers_and_ids_only_are_alike(one: str, other: str) -> None:
    assert fingerprint("Error", one) == fingerprint("Error", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("Error", "no such file"), ("Error", "no such user")),
        (("KeyError", "name"), ("ValueError", "name")),
        (("Error", "the facade is defaced"), ("Error", "the facade is effaced")),
        (("Error", "7 apples"), ("Error", "7 pears")),
    ],
)
def test_failures_that_differ_in_words_are_not(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert fingerprint(*one) != fingerprint(*other)


def a_chain() -> Exception:
    """Return an exception that is its own cause."""
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def a_deep_one() -> Exception:
    """Return an exception from far down a recursion."""

    def sink(depth: int) -> None:
        if depth:
            sink(depth - 1)
        raise RuntimeError("from the bottom")

    try:
        sink(500)
    except RuntimeError as error:
        return error
    raise AssertionError


HOSTILE: dict[str, Callable[[], BaseException]] = {
    "no text": Unreadable,
    "leaves from __str__": Leaving,
    "no string": NotText,
    "traps": Trapped,
    "NUL": lambda: ValueError("a\0b"),
    "lone surrogates": lambda: ValueError("a\ud800b\udcff"),
    "100 MB": lambda: ValueError("x" * 100_000_000),
    "10 MB of lines": lambda: ValueError("line\n" * 2_000_000),
    "5,000 digits": lambda: ValueError(10**5000),
    "no arguments": Exception,
    "a group": lambda: ExceptionGroup("many", [ValueError(str(i)) for i in range(1000)]),
    "its own cause": a_chain,
    "deep": a_deep_one,
    "a note that is none": lambda: _with_notes([7, Unreadable()]),
    "a name of a megabyte": lambda: type("E" * 1_000_000, (Exception,), {})("x"),
    "interrupted": KeyboardInterrupt,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_is_raised_can_be_recorded(name: str) -> None:
    failure = Failure.of(HOSTILE[name]())

    text = msgspec.json.encode(failure).decode()
    assert "\\u0000" not in text
    assert len(failure.message) <= MESSAGE_LIMIT
    assert len(failure.traceback or "") <= TRACEBACK_LIMIT
    assert len(text) < 10 * TRACEBACK_LIMIT
    assert re.fullmatch("[0-9a-f]{16}", failure.fingerprint)
    assert msgspec.json.decode(text, type=Failure) == failure


def test_a_long_text_keeps_its_start_and_a_long_traceback_its_end() -> None:
    failure = Failure.of(ValueError("start " + "x" * 100_000 + " end"))

    assert failure.message.startswith("start ")
    assert "characters cut" in failure.message
    assert (failure.traceback or "").endswith("x end\n")


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (30, 30.0),
        (0.5, 0.5),
        (0, 0.0),
        (None, None),
        (-1, None),
        (float("nan"), None),
        (float("inf"), LONGEST_WAIT_SECONDS),
        (1e300, LONGEST_WAIT_SECONDS),
        (10**400, LONGEST_WAIT_SECONDS),
        ("30", None),
        (True, None),
        (timedelta(seconds=30), None),
    ],
)
def test_a_wish_to_wait_is_kept_within_reason(asked: object, kept: float | None) -> None:
    assert Failure.of(Asking(asked)).retry_after_seconds == kept


@given(message=st.text(), type_=st.text())
def test_any_text_has_a_fingerprint(message: str, type_: str) -> None:
    assert re.fullmatch("[0-9a-f]{16}", fingerprint(type_, message))


def _with_notes(notes: list[object]) -> Exception:
    error = ValueError("noted")
    error.__notes__ = notes  # type: ignore[assignment]
    return error


def test_an_exception_of_another_process_is_described_as_it_was_there() -> None:
    class Refused(ConnectionError):
        category = "rate_limiting"
        retry_after_seconds = 3
        http_status = 429
        exit_code = "not a number"

    described = ErrorDescription.of(Refused("later"))
    there = msgspec.msgpack.decode(msgspec.msgpack.encode(described), type=ErrorDescription)
    error = RemoteError(there)

    assert Failure.of(error) == Failure.of(Refused("later"))
    assert types_of(error) == types_of(Refused("later"))
    assert {"Refused", "ConnectionError", "OSError"} <= set(types_of(error))
    assert (error.http_status, error.exit_code) == (429, None)
    assert ErrorDescription.of(error) == there


@pytest.mark.parametrize("number", [errno.ENOMEM, errno.ENOSPC, errno.EMFILE])
def test_what_is_used_up_is_resource_exhaustion(number: int) -> None:
    assert classify(OSError(number, "no more")) is Category.RESOURCE_EXHAUSTION
    assert classify(OSError(errno.ENOENT, "none")) is Category.UNKNOWN
