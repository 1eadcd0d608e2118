"""The REST API as Python calls: JSON in, JSON out. Nothing is retried, and redirects are not followed."""

import http.client
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias
from urllib.error import URLError
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from app import __version__
from app.client.errors import ApiError, Problem, TimedOut, Unreachable

Document: TypeAlias = dict[str, Any]
"""A JSON object of the API."""

API = "/api/v1"
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
LARGEST_PAGE = 1000
MARGIN_SECONDS = 30.0
"""How long an answer may take beyond what a request asked the server to wait."""


class RestClient:
    """Sends requests to one server under one API key.

    Every method raises `ApiError` where the API refuses, `Unreachable` and `TimedOut`.
    """

    def __init__(self, url: str, key: str | None) -> None:
        self.url = url
        self._key = key
        self._opener = _opener(is_local=urlsplit(url).hostname in LOOPBACK)

    def get(self, path: str, **query: object) -> Document:
        """Return what lies under a path of the API, such as `/jobs/…`; query values of None are left out."""
        return self._send("GET", f"{API}{path}{_query(query)}")

    def post(self, path: str, body: object = None, *, idempotency_key: str | None = None) -> Document:
        """Create something or act; under one key an action is carried out once, however often it is sent."""
        headers = {} if idempotency_key is None else {"Idempotency-Key": f'"{idempotency_key}"'}
        return self._send("POST", f"{API}{path}", body=body, headers=headers)

    def patch(self, path: str, body: object, *, if_version: int | None = None) -> Document:
        """Change parts of something, if it still is of this version."""
        headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
        return self._send("PATCH", f"{API}{path}", body=body, headers=headers)

    def delete(self, path: str) -> Document:
        """Delete something; the answer may be empty."""
        return self._send("DELETE", f"{API}{path}")

    def items(self, path: str, *, limit: int, **query: object) -> Iterator[Document]:
        """Yield up to `limit` items of a list, page by page."""
        cursor, left = None, limit
        while left > 0:
            page = self.get(path, limit=min(left, LARGEST_PAGE), cursor=cursor, **query)
            yield from page["items"]
            left, cursor = left - len(page["items"]), page["next_cursor"]
            if cursor is None:
                return

    def is_ready(self) -> tuple[bool, str | None]:
        """Tell whether the server can work, and why where it cannot."""
        status, body = self._exchange("GET", "/readyz")
        health = _decode(body) or {}
        return status == 200, health.get("reason") or health.get("detail")

    def _send(
        self, method: str, path: str, *, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Document:
        status, answer = self._exchange(method, path, body=body, headers=headers)
        document = _decode(answer)
        if not 200 <= status < 300:
            raise ApiError(_problem(status, document))
        if document is None and answer:
            raise ApiError(Problem(status=status, title="The answer is not of this API", detail=self.url))
        return document or {}

    def _exchange(
        self, method: str, path: str, *, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        found = {"Accept": "application/json", "User-Agent": f"onthedot-cli/{__version__}"} | dict(
            headers or {}
        )
        if self._key:
            found["Authorization"] = f"Bearer {self._key}"
        data = None
        if body is not None:
            data, found["Content-Type"] = msgspec.json.encode(body), "application/json"
        request = urllib.request.Request(f"{self.url}{path}", data=data, headers=found, method=method)  # noqa: S310 - the opener knows http and https only
        try:
            with self._opener.open(request, timeout=MARGIN_SECONDS) as response:
                return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            if isinstance(reason, TimeoutError):
                raise TimedOut(f"{self.url} did not answer within {MARGIN_SECONDS:g} s") from None
            raise Unreachable(f"{self.url}: {reason}") from None


def at(*segments: str) -> str:
    """Return the path of these segments, whatever characters they hold: `at("jobs", job_id)`."""
    return "".join("/" + quote(segment, safe="") for segment in segments)


def _opener(*, is_local: bool) -> urllib.request.OpenerDirector:
    """Make an opener that takes answers as they are: following a redirect would carry the key along."""
    opener = urllib.request.OpenerDirector()
    handlers: list[urllib.request.BaseHandler] = [
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.UnknownHandler(),
    ]
    if not is_local:
        handlers.append(urllib.request.ProxyHandler())
    for handler in handlers:
        opener.add_handler(handler)
    return opener


def _query(query: Mapping[str, object]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _decode(answer: bytes) -> Document | None:
    """Return a JSON object, or None for anything else."""
    try:
        return msgspec.json.decode(answer, type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def _problem(status: int, document: Document | None) -> Problem:
    try:
        return msgspec.convert((document or {}) | {"status": status}, Problem)
    except msgspec.ValidationError:
        return Problem(status=status)
