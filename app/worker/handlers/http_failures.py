"""How an HTTP target can fail. `category` is the failure class (`app.domain.failures.Category`)."""

import os
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp

from app.domain.failures import Category
from app.domain.http_target import HttpTarget
from app.worker.handlers.targets import CONNECT_TIMEOUT_SECONDS, AddressRefused

# Statuses that say the request itself is wrong: sending it again cannot help. 409, 412, 423 and 424 are not
# among them, because they pass when something else changes.
_NEVER_HELPED_BY_RETRY = frozenset(
    {400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 431, 501, 505}
)
_PASSING_TROUBLE = frozenset({408, 425, 502, 503, 504})
_INSUFFICIENT_STORAGE = 507
# The first that fits counts. Fixed sentences: what a library or a target says is not for every reader.
_CONNECTION_TROUBLE: tuple[tuple[type[Exception], str, Category], ...] = (
    (ssl.CertificateError, "its certificate is not valid", Category.CONFIGURATION_ERROR),
    (aiohttp.ClientResponseError, "it does not speak HTTP", Category.UNKNOWN),
    (aiohttp.ClientConnectorDNSError, "its host name cannot be resolved", Category.NETWORK),
    (aiohttp.ClientSSLError, "TLS could not be agreed on", Category.NETWORK),
    (aiohttp.ClientConnectorError, "no connection could be made", Category.NETWORK),
    (aiohttp.ServerDisconnectedError, "it closed the connection without an answer", Category.NETWORK),
    (aiohttp.ClientPayloadError, "its answer broke off", Category.NETWORK),
    (Exception, "the connection broke", Category.NETWORK),
)
_WHOLE_SECONDS = re.compile(r"\d{1,9}", re.ASCII)


class HttpFailure(Exception):
    """A request that did not succeed."""

    category: Category
    http_status: int | None = None
    retry_after_seconds: float | None = None


class HttpConnectionError(HttpFailure):
    """No answer, or not a whole one."""

    def __init__(self, target: HttpTarget, reason: str, *, category: Category = Category.NETWORK) -> None:
        super().__init__(f"{target}: {reason}")
        self.category = category


class HttpTimeout(HttpFailure):
    """No connection within the time for connecting."""

    category = Category.TIMEOUT


class HttpTargetRefused(HttpFailure):
    """The target is one that we do not send to. Says nothing about what is or is not there."""

    category = Category.CONFIGURATION_ERROR


class HttpStatusError(HttpFailure):
    """An answer other than 2xx. `excerpt`: the beginning of its body, at most 500 characters."""

    def __init__(
        self, target: HttpTarget, status: int, *, retry_after_seconds: float | None, excerpt: str
    ) -> None:
        hint = "; redirects are not followed, name the final URL" if 300 <= status < 400 else ""
        super().__init__(f"{target} answered {status}{hint}")
        self.http_status = status
        self.retry_after_seconds = retry_after_seconds
        self.excerpt = excerpt
        self.category = category_of_status(status, asked_to_wait=retry_after_seconds is not None)


def failure_of(target: HttpTarget, error: Exception) -> HttpFailure:
    """Return what an exception of the HTTP client means."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, AddressRefused):
        return HttpTargetRefused(f"{target}: private and reserved addresses are refused")
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError | UnicodeError):
        return HttpTargetRefused(f"{target}: the URL cannot be used")
    if isinstance(error, TimeoutError):
        return HttpTimeout(f"{target}: no connection within {CONNECT_TIMEOUT_SECONDS:g} s")
    reason, category = next(
        (text, category) for kind, text, category in _CONNECTION_TROUBLE if isinstance(error, kind)
    )
    if type(error) is aiohttp.ClientConnectorError and error.errno:
        reason += f" ({os.strerror(error.errno)})"
    return HttpConnectionError(target, reason, category=category)


def category_of_status(status: int, *, asked_to_wait: bool) -> Category:
    """Return the failure class of an answer; `asked_to_wait`: it came with a `Retry-After`."""
    if status == 429 or (status == 503 and asked_to_wait):
        return Category.RATE_LIMITING
    if status in _PASSING_TROUBLE:
        return Category.NETWORK
    if status in _NEVER_HELPED_BY_RETRY or 300 <= status < 400:
        return Category.CONFIGURATION_ERROR
    return Category.RESOURCE_EXHAUSTION if status == _INSUFFICIENT_STORAGE else Category.UNKNOWN


def retry_after_seconds(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return how long `Retry-After` (RFC 9110, 10.2.3: seconds or a date) asks to wait; None if it does not.

    A date is compared with the answer's own `Date`, so that the clocks need not agree; `now` is for answers
    without one.
    """
    text = headers.get("Retry-After", "").strip()
    if _WHOLE_SECONDS.fullmatch(text):
        return float(text)
    until = _http_date(text)
    if until is None:
        return None
    return max(0.0, (until - (_http_date(headers.get("Date", "")) or now)).total_seconds())


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
