"""HTTP targets against real servers on loopback."""

import asyncio
import gzip
import logging
import shutil
import ssl
import subprocess
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from app import __version__
from app.db.stores.effects import EffectStore
from app.domain.claims import Claim
from app.domain.errors import InvalidInput
from app.domain.failures import Category
from app.domain.http_target import HttpTarget
from app.tasks import Context
from app.worker.attempt import Attempt
from app.worker.capture import ExecutionLog
from app.worker.effects import AttemptEffects
from app.worker.handlers import http
from app.worker.handlers.http import BODY_LIMIT_BYTES, EXCERPT_CHARACTERS, HttpHandler
from app.worker.handlers.http_failures import (
    HttpConnectionError,
    HttpFailure,
    HttpStatusError,
    HttpTargetRefused,
    retry_after_seconds,
)

EXECUTION_ID = UUID("01980000-0000-7000-8000-000000000001")
JOB_ID = UUID("01980000-0000-7000-8000-000000000002")
SCHEDULED = datetime(2030, 1, 31, 9, 0, 0, 250_000, tzinfo=UTC)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_attempt(parameters: dict[str, Any] | None = None) -> Attempt:
    claim = Claim(
        shard=298,
        execution_id=EXECUTION_ID,
        job_id=JOB_ID,
        user_id="u",
        task_id="t",
        task_revision=1,
        queue="general",
        priority=2,
        status="RUNNING",
        trigger="schedule",
        scheduled_time=SCHEDULED,
        due_at=SCHEDULED,
        first_due_at=SCHEDULED,
        parameters="{}",
        timeout_seconds=60.0,
        max_attempts=3,
        attempt_number=2,
        lease_epoch=7,
        claimed_at=SCHEDULED,
        lease_expires_at=SCHEDULED,
        lateness_ms=None,
    )
    effects = AttemptEffects(EffectStore(None), claim)
    context = Context(
        execution_id=EXECUTION_ID,
        job_id=JOB_ID,
        attempt_number=2,
        scheduled_time=SCHEDULED,
        parameters=parameters or {},
        fencing_token=(1 << 40) + 7,
        timeout_seconds=60.0,
        logger=logging.getLogger("test"),
        effects=effects,
    )
    return Attempt(
        claim=claim,
        lease=claim.lease,
        task=None,
        context=context,
        effects=effects,
        log=ExecutionLog(lambda: datetime.now(UTC)),
        started_at=SCHEDULED,
        timeout_seconds=60.0,
    )


@pytest.fixture
async def handler() -> AsyncIterator[HttpHandler]:
    handler = HttpHandler(allow_private_targets=True)
    yield handler
    await handler.close()


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    """Serve `answer` at every path and yield the base URL."""
    app = web.Application(client_max_size=10 * 1024**2)
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@asynccontextmanager
async def saying(octets: bytes) -> AsyncIterator[str]:
    """Accept connections, read what comes, say `octets` and close."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(64 * 1024)
        writer.write(octets)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def answering(**response: Any) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(**response)

    return answer


async def failure_of(handler: HttpHandler, url: str, *, method: str = "POST") -> HttpFailure:
    with pytest.raises(HttpFailure) as caught:
        await handler.run(HttpTarget(method, url), make_attempt())
    return caught.value


class Recorder:
    """Answers 200 and keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[web.Request, bytes]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append((request, await request.read()))
        return web.json_response({"seen": True})


async def test_posts_the_parameters_with_who_it_is_in_the_headers(handler: HttpHandler) -> None:
    recorder = Recorder()
    async with serving(recorder.answer) as url:
        result = await handler.run(
            HttpTarget("POST", f"{url}/deploy?x=1"),
            make_attempt({"region": "Zürich", "percent": 25, "tags": ["a"]}),
        )
    assert result == {"status_code": 200, "body": {"seen": True}}
    [(request, body)] = recorder.requests
    assert body == b'{"region": "Z\\u00fcrich", "percent": 25, "tags": ["a"]}'
    assert request.path_qs == "/deploy?x=1"
    assert {name: request.headers[name] for name in request.headers if name.startswith("Onthedot-")} == {
        "Onthedot-Job-Id": str(JOB_ID),
        "Onthedot-Attempt": "2",
        "Onthedot-Fencing-Token": str((1 << 40) + 7),
        "Onthedot-Scheduled-Time": "2030-01-31T09:00:00.250000Z",
    }
    assert request.headers["Idempotency-Key"] == str(EXECUTION_ID)
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["User-Agent"] == f"onthedot/{__version__}"


