"""A token in every form: what a page may send, only a page of the same session can know.

It is the second lock beside `same_origin`, which takes the browser's word. The token is derived from the session's
secret, which no script can read and of which the server keeps only a hash: nothing is stored, nothing expires apart
from the session, and the token tells nothing about the secret.
"""

import hashlib
import hmac
from typing import Any

from litestar.connection import ASGIConnection, Request
from litestar.handlers import BaseRouteHandler

from app.domain.errors import Forbidden
from app.ui.sessions import COOKIE_NAME

FIELD = "csrf"
HEADER = "X-CSRF-Token"
"""What requests by script carry instead of the field."""
EXEMPT = "no_csrf"
"""The `opt` of handlers that nobody is logged in for."""

_PURPOSE = b"onthedot: a form of this session"
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


def csrf_token(session: str) -> str:
    """Return the token of a session."""
    return hmac.new(session.encode("utf-8", "surrogateescape"), _PURPOSE, hashlib.sha256).hexdigest()


async def csrf_guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Let a request that changes something pass only with its session's token. Raises `Forbidden`.

    Without a session cookie there is nothing to protect: who needs one asks for the principal and is refused.
    """
    session = connection.cookies.get(COOKIE_NAME)
    if not isinstance(connection, Request) or connection.method in _SAFE_METHODS:
        return
    if session is None or handler.opt.get(EXEMPT):
        return
    sent = connection.headers.get(HEADER) or (await connection.form()).get(FIELD)
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), csrf_token(session).encode()):
        raise Forbidden(
            "this form belongs to another session, or is incomplete; load the page anew and send it again"
        )
