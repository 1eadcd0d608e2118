"""A server that is about to stop: it serves whoever comes, and lets nobody stay."""

import asyncio

from litestar.datastructures import MutableScopeHeaders
from litestar.types import ASGIApp, Message, Receive, Scope, Send


class Leaving:
    """Closes each connection after its answer once `stopping` is set, so that its client connects elsewhere.

    One that was merely cut could have a request on its way, and nobody would know what came of it.
    """

    def __init__(self, app: ASGIApp, stopping: asyncio.Event) -> None:
        self._app = app
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""

        async def send_and_part(message: Message) -> None:
            is_answer = message["type"] == "http.response.start"
            if is_answer and self._stopping.is_set() and scope["http_version"].startswith("1"):
                MutableScopeHeaders.from_message(message)["Connection"] = "close"
            await send(message)

        await self._app(scope, receive, send_and_part)