@pytest.mark.parametrize(
    ("method", "parameters", "body", "query"),
    [
        ("POST", {}, b"{}", {}),
        ("PUT", {"a": 1}, b'{"a": 1}', {}),
        ("PATCH", {"a": None}, b'{"a": null}', {}),
        ("DELETE", {}, b"", {}),
        ("DELETE", {"a": 1}, b'{"a": 1}', {}),
        ("GET", {}, b"", {}),
        (
            "GET",
            {"s": "a b&c", "n": 25, "yes": True, "none": None, "list": [1, {"k": "v"}]},
            b"",
            {"s": "a b&c", "n": "25", "yes": "true", "none": "null", "list": '[1,{"k":"v"}]'},
        ),
    ],
)
async def test_parameters_go_into_the_body_or_for_get_into_the_query(
    handler: HttpHandler, method: str, parameters: dict[str, Any], body: bytes, query: dict[str, str]
) -> None:
    recorder = Recorder()
    async with serving(recorder.answer) as url:
        await handler.run(HttpTarget(method, f"{url}/?kept=1"), make_attempt(parameters))
    [(request, received)] = recorder.requests
    assert request.method == method
    assert received == body
    assert dict(request.query) == {"kept": "1"} | query


async def test_head_succeeds_without_a_body(handler: HttpHandler) -> None:
    recorder = Recorder()
    async with serving(recorder.answer) as url:
        assert await handler.run(HttpTarget("HEAD", url), make_attempt({"a": 1})) == {
            "status_code": 200,
            "body": None,
        }
    assert recorder.requests[0][0].query["a"] == "1"


@pytest.mark.parametrize(
    ("response", "body"),
    [
        ({"text": '{"a": [1, 2]}', "content_type": "application/json"}, {"a": [1, 2]}),
        ({"text": '{"a": 1}', "content_type": "application/problem+json"}, {"a": 1}),
        ({"text": '{"a": 1}', "content_type": "text/plain"}, '{"a": 1}'),
        ({"text": "{broken", "content_type": "application/json"}, "{broken"),
        ({"text": "[" * 50_000, "content_type": "application/json"}, "[" * 50_000),
        ({"text": "1" * 5000, "content_type": "application/json"}, "1" * 5000),
        ({"body": b"\xff\x00ok", "content_type": "application/octet-stream"}, "\ufffd\0ok"),
        ({"body": "é".encode("latin-1"), "headers": {"Content-Type": "text/plain; charset=iso-8859-1"}}, "é"),
        ({"body": b"x", "headers": {"Content-Type": "text/plain; charset=no-such-charset"}}, "x"),
        ({"status": 204}, None),
        ({"text": ""}, None),
    ],
    ids=lambda value: str(value)[:50],
)
async def test_a_body_is_parsed_if_it_says_json_and_text_otherwise(
    handler: HttpHandler, response: dict[str, Any], body: object
) -> None:
    async with serving(answering(**response)) as url:
        result = await handler.run(HttpTarget("POST", url), make_attempt())
    assert result == {"status_code": response.get("status", 200), "body": body}


async def test_a_long_body_is_cut_flagged_and_not_read_to_its_end(handler: HttpHandler) -> None:
    ended = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65_536)
        except (ConnectionError, asyncio.CancelledError):
            ended.set()
            raise

    async with serving(endless) as url:
        result = await handler.run(HttpTarget("GET", url), make_attempt())
        async with asyncio.timeout(5):
            await ended.wait()
    assert result == {"status_code": 200, "body": "x" * BODY_LIMIT_BYTES, "body_truncated": True}


async def test_a_body_of_just_the_limit_is_whole(handler: HttpHandler) -> None:
    async with serving(answering(body=b"x" * BODY_LIMIT_BYTES)) as url:
        result = await handler.run(HttpTarget("GET", url), make_attempt())
    assert result == {"status_code": 200, "body": "x" * BODY_LIMIT_BYTES}


async def test_a_compression_bomb_does_not_unfold(handler: HttpHandler) -> None:
    bomb = gzip.compress(bytes(200 * 1024**2))
    async with serving(answering(body=bomb, headers={"Content-Encoding": "gzip"})) as url:
        tracemalloc.start()
        try:
            result = await handler.run(HttpTarget("GET", url), make_attempt())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert result["body_truncated"] is True
    assert result["body"] == "\0" * BODY_LIMIT_BYTES
    assert peak < 20 * 1024**2


