"""Errors as pages: the API's problem documents, shown to people."""

from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlencode

from litestar import Request, Response
from litestar.handlers import BaseRouteHandler
from litestar.response import Redirect, Template
from litestar.types import ExceptionHandlersMap

from app.db.errors import took_too_long
from app.ui.flash import Flash
from app.ui.headers import PAGE_HEADERS
from app.ui.visit import theme_of, wants_part

PAGE = "page"
"""The `opt` of handlers that answer with pages."""

AnyRequest = Request[Any, Any, Any]


class ProblemText(Protocol):
    """What a page tells of a problem document (RFC 9457)."""

    @property
    def status(self) -> int: ...
    @property
    def title(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def request_id(self) -> str: ...


ProblemHandler = Callable[[AnyRequest, Any], Response[ProblemText]]


def with_pages(handlers: ExceptionHandlersMap) -> ExceptionHandlersMap:
    """Return the handlers, each answering with a page where one was asked for and with its problem elsewhere.

    `handlers` answer with problem documents; there is one mapping from errors to statuses, and it is theirs.
    """
    return {kind: _page_or(handler) for kind, handler in handlers.items()}


def _page_or(answer: ProblemHandler) -> ProblemHandler:
    def handle(request: AnyRequest, error: Exception) -> Response[Any]:
        problem = answer(request, error)
        if not _wants_page(request):
            return problem
        if problem.status_code == 401 and (request.method in {"GET", "HEAD"} or wants_part(request)):
            return _to_login(request)
        headers = {**problem.headers, **PAGE_HEADERS}
        status = problem.status_code or problem.content.status
        if wants_part(request):
            return _toast(problem.content, status, headers)
        template = "too_slow.html" if took_too_long(error) else "error.html"
        context = {"problem": problem.content, "path": request.url.path, "theme": theme_of(request)}
        return Template(template, context=context, status_code=status, headers=headers)

    return handle


def _wants_page(request: AnyRequest) -> bool:
    """Tell pages from the API by the handler; where no handler was found, by what is asked for."""
    handler: BaseRouteHandler | None = request.scope.get("route_handler")
    if handler is not None:
        return bool(handler.opt.get(PAGE))
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")


def _to_login(request: AnyRequest) -> Response[Any]:
    """Lead to the login and, after it, back to the page: for a script, to the one that the script belongs to."""
    if wants_part(request):
        return Response(b"", headers={"HX-Refresh": "true", **PAGE_HEADERS})
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return Redirect(f"/login?{urlencode({'next': path})}", status_code=303, headers=dict(PAGE_HEADERS))


def _toast(problem: ProblemText, status: int, headers: dict[str, str]) -> Response[Any]:
    """Tell a script's user in a message what went wrong, and leave the page as it is."""
    flash = Flash(f"{problem.title}: {problem.detail}", kind="bad")
    return Template("toast.html", context={"flash": flash}, status_code=status, headers=headers)
