"""`http:METHOD URL`: an execution is one request, and its answer the result."""

import asyncio
import contextlib
import json
from datetime import UTC, datetime
from typing import Final

import aiohttp

from app.domain.http_target import HttpTarget, parse_http_target
from app.domain.text import clean_text
from app.tasks import Context
from app.worker.attempt import Attempt
from app.worker.handlers.http_failures import HttpStatusError, failure_of, retry_after_seconds
from app.worker.handlers.targets import open_http_session

BODY_LIMIT_BYTES: Final = 256 * 1024
EXCERPT_CHARACTERS: Final = 500
EXCERPT_SECONDS: Final = 5.0
"""How long the body of a failure may take: the status counts, not the text."""

_IN_QUERY = frozenset({"GET", "HEAD"})
_OPTIONAL_BODY = "DELETE"
# Text is read as UTF-8 unless the answer names one of these. Python knows codecs that take quadratic time.
_OTHER_CHARSETS = frozenset({"iso-8859-1", "windows-1252", "utf-16"})


class HttpHandler:
    """Sends the requests of all `http:` executions of a worker process. Make it in the running loop.

    POST, PUT and PATCH carry the parameters as a JSON body, DELETE where there are any. GET and HEAD have no
    body: there each parameter joins the query, text as it is and anything else as JSON (`true`, `[1,2]`).
    Headers: `Idempotency-Key` (the execution's id, the same for each attempt), `Onthedot-Job-Id`,
    `Onthedot-Attempt`, `Onthedot-Fencing-Token`, `Onthedot-Scheduled-Time`. Redirects are not followed.
    """

    def __init__(self, *, allow_private_targets: bool) -> None:
        self._allow_private_targets = allow_private_targets
        self._session = open_http_session(allow_private_targets=allow_private_targets)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def parse(self, text: str) -> HttpTarget:
        """Read `METHOD URL`. Raises `InvalidInput`."""
        return parse_http_target(text, allow_private=self._allow_private_targets)

    async def run(self, target: HttpTarget, attempt: Attempt) -> dict[str, object]:
        """Send the request; return `{"status_code", "body"}` of a 2xx answer.

        The body is parsed if it says it is JSON, else text, None if empty; beyond 256 KiB it is cut, stays
        text, and `"body_truncated": true` is added. Raises `HttpFailure`. Only connecting has a time limit
        of its own (10 s): the attempt's is the caller's.
        """
        try:
            async with self._session.request(
                target.method,
                target.url,
                params=_query(target, attempt.context),
                data=_body(target, attempt.context),
                headers=_headers(attempt.context),
                allow_redirects=False,
            ) as answer:
                if not 200 <= answer.status < 300:
                    raise await _status_error(target, answer, attempt)
                return await _result(answer)
        except (aiohttp.ClientError, OSError, UnicodeError) as error:  # Unicode: a host name beyond IDNA
            raise failure_of(target, error) from None


def _query(target: HttpTarget, context: Context) -> dict[str, str]:
    if target.method not in _IN_QUERY:
        return {}
    return {
        name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        for name, value in context.parameters.items()
    }


def _body(target: HttpTarget, context: Context) -> bytes | None:
    if target.method in _IN_QUERY or (target.method == _OPTIONAL_BODY and not context.parameters):
        return None
    return json.dumps(context.parameters).encode()


def _headers(context: Context) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Idempotency-Key": str(context.execution_id),
        "Onthedot-Job-Id": str(context.job_id),
        "Onthedot-Attempt": str(context.attempt_number),
        "Onthedot-Fencing-Token": str(context.fencing_token),
        "Onthedot-Scheduled-Time": context.scheduled_time.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }


async def _result(answer: aiohttp.ClientResponse) -> dict[str, object]:
    octets, cut = await _read(answer, BODY_LIMIT_BYTES)
    result: dict[str, object] = {"status_code": answer.status, "body": _decoded(answer, octets, cut=cut)}
    if cut:
        result["body_truncated"] = True
    return result


async def _read(answer: aiohttp.ClientResponse, limit_bytes: int) -> tuple[bytes, bool]:
    """Return at most `limit_bytes` of the (decompressed) body, and whether there was more.

    aiohttp decompresses no further ahead than its read buffer, so a bomb stops here as well. What is left
    unread closes the connection.
    """
    octets = bytearray()
    while len(octets) <= limit_bytes:
        chunk = await answer.content.read(limit_bytes + 1 - len(octets))
        if not chunk:
            return bytes(octets), False
        octets += chunk
    answer.close()
    return bytes(octets[:limit_bytes]), True


def _decoded(answer: aiohttp.ClientResponse, octets: bytes, *, cut: bool) -> object:
    if not octets:
        return None
    if not cut and answer.content_type.endswith(("/json", "+json")):
        with contextlib.suppress(ValueError, RecursionError):  # says JSON, is not: kept as text
            body: object = json.loads(octets)
            return body
    return _text(answer, octets)


def _text(answer: aiohttp.ClientResponse, octets: bytes) -> str:
    charset = (answer.charset or "utf-8").lower()
    return octets.decode(charset if charset in _OTHER_CHARSETS else "utf-8", "replace")


async def _status_error(
    target: HttpTarget, answer: aiohttp.ClientResponse, attempt: Attempt
) -> HttpStatusError:
    """Describe a failed answer. The beginning of its body goes into the execution's log."""
    octets = b""
    with contextlib.suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(EXCERPT_SECONDS):
            octets, _ = await _read(answer, EXCERPT_CHARACTERS * 4)
    excerpt = clean_text(_text(answer, octets)[:EXCERPT_CHARACTERS], EXCERPT_CHARACTERS)
    if excerpt:
        attempt.log.add_line(f"{target} answered {answer.status}: {excerpt}", level="WARNING")
    wait = retry_after_seconds(answer.headers, now=datetime.now(UTC))
    return HttpStatusError(target, answer.status, retry_after_seconds=wait, excerpt=excerpt)