@pytest.mark.parametrize(
    ("status", "headers", "category", "retry_after"),
    [
        (301, {"Location": "/elsewhere"}, Category.CONFIGURATION_ERROR, None),
        (304, {}, Category.CONFIGURATION_ERROR, None),
        (400, {}, Category.CONFIGURATION_ERROR, None),
        (401, {}, Category.CONFIGURATION_ERROR, None),
        (404, {}, Category.CONFIGURATION_ERROR, None),
        (408, {}, Category.NETWORK, None),
        (409, {}, Category.UNKNOWN, None),
        (422, {}, Category.CONFIGURATION_ERROR, None),
        (425, {}, Category.NETWORK, None),
        (429, {}, Category.RATE_LIMITING, None),
        (429, {"Retry-After": "120"}, Category.RATE_LIMITING, 120.0),
        (500, {}, Category.UNKNOWN, None),
        (502, {}, Category.NETWORK, None),
        (503, {}, Category.NETWORK, None),
        (503, {"Retry-After": "0"}, Category.RATE_LIMITING, 0.0),
        (503, {"Retry-After": "soon"}, Category.NETWORK, None),
        (504, {}, Category.NETWORK, None),
        (507, {}, Category.RESOURCE_EXHAUSTION, None),
    ],
)
async def test_answers_other_than_2xx_are_classified(
    handler: HttpHandler, status: int, headers: dict[str, str], category: Category, retry_after: float | None
) -> None:
    async with serving(answering(status=status, headers=headers)) as url:
        failure = await failure_of(handler, f"{url}/run?token=secret")
    assert isinstance(failure, HttpStatusError)
    assert (failure.http_status, failure.category, failure.retry_after_seconds) == (
        status,
        category,
        retry_after,
    )
    assert str(failure).startswith(f"POST {url}/run answered {status}")
    assert "secret" not in str(failure)


async def test_redirects_are_not_followed_and_the_message_says_so(handler: HttpHandler) -> None:
    recorder = Recorder()

    async def answer(request: web.Request) -> web.StreamResponse:
        return (
            await recorder.answer(request)
            if request.path == "/new"
            else web.Response(status=307, headers={"Location": "/new"})
        )

    async with serving(answer) as url:
        failure = await failure_of(handler, f"{url}/old")
    assert "redirects are not followed" in str(failure)
    assert recorder.requests == []


async def test_the_beginning_of_a_failures_body_is_an_excerpt_and_a_log_line(handler: HttpHandler) -> None:
    attempt = make_attempt()
    async with serving(answering(status=500, body=b"out of \0 disk \xff" + b"x" * 100_000)) as url:
        with pytest.raises(HttpStatusError) as caught:
            await handler.run(HttpTarget("POST", url), attempt)
    assert caught.value.excerpt.startswith("out of \u2400 disk \ufffdxxx")
    assert len(caught.value.excerpt) == EXCERPT_CHARACTERS
    assert "xxx" not in str(caught.value)
    [line] = attempt.log.drain()
    assert (line.level, line.message) == ("WARNING", f"POST {url} answered 500: {caught.value.excerpt}")


async def test_a_failures_body_that_never_ends_does_not_hold_up_its_status(
    handler: HttpHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "EXCERPT_SECONDS", 0.05)
    released = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        await response.write(b"beginning")
        await released.wait()
        return response

    async with serving(answer) as url:
        failure = await failure_of(handler, url)
        released.set()
    assert failure.http_status == 500


NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": " 7 "}, 7.0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "1.5"}, None),
        ({"Retry-After": "9" * 400}, None),
        ({"Retry-After": "٣"}, None),
        ({"Retry-After": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"Retry-After": format_datetime(NOW - timedelta(days=1), usegmt=True)}, 0.0),
        ({"Retry-After": "Fri, 31 Dec 99999999 23:59:59 GMT"}, None),
        (
            {
                "Retry-After": format_datetime(NOW + timedelta(hours=2), usegmt=True),
                "Date": format_datetime(NOW + timedelta(hours=1), usegmt=True),
            },
            3600.0,
        ),
    ],
)
def test_retry_after_is_seconds_or_a_date_by_the_targets_own_clock(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_seconds(headers, now=NOW) == seconds


async def test_a_closed_port_is_a_network_failure(handler: HttpHandler, unused_tcp_port: int) -> None:
    failure = await failure_of(handler, f"http://127.0.0.1:{unused_tcp_port}/")
    assert isinstance(failure, HttpConnectionError)
    assert failure.category is Category.NETWORK
    assert "Connection refused" in str(failure)


@pytest.mark.parametrize(
    ("octets", "category", "words"),
    [
        (b"", Category.NETWORK, "closed the connection"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", Category.UNKNOWN, "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this", Category.NETWORK, "broke off"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\n\r\nnope",
            Category.NETWORK,
            "broke off",
        ),
    ],
)
async def test_answers_that_are_none_are_failures(
    handler: HttpHandler, octets: bytes, category: Category, words: str
) -> None:
    async with saying(octets) as url:
        failure = await failure_of(handler, url)
    assert isinstance(failure, HttpConnectionError)
    assert failure.category is category
    assert words in str(failure)


async def test_a_host_name_that_does_not_resolve_is_a_network_failure(handler: HttpHandler) -> None:
    failure = await failure_of(handler, "http://no-such-host.invalid/")
    assert failure.category is Category.NETWORK
    assert "cannot be resolved" in str(failure)


@pytest.mark.parametrize("url", [f"http://{'a' * 70}.invalid/", "http://127.1:9/", "http://2130706433/"])
async def test_hosts_that_no_look_up_can_take_are_refused(handler: HttpHandler, url: str) -> None:
    failure = await failure_of(handler, url)
    assert isinstance(failure, HttpTargetRefused)
    assert failure.category is Category.CONFIGURATION_ERROR


async def test_plain_http_where_tls_was_expected_is_a_network_failure(handler: HttpHandler) -> None:
    async with serving(answering()) as url:
        failure = await failure_of(handler, url.replace("http:", "https:"))
    assert failure.category is Category.NETWORK
    assert "TLS" in str(failure)


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    """A server's TLS context with a certificate that no authority has signed."""
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("makes its certificate with openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    subprocess.run([*make.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_never_retried(
    handler: HttpHandler, self_signed: ssl.SSLContext
) -> None:
    server = TestServer(web.Application(), scheme="https")
    await server.start_server(ssl=self_signed)
    try:
        failure = await failure_of(handler, f"https://127.0.0.1:{server.port}/")
    finally:
        await server.close()
    assert failure.category is Category.CONFIGURATION_ERROR
    assert "certificate" in str(failure)


async def test_the_callers_timeout_ends_a_request_and_the_session_goes_on(handler: HttpHandler) -> None:
    hanging = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/hang":
            hanging.set()
            await asyncio.Event().wait()
        return web.Response(text="fine")

    async with serving(answer) as url:
        work = asyncio.create_task(handler.run(HttpTarget("POST", f"{url}/hang"), make_attempt()))
        await hanging.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        result = await handler.run(HttpTarget("POST", f"{url}/go"), make_attempt())
    assert result["body"] == "fine"


async def test_cookies_are_not_kept_between_executions(handler: HttpHandler) -> None:
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Cookie"))
        return web.Response(headers={"Set-Cookie": "session=1; Path=/"})

    async with serving(answer) as url:
        for _ in range(2):
            await handler.run(HttpTarget("GET", url.replace("127.0.0.1", "localhost")), make_attempt())
    assert seen == [None, None]


async def test_more_than_a_hundred_requests_run_at_once(handler: HttpHandler) -> None:
    all_there = asyncio.Barrier(150)

    async def answer(_: web.Request) -> web.Response:
        await all_there.wait()
        return web.Response()

    async with serving(answer) as url, asyncio.timeout(10):
        target = HttpTarget("POST", url)
        results = await asyncio.gather(*(handler.run(target, make_attempt()) for _ in range(150)))
    assert len(results) == 150


async def test_parse_refuses_private_hosts_only_where_they_are_not_allowed(handler: HttpHandler) -> None:
    assert handler.parse("POST http://127.0.0.1:9000/x") == HttpTarget("POST", "http://127.0.0.1:9000/x")
    strict = HttpHandler(allow_private_targets=False)
    try:
        with pytest.raises(InvalidInput):
            strict.parse("POST http://127.0.0.1:9000/x")
    finally:
        await strict.close()
