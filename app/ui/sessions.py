"""The session behind the cookie, and where a visitor goes after logging in."""

from typing import Any

import msgspec
from litestar import Request
from litestar.datastructures import Cookie
from litestar.di import NamedDependency

from app.db.stores.access import SESSION_LIFE, AccessStore
from app.domain.access import Principal
from app.domain.errors import Unauthorized
from app.request_ids import request_id_of

COOKIE_NAME = "onthedot_session"
START_PAGE = "/"

AnyRequest = Request[Any, Any, Any]


async def current_principal(request: AnyRequest, access: NamedDependency[AccessStore]) -> Principal:
    """Return who is logged in, with what the audit log is told of the request. Raises `Unauthorized`."""
    principal = await principal_of(request, access)
    if principal is None:
        raise Unauthorized("you are not logged in, or your session has ended")
    client = f"dashboard {request.client.host}" if request.client else "dashboard"
    return msgspec.structs.replace(principal, request_id=request_id_of(request), client=client)


async def principal_of(request: AnyRequest, access: AccessStore) -> Principal | None:
    """Return who is logged in, if anybody is."""
    session = request.cookies.get(COOKIE_NAME)
    return await access.principal_of_session(session) if session else None


def session_cookie(request: AnyRequest, session: str) -> Cookie:
    """Return the cookie that carries a new session for as long as it lives."""
    return _cookie(request, session, max_age_seconds=int(SESSION_LIFE.total_seconds()))


def expired_cookie(request: AnyRequest) -> Cookie:
    """Return the cookie that makes the browser forget its session."""
    return _cookie(request, "", max_age_seconds=0)


def local_path(text: str) -> str:
    """Return `text` if it is a path on this server, else the start page: `next` must lead nowhere else.

    Browsers read `//host` and `/\\host` as another host, and drop tabs and line ends before they look.
    """
    outside = not text.startswith("/") or text.startswith("//") or "\\" in text
    return START_PAGE if outside or not text.isprintable() else text


def is_secure(request: AnyRequest) -> bool:
    """Tell whether the browser came by TLS, here or up to a proxy before us.

    Anybody can write X-Forwarded-Proto. But `Secure` only ever makes a cookie stricter: whoever claims TLS where
    there is none keeps nobody from being logged in but themselves.
    """
    return "https" in {
        request.url.scheme,
        request.headers.get("x-forwarded-proto", "").partition(",")[0].strip(),
    }


def _cookie(request: AnyRequest, value: str, *, max_age_seconds: int) -> Cookie:
    return Cookie(
        COOKIE_NAME,
        value=value,
        path="/",
        httponly=True,
        samesite="lax",
        secure=is_secure(request),
        max_age=max_age_seconds,
    )
