"""How long an answer may take, whatever it waits for."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send

ANSWER_SECONDS = 9.0
"""From the end of the request to the beginning of its answer; with what else it costs, 10 s at its client."""


class AnswerLimit(ASGIMiddleware):
    """Gives up a request that gets no answer in time, by a `TimeoutError`.

    Limits of statements do not add up to one of the answer: a request runs several, and waits for connections. What
    it takes to send its body does not count, nor does what it waits for on purpose; a stream has no end.
    """

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Serve a request in time. Raises `TimeoutError`."""
        async with asyncio.timeout(self._seconds) as timeout:
            limit = _Limit(timeout, self._seconds)

            async def receive_untimed() -> "Message":
                with limit.paused():
                    return await receive()  # type: ignore[return-value]

            async def send_and_lift(message: Message) -> None:
                limit.lift()
                await send(message)

            token = _CURRENT.set(limit)
            try:
                await next_app(scope, receive_untimed, send_and_lift)  # type: ignore[arg-type]
            finally:
                _CURRENT.reset(token)


class _Limit:
    def __init__(self, timeout: asyncio.Timeout, seconds: float) -> None:
        self._timeout = timeout
        self._seconds = seconds
        self._lifted = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let time pass; afterwards it begins anew."""
        self._reschedule(None)
        try:
            yield
        finally:
            if not self._lifted:
                self._reschedule(asyncio.get_running_loop().time() + self._seconds)

    def lift(self) -> None:
        """Limit nothing any more: the answer has begun."""
        if not self._lifted:
            self._lifted = True
            self._reschedule(None)

    def _reschedule(self, when: float | None) -> None:
        if not self._timeout.expired():
            self._timeout.reschedule(when)


_CURRENT: ContextVar[_Limit | None] = ContextVar("answer_limit", default=None)


@contextmanager
def waiting_on_purpose() -> Iterator[None]:
    """Let the request that this runs in wait for as long as was asked for."""
    limit = _CURRENT.get()
    if limit is None:
        yield
        return
    with limit.paused():
        yield
