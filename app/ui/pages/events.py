"""`/ui/events`: one stream a page, of what has changed. What it changed to, the page asks for itself."""

import random
from collections.abc import AsyncIterator
from typing import Any

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.response import ServerSentEvent, ServerSentEventMessage

from app.db.stores.access import AccessStore
from app.ui.change_feed import ChangeFeed
from app.ui.sessions import COOKIE_NAME, AnyRequest, current_principal, principal_of

RETRY_MILLISECONDS = (1_000, 4_000)
"""When the server stops, pages come back apart from each other."""


@get("/ui/events", name="events")
async def events(
    request: AnyRequest, access: NamedDependency[AccessStore], change_feed: NamedDependency[ChangeFeed]
) -> Response[Any]:
    """Tell a page what has changed, until it closes, its session ends, or the server stops."""
    await current_principal(request, access)
    if change_feed.is_full(request.cookies[COOKIE_NAME]):
        return Response("too many pages of this session are open", status_code=429, media_type="text/plain")
    return ServerSentEvent(_messages(request, access, change_feed))


async def _messages(
    request: AnyRequest, access: AccessStore, change_feed: ChangeFeed
) -> AsyncIterator[ServerSentEventMessage]:
    retry = random.randint(*RETRY_MILLISECONDS)  # noqa: S311 - jitter, not a secret
    yield ServerSentEventMessage(event="hello", data="", retry=retry)
    async for topics in change_feed.watch(request.cookies[COOKIE_NAME]):
        if not topics and await principal_of(request, access) is None:
            return
        yield ServerSentEventMessage(event="changed" if topics else "beat", data=" ".join(sorted(topics)))
