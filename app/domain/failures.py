"""What went wrong in an attempt: classified, with a fingerprint by which like failures are grouped."""

import errno
import hashlib
import re
import traceback
from enum import StrEnum
from typing import Self

import msgspec

from app.domain.errors import InvalidInput
from app.domain.text import clean_text

TYPE_LIMIT = 200
MESSAGE_LIMIT = 2000
TRACEBACK_LIMIT = 20_000
LARGEST_CODE = 2**31
LONGEST_WAIT_SECONDS = 31 * 86_400.0
"""Whoever asks to be tried again later than this is tried again then: beyond some point it is no date any more."""


class Category(StrEnum):
    """Which kind of failure it is; what is done about it follows from that."""

    NETWORK = "network"
    RATE_LIMITING = "rate_limiting"
    RESOURCE_EXHAUSTION = "resource_exhaustion"
    CONFIGURATION_ERROR = "configuration_error"
    """Will fail again however often it is tried; never retried."""
    UNKNOWN = "unknown"
    TIMEOUT = "timeout"
    POISON = "poison"


class Severity(StrEnum):
    """How much a person should care."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


_SEVERITIES = {
    Category.NETWORK: Severity.LOW,
    Category.RATE_LIMITING: Severity.LOW,
    Category.CONFIGURATION_ERROR: Severity.HIGH,
    Category.POISON: Severity.HIGH,
}

_BY_TYPE: tuple[tuple[type[BaseException], Category], ...] = (
    (InvalidInput, Category.CONFIGURATION_ERROR),
    (TimeoutError, Category.TIMEOUT),
    (ConnectionError, Category.NETWORK),
    (MemoryError, Category.RESOURCE_EXHAUSTION),
)
_USED_UP = {errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE}
"""Memory, disk, file descriptors: of the machine or of the account."""
_CATEGORIES = frozenset(category.value for category in Category)
_VARYING = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|0x[0-9a-fA-F]+|\b(?=[a-fA-F]*\d)[0-9a-fA-F]{8,}\b|\d+(?:\.\d+)?"
)
"""UUIDs, addresses, hexadecimal digests, numbers."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=False):
    """One failed attempt, as it is stored in `error`."""

    type: str
    message: str
    category: Category
    severity: Severity
    fingerprint: str
    traceback: str | None = None
    retry_after_seconds: float | None = None
    """The earliest moment at which the other side wants to see us again."""

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Describe an exception. Its text is cut and cleaned: recording a failure must never fail."""
        if isinstance(error, RemoteError):
            return error.described.failure
        return cls.build(
            clean_text(type(error).__name__, TYPE_LIMIT),
            _message(error),
            classify(error),
            traceback=clean_text("".join(traceback.format_exception(error)), TRACEBACK_LIMIT),
            retry_after_seconds=_wait(attribute_of(error, "retry_after_seconds")),
        )

    @classmethod
    def build(
        cls,
        type_: str,
        message: str,
        category: Category,
        *,
        traceback: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> Self:
        """Describe a failure that is no exception, such as a lease that lapsed."""
        return cls(
            type=type_,
            message=message,
            category=category,
            severity=severity_of(category),
            fingerprint=fingerprint(type_, message),
            traceback=traceback,
            retry_after_seconds=retry_after_seconds,
        )


class ErrorDescription(msgspec.Struct, frozen=True):
    """All that counts of an exception, as data: for one that comes from another process."""

    failure: Failure
    types: tuple[str, ...]
    """The names of its type and of those that it derives from."""
    http_status: int | None = None
    exit_code: int | None = None

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Describe an exception."""
        codes = (attribute_of(error, name) for name in ("http_status", "exit_code"))
        return cls(
            Failure.of(error),
            types_of(error),
            *(code if type(code) is int and abs(code) <= LARGEST_CODE else None for code in codes),
        )


class RemoteError(Exception):
    """An exception of another process; what was noted of it there stands for it here."""

    def __init__(self, described: ErrorDescription) -> None:
        super().__init__(described.failure.message)
        self.described = described
        self.http_status = described.http_status
        self.exit_code = described.exit_code


def types_of(error: BaseException) -> tuple[str, ...]:
    """Return the names of an exception's type and of those that it derives from."""
    if isinstance(error, RemoteError):
        return error.described.types
    return tuple(clean_text(kind.__name__, TYPE_LIMIT) for kind in type(error).__mro__)


def severity_of(category: Category) -> Severity:
    """Return how much a person should care about failures of a category."""
    return _SEVERITIES.get(category, Severity.MEDIUM)


def classify(error: BaseException) -> Category:
    """Return the category of an exception: the one it names itself, else by its type."""
    named = attribute_of(error, "category")
    if isinstance(named, str) and named in _CATEGORIES:
        return Category(named)
    if isinstance(error, OSError) and error.errno in _USED_UP:
        return Category.RESOURCE_EXHAUSTION
    return next((category for kind, category in _BY_TYPE if isinstance(error, kind)), Category.UNKNOWN)


def fingerprint(type_: str, message: str) -> str:
    """Return 16 hex digits that are equal for failures which differ in numbers and ids only."""
    normal = _VARYING.sub("#", message)[:500]
    return hashlib.sha256(f"{type_}\n{normal}".encode(errors="replace")).hexdigest()[:16]


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except (Exception, SystemExit):  # noqa: BLE001 - a user's __str__ may raise anything
        text = "(its text cannot be read)"
    return clean_text(text, MESSAGE_LIMIT)


def attribute_of(error: BaseException | None, name: str) -> object:
    """Return an attribute of an exception, None where it has none or does not give it."""
    try:
        return getattr(error, name, None)
    except (Exception, SystemExit):  # noqa: BLE001 - a user's property may raise anything
        return None


def _wait(asked: object) -> float | None:
    """Return the seconds that an exception asks to wait; None if it asks for nothing that makes sense."""
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not asked >= 0:
        return None
    return float(min(asked, LONGEST_WAIT_SECONDS))
