"""An answer begins in time or is given up, and what takes long on purpose is not hurried."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
from litestar import Litestar, Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.response import Stream

from app.answer_limit import AnswerLimit, waiting_on_purpose

SECONDS = 0.1
LONGER_SECONDS = 0.3


async def answer_of(handler: HTTPRouteHandler, method: str = "GET", **options: Any) -> httpx.Response:
    """Return what an application of one route answers."""
    app = Litestar(
        [handler], middleware=[AnswerLimit(seconds=SECONDS)], exception_handlers={TimeoutError: too_late}
    )
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # the same protocol in other words
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as http:
        return await http.request(method, "/", **options)


def too_late(_request: Request[Any, Any, Any], _error: Exception) -> Response[str]:
    """Answer what was given up."""
    return Response("too late", status_code=503)


async def test_what_does_not_come_is_given_up() -> None:
    given_up = asyncio.Event()

    @get("/")
    async def handler() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        return ""

    assert (await answer_of(handler)).status_code == 503
    assert given_up.is_set()


async def test_who_waits_on_purpose_may_wait_and_is_limited_afterwards() -> None:
    waited = []

    @get("/")
    async def handler() -> str:
        with waiting_on_purpose():
            await passed(LONGER_SECONDS)
        waited.append(True)
        await asyncio.Event().wait()
        return ""

    assert (await answer_of(handler)).status_code == 503
    assert waited


async def test_a_body_that_is_sent_slowly_is_not_late() -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b'"a'
        await passed(LONGER_SECONDS)
        yield b'b"'

    @post("/")
    async def handler(request: Request[Any, Any, Any]) -> bytes:
        return await request.body()

    answer = await answer_of(handler, "POST", content=slow())

    assert answer.status_code == 201, answer.text
    assert answer.content == b'"ab"'


async def test_a_stream_has_no_end() -> None:
    async def stream() -> AsyncIterator[str]:
        yield "first"
        await passed(LONGER_SECONDS)
        yield " last"

    @get("/")
    async def handler() -> Stream:
        return Stream(stream())

    assert (await answer_of(handler)).text == "first last"


async def passed(seconds: float) -> None:
    """Wait for as long as the limit would be over."""
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, event.set)
    await event.wait()
