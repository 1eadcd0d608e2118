"""What an action has to say, shown by the page that comes after it.

A form is answered with a redirect; the message travels in a cookie that the next page takes away. A browser may
forge its own cookie and thereby tell itself something: it is shown as text, never as HTML.
"""

import base64
from typing import Any, Literal

import msgspec
from litestar import Request
from litestar.datastructures import Cookie

COOKIE_NAME = "onthedot_flash"
LIFE_SECONDS = 60
MOST_CHARACTERS = 600
"""Of a message: a cookie has 4 kB."""

AnyRequest = Request[Any, Any, Any]
Kind = Literal["good", "bad"]


class Flash(msgspec.Struct, frozen=True):
    """A message; `link` leads to what it is about."""

    text: str
    kind: Kind = "good"
    link: str | None = None
    link_text: str | None = None


def flash_cookie(flash: Flash, *, secure: bool) -> Cookie:
    """Return the cookie that carries a message to the next page."""
    short = msgspec.structs.replace(flash, text=flash.text[:MOST_CHARACTERS])
    value = base64.urlsafe_b64encode(msgspec.json.encode(short)).decode().rstrip("=")
    return _cookie(value, secure=secure, max_age=LIFE_SECONDS)


def taken_cookie(*, secure: bool) -> Cookie:
    """Return the cookie that takes a message away."""
    return _cookie("", secure=secure, max_age=0)


def read_flash(request: AnyRequest) -> Flash | None:
    """Return the message that a browser brings; what is none of ours is none."""
    value = request.cookies.get(COOKIE_NAME)
    if not value:
        return None
    try:
        packed = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        flash = msgspec.json.decode(packed, type=Flash)
    except (ValueError, msgspec.MsgspecError):
        return None
    inside = flash.link is None or (flash.link.startswith("/") and not flash.link.startswith(("//", "/\\")))
    return flash if inside else None


def _cookie(value: str, *, secure: bool, max_age: int) -> Cookie:
    return Cookie(
        COOKIE_NAME, value=value, path="/", httponly=True, samesite="lax", secure=secure, max_age=max_age
    )
