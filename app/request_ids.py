"""An id for every request, in its answer and in the log."""

import secrets
from typing import Any

from litestar.connection import ASGIConnection
from litestar.datastructures import MutableScopeHeaders
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send

_KEY = "onthedot_request_id"


class RequestIds(ASGIMiddleware):
    """Gives each request an id and puts it into the answer's `X-Request-Id`."""

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Serve the request under its id."""
        request_id = secrets.token_hex(8)
        scope["state"][_KEY] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableScopeHeaders.from_message(message)["X-Request-Id"] = request_id
            await send(message)

        await next_app(scope, receive, send_with_id)


def request_id_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the id of a request; one that no route took has not been given any yet."""
    return str(connection.scope["state"].setdefault(_KEY, secrets.token_hex(8)))
