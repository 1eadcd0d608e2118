"""No other site may make a browser act here in its user's name.

Instead of a token in every form, the browser's own word is taken: `Sec-Fetch-Site`, or where it is not sent (plain
HTTP that is not loopback) `Origin`. Every browser since 2020 sends one of the two with a POST and no page can set
them. A request with neither comes from no browser, so it carries nobody's cookie but its sender's. `SameSite=Lax`
of the session cookie is the second lock; alone it would let in neighbours on other ports of the same host.
Reasoning: https://words.filippo.io/csrf/, which is also Go's `http.CrossOriginProtection`.
"""

from typing import Any
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection, Request
from litestar.handlers import BaseRouteHandler

from app.domain.errors import Forbidden

_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_OWN_SITES = {"same-origin", "none"}
"""`none`: the user's own doing, such as a reload of a form that was sent."""


def same_origin(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
    """Let a request that changes something pass only if a page of ours sent it. Raises `Forbidden`."""
    if isinstance(connection, Request) and connection.method in _SAFE_METHODS:
        return
    site, origin = connection.headers.get("sec-fetch-site"), connection.headers.get("origin")
    host = connection.headers.get("host", "")
    if site in _OWN_SITES if site else origin is None or _host_of(origin) == host.lower():
        return
    raise Forbidden("this form was sent from a page of another site; open the page here and send it again")


def _host_of(origin: str) -> str:
    """Return host and port of an origin, as a `Host` header has them; empty for `null` and for garbage."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
