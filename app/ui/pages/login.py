"""Logging in, by a one-time link or an API key, and out."""

from typing import Annotated

import msgspec
from litestar import get, head, post
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.params import Body, FromQuery, QueryParameter
from litestar.response import Redirect, Template

from app.db.stores.access import AccessStore
from app.domain.access import new_secret
from app.ui.csrf import EXEMPT
from app.ui.login_limits import LoginLimits
from app.ui.sessions import (
    COOKIE_NAME,
    START_PAGE,
    AnyRequest,
    expired_cookie,
    local_path,
    principal_of,
    session_cookie,
)
from app.ui.visit import theme_of

_WRONG_KEY = "This API key is unknown or has expired."
_WRONG_LINK = "This login link was used before, or it is older than 15 minutes."

Destination = Annotated[str, QueryParameter(name="next")]


class LoginForm(msgspec.Struct, frozen=True):
    """An API key, and the path to go to."""

    key: str
    next: str = START_PAGE


@get("/login", name="login")
async def show_login(
    request: AnyRequest,
    access: NamedDependency[AccessStore],
    login_limits: NamedDependency[LoginLimits],
    token: FromQuery[str | None] = None,
    destination: Destination = START_PAGE,
) -> Redirect | Template:
    """Show the form; with a token, log in by it at once, as people expect of a link that was printed for them.

    A GET that changes something is safe here: the token is a secret, used up by the first request, and what it
    changes is the browser that holds it. Only what fetches ahead of its user must not use it up.
    """
    if token and _is_prefetch(request):
        return Template("login.html", context=_form(request, destination, None), status_code=503)
    if token and (seconds := login_limits.seconds_to_wait(_address(request))):
        return _later(request, destination, seconds)
    if token and (user_id := await access.redeem_login_token(token)):
        return await _log_in(request, access, user_id, destination)
    if await principal_of(request, access):
        return _go(destination)
    if token:
        login_limits.note_failure(_address(request))
    error = _WRONG_LINK if token else None
    return Template(
        "login.html", context=_form(request, destination, error), status_code=401 if error else 200
    )


@head(["/", "/login"])
async def probe() -> None:
    """Answer link checkers, without using a token up."""


@post("/login", opt={EXEMPT: True})
async def log_in(
    request: AnyRequest,
    access: NamedDependency[AccessStore],
    login_limits: NamedDependency[LoginLimits],
    data: Annotated[LoginForm, Body(media_type=RequestEncodingType.URL_ENCODED)],
) -> Redirect | Template:
    """Log in by an API key."""
    if seconds := login_limits.seconds_to_wait(_address(request)):
        return _later(request, data.next, seconds)
    principal = await access.principal_of_key(data.key.strip())
    if principal is None:
        login_limits.note_failure(_address(request))
        return Template("login.html", context=_form(request, data.next, _WRONG_KEY), status_code=401)
    return await _log_in(request, access, principal.user_id, data.next)


@post("/logout")
async def log_out(request: AnyRequest, access: NamedDependency[AccessStore]) -> Redirect:
    """End the session."""
    if session := request.cookies.get(COOKIE_NAME):
        await access.close_session(session)
    return Redirect("/login", status_code=303, cookies=[expired_cookie(request)])


async def _log_in(request: AnyRequest, access: AccessStore, user_id: str, destination: str) -> Redirect:
    session = new_secret()
    await access.open_session(session, user_id=user_id)
    answer = _go(destination)
    answer.cookies.append(session_cookie(request, session))
    return answer


def _go(destination: str) -> Redirect:
    return Redirect(local_path(destination), status_code=303)


def _form(request: AnyRequest, destination: str, error: str | None) -> dict[str, str | None]:
    return {"next": local_path(destination), "error": error, "theme": theme_of(request)}


def _later(request: AnyRequest, destination: str, seconds: int) -> Template:
    error = f"Too many logins have failed. Try again in {seconds} s."
    headers = {"Retry-After": str(seconds)}
    return Template(
        "login.html", context=_form(request, destination, error), status_code=429, headers=headers
    )


def _address(request: AnyRequest) -> str | None:
    return request.client.host if request.client else None


def _is_prefetch(request: AnyRequest) -> bool:
    """Tell a browser that loads a page its user may never open (https://wicg.github.io/nav-speculation)."""
    purpose = request.headers.get("sec-purpose") or request.headers.get("purpose") or ""
    return "prefetch" in purpose
