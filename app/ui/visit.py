"""A visit: who looks at a page, when, in which zone; and how pages, parts of pages and actions answer it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from litestar import Response
from litestar.di import NamedDependency
from litestar.response import Redirect, Template

from app.db.clock import DatabaseClock
from app.domain.access import Principal, Role
from app.domain.errors import Forbidden, InvalidTimezone
from app.domain.timezones import Zone, resolve
from app.ui.csrf import csrf_token
from app.ui.flash import Flash, flash_cookie, read_flash, taken_cookie
from app.ui.house import House, Trouble
from app.ui.sessions import COOKIE_NAME, AnyRequest, is_secure, local_path

ZONE_COOKIE = "onthedot_zone"
THEME_COOKIE = "onthedot_theme"
"""Both are written by the page's scripts: what they hold is the viewer's taste, and is checked."""
Theme = Literal["light", "dark", ""]


@dataclass(frozen=True, kw_only=True)
class Visit:
    """What every template knows, as `visit`."""

    request: AnyRequest
    principal: Principal
    now: datetime
    zone: Zone
    theme: Theme
    csrf_token: str
    flash: Flash | None
    trouble: Trouble | None
    """None for a part of a page: it has no bar."""

    @property
    def path(self) -> str:
        """Return the path of the page."""
        return self.request.url.path

    @property
    def address(self) -> str:
        """Return path and query of the page: where its actions come back to."""
        query = self.request.url.query
        return f"{self.path}?{query}" if query else self.path

    @property
    def is_part(self) -> bool:
        """Tell whether a script asks, for a part of the page or a dialog."""
        return wants_part(self.request)

    @property
    def zone_label(self) -> str:
        """Return the zone of all times on the page, with its offset now: `Europe/Berlin +01:00`."""
        offset = f"{self.now.astimezone(self.zone.info):%z}"  # `%:z` needs Python 3.12
        return "UTC" if self.zone.resolved == "UTC" else f"{self.zone.resolved} {offset[:3]}:{offset[3:5]}"

    def may(self, role: str) -> bool:
        """Tell whether the viewer has at least this role: what they may not do is not offered."""
        try:
            self.principal.require(Role(role))
        except Forbidden:
            return False
        return True


async def current_visit(
    request: AnyRequest,
    principal: NamedDependency[Principal],
    clock: NamedDependency[DatabaseClock],
    house: NamedDependency[House],
) -> Visit:
    """Return the visit that a request is."""
    return Visit(
        request=request,
        principal=principal,
        now=clock.now(),
        zone=_zone(request),
        theme=theme_of(request),
        csrf_token=csrf_token(request.cookies[COOKIE_NAME]),
        flash=read_flash(request),
        trouble=None if wants_part(request) else await house.trouble(),
    )


def wants_part(request: AnyRequest) -> bool:
    """Tell htmx from a browser that opens a page. Litestar's helper reads htmx 2's headers; of 4 this is enough."""
    return request.headers.get("hx-request") == "true"


def page(template: str, visit: Visit, *, status_code: int = 200, **context: Any) -> Template:  # noqa: ANN401 - for templates
    """Answer with a page; asked for by a script, with the same template as the content of the dialog."""
    layout = "dialog.html" if visit.is_part else "base.html"
    answer = Template(
        template, context={"visit": visit, "layout": layout, **context}, status_code=status_code
    )
    if visit.flash and not visit.is_part:
        answer.cookies.append(taken_cookie(secure=is_secure(visit.request)))
    return answer


def part(template: str, visit: Visit, **context: Any) -> Template:  # noqa: ANN401 - for templates
    """Answer with a part of a page: a region, or rows, that a script puts in place."""
    return Template(template, context={"visit": visit, **context})


def done(visit: Visit, flash: Flash, *, to: str) -> Response[Any]:
    """Answer an action that has been carried out: back to the page `to`, which says so.

    For a script: the message alone; the page stays where it is and refreshes what it shows.
    """
    if visit.is_part:
        headers = {"HX-Trigger": "done"}
        return Template("toast.html", context={"flash": flash}, headers=headers)
    return _go(visit, flash, to=to)


def moved(visit: Visit, flash: Flash, *, to: str) -> Response[Any]:
    """Answer an action whose result is another page: go there, which says so."""
    if visit.is_part:
        answer: Response[Any] = Response(b"", headers={"HX-Redirect": quote(to, safe="/?=&%#:~")})
        answer.cookies.append(flash_cookie(flash, secure=is_secure(visit.request)))
        return answer
    return _go(visit, flash, to=to)


def _go(visit: Visit, flash: Flash, *, to: str) -> Redirect:
    answer = Redirect(local_path(to), status_code=303)
    answer.cookies.append(flash_cookie(flash, secure=is_secure(visit.request)))
    return answer


def _zone(request: AnyRequest) -> Zone:
    """Return the zone that the address or else the cookie asks for; UTC where that is none."""
    for name in (request.query_params.get("zone"), request.cookies.get(ZONE_COOKIE)):
        if name:
            try:
                return resolve(name)
            except InvalidTimezone:
                continue
    return resolve("UTC")


def theme_of(request: AnyRequest) -> Theme:
    """Return the theme that the viewer has chosen; empty: as their system has it."""
    chosen = request.cookies.get(THEME_COOKIE)
    return "light" if chosen == "light" else "dark" if chosen == "dark" else ""
