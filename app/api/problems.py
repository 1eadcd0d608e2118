"""Problem documents (RFC 9457) and their codes: stable, each with a title and what to do about it."""

from http import HTTPStatus

import msgspec

from app.domain.errors import FieldError

MEDIA_TYPE = "application/problem+json"


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong with a request."""

    type: str
    """Address of a page about this code, on this server."""
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: list[FieldError] = []
    """Each thing wrong in the input, with a JSON pointer (a query parameter is `/name`)."""


TITLES: dict[str, tuple[HTTPStatus, str]] = {
    "invalid_body": (HTTPStatus.BAD_REQUEST, "The body is not JSON that we can keep exactly"),
    "invalid_input": (HTTPStatus.BAD_REQUEST, "A value does not fit"),
    "invalid_cron": (HTTPStatus.BAD_REQUEST, "The cron expression is not valid"),
    "invalid_timezone": (HTTPStatus.BAD_REQUEST, "There is no such time zone"),
    "invalid_schedule": (HTTPStatus.BAD_REQUEST, "The schedule does not say when to run"),
    "never_fires": (HTTPStatus.BAD_REQUEST, "The schedule never fires"),
    "invalid_parameters": (HTTPStatus.BAD_REQUEST, "The parameters do not satisfy the task's schema"),
    "invalid_parameter_schema": (HTTPStatus.BAD_REQUEST, "The parameter_schema is not a JSON Schema"),
    "invalid_failure_rule": (HTTPStatus.BAD_REQUEST, "A failure rule means nothing"),
    "invalid_handler": (HTTPStatus.BAD_REQUEST, "The execution_handler cannot run"),
    "unknown_task": (HTTPStatus.BAD_REQUEST, "There is no such task"),
    "duplicate_step": (HTTPStatus.BAD_REQUEST, "Two steps have the same key"),
    "unknown_step": (HTTPStatus.BAD_REQUEST, "There is no such step"),
    "unknown_job": (HTTPStatus.BAD_REQUEST, "There is no such job"),
    "circular_jobs": (HTTPStatus.BAD_REQUEST, "The jobs would wait for each other in a circle"),
    "circular_steps": (HTTPStatus.BAD_REQUEST, "The steps depend on each other in a circle"),
    "unknown_reference": (HTTPStatus.BAD_REQUEST, "A reference leads to what the step cannot know"),
    "unknown_queue": (HTTPStatus.BAD_REQUEST, "There is no such queue"),
    "unknown_user": (HTTPStatus.BAD_REQUEST, "There is no such user"),
    "invalid_cursor": (HTTPStatus.BAD_REQUEST, "The cursor is not one of ours"),
    "cursor_mismatch": (HTTPStatus.BAD_REQUEST, "The cursor belongs to another list"),
    "unauthorized": (HTTPStatus.UNAUTHORIZED, "No valid API key was given"),
    "forbidden": (HTTPStatus.FORBIDDEN, "The key may not do this"),
    "not_found": (HTTPStatus.NOT_FOUND, "There is no such thing"),
    "method_not_allowed": (HTTPStatus.METHOD_NOT_ALLOWED, "This address does not take the method"),
    "conflict": (HTTPStatus.CONFLICT, "Its state does not allow this"),
    "request_underway": (HTTPStatus.CONFLICT, "The same request is still being served"),
    "idempotency_mismatch": (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "The Idempotency-Key belongs to another request",
    ),
    "precondition_failed": (HTTPStatus.PRECONDITION_FAILED, "It was changed since you read it"),
    "quota_exceeded": (HTTPStatus.TOO_MANY_REQUESTS, "The quota of this hour is used up"),
    "payload_too_large": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too large"),
    "unsupported_media_type": (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send JSON"),
    "internal_error": (HTTPStatus.INTERNAL_SERVER_ERROR, "Something is broken on this server"),
    "database_unavailable": (HTTPStatus.SERVICE_UNAVAILABLE, "The database cannot be reached"),
}
"""Every code with its status and title."""

CODES = {
    400: "invalid_input",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    412: "precondition_failed",
    413: "payload_too_large",
    415: "unsupported_media_type",
    422: "idempotency_mismatch",
    429: "quota_exceeded",
    503: "database_unavailable",
}
"""The code of a status where nothing more is known."""


def problem(code: str, detail: str, *, request_id: str, errors: tuple[FieldError, ...] = ()) -> Problem:
    """Make the problem document of a code."""
    status, title = TITLES.get(code, TITLES["invalid_input"])
    return Problem(
        type=f"/problems/{code}",
        title=title,
        status=status.value,
        detail=detail,
        code=code,
        request_id=request_id,
        errors=list(errors),
    )
