"""From errors to problem documents. Whatever happens, nobody sees a stack trace."""

import logging
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import ExceptionHandlersMap

from app.api.idempotency import replayed
from app.api.problems import CODES, MEDIA_TYPE, Problem, problem
from app.db.errors import is_bad_value, is_unavailable
from app.domain.errors import FieldError, InvalidInput, OnthedotError
from app.domain.hourly_quota import QuotaExceeded
from app.domain.idempotency import Repeated
from app.request_ids import request_id_of

log = logging.getLogger(__name__)

AnyRequest = Request[Any, Any, Any]
RETRY_AFTER_SECONDS = "2"

_DETAILS = {
    404: "there is nothing at this address; /schema describes those there are",
    405: "this address does not take the method; the header Allow lists those it takes",
    413: "the body is too large: a job or a task may have 1 MiB, a batch 16 MiB",
}
"""What the framework has no helpful words for."""


def on_own_error(request: AnyRequest, error: OnthedotError) -> Response[Problem]:
    """Answer an error that we raised ourselves."""
    errors = error.errors if isinstance(error, InvalidInput) else ()
    document = problem(error.code, error.detail, request_id=request_id_of(request), errors=errors)
    after = str(error.retry_after_seconds) if isinstance(error, QuotaExceeded) else None
    return _answer(document, headers={"Retry-After": after} if after else None)


def on_http_error(request: AnyRequest, error: HTTPException) -> Response[Problem]:
    """Answer an error that the framework raised: no such address, a parameter that does not fit, a body too large."""
    errors = _parameter_errors(error) if isinstance(error, ValidationException) else ()
    code = CODES.get(error.status_code, "invalid_input" if error.status_code < 500 else "internal_error")
    code = errors[0].code if errors else code
    detail = "; ".join(e.detail for e in errors) or _DETAILS.get(error.status_code, str(error.detail))
    return _answer(
        problem(code, detail, request_id=request_id_of(request), errors=errors), headers=error.headers
    )


def on_any_error(request: AnyRequest, error: Exception) -> Response[Problem]:
    """Answer the rest: a database that is away, a value that it refused, and what is our fault."""
    request_id = request_id_of(request)
    if is_unavailable(error):
        log.warning("database unavailable", extra={"event": "database_unavailable", "reason": repr(error)})
        detail = (
            "The database cannot be reached now, or does not answer in time. What was to be changed may have been "
            "changed or not: sent again under the same Idempotency-Key it is changed once."
        )
        return _answer(problem("database_unavailable", detail, request_id=request_id))
    if is_bad_value(error):
        return _answer(problem("invalid_input", "A value cannot be stored as text", request_id=request_id))
    log.error("request failed", extra={"event": "request_failed", "request_id": request_id}, exc_info=error)
    detail = "The request could not be served. The server's log has more under the request id."
    return _answer(problem("internal_error", detail, request_id=request_id))


def on_repeat(_: AnyRequest, repeated: Repeated) -> Response[bytes]:
    """Answer a request that was carried out before."""
    return replayed(repeated.answer)


def on_late_error(request: AnyRequest, error: Exception) -> Response[Any]:
    """Answer an error that came when the request had an answer already, which nobody has seen."""
    match error:
        case Repeated():
            return on_repeat(request, error)
        case OnthedotError():
            return on_own_error(request, error)
        case _:
            return on_any_error(request, error)


EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    OnthedotError: on_own_error,
    Repeated: on_repeat,
    HTTPException: on_http_error,
    Exception: on_any_error,
}


def _answer(document: Problem, *, headers: dict[str, str] | None = None) -> Response[Problem]:
    found = {"X-Request-Id": document.request_id} | (headers or {})
    if document.status == 401:
        found["WWW-Authenticate"] = "Bearer"
    if document.status == 503 or document.code == "request_underway":
        found["Retry-After"] = RETRY_AFTER_SECONDS
    return Response(document, status_code=document.status, media_type=MEDIA_TYPE, headers=found)


def _parameter_errors(error: ValidationException) -> tuple[FieldError, ...]:
    """Say which query, path or header parameter does not fit, or that there is no body."""
    return tuple(map(_parameter_error, error.extra if isinstance(error.extra, list) else []))


def _parameter_error(extra: dict[str, Any]) -> FieldError:
    if extra.get("source") == "body":  # of a body that is there we find the flaws ourselves
        return FieldError("", "invalid_body", "the body is empty; send a JSON document")
    name = str(extra.get("key", ""))
    return FieldError(f"/{name}", "invalid_input", f"{name}: {extra.get('message', '')}")
