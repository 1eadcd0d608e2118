"""One tree of errors. A message is for the person who reads it; how it becomes an HTTP status is the API's affair."""

import msgspec


class FieldError(msgspec.Struct, frozen=True):
    """One thing wrong in an input: where (a JSON pointer), a stable code, and what to do about it."""

    pointer: str
    code: str
    detail: str


class OnthedotError(Exception):
    """Anything that onthedot refuses or cannot do. `code` is stable; `detail` is a sentence."""

    code = "error"

    def __init__(self, detail: str | None = None) -> None:
        self.detail = detail or (self.__doc__ or "").strip()
        super().__init__(self.detail)


class InvalidInput(OnthedotError):
    """The input cannot be accepted. Nothing was stored."""

    code = "invalid_input"

    def __init__(
        self,
        detail: str,
        *,
        pointer: str = "",
        code: str | None = None,
        errors: tuple[FieldError, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.code = code or type(self).code
        self.errors = errors or (FieldError(pointer, self.code, detail),)

    @property
    def pointer(self) -> str:
        """Return the JSON pointer of the first thing that is wrong."""
        return self.errors[0].pointer

    def within(self, prefix: str) -> "InvalidInput":
        """Return the same error seen from further outside: `/expression` within `/schedule`."""
        moved = tuple(FieldError(prefix + e.pointer, e.code, e.detail) for e in self.errors)
        return type(self)(self.detail, code=self.code, errors=moved)


class InvalidBody(InvalidInput):
    """The body is not JSON that we can keep exactly."""

    code = "invalid_body"


class InvalidCron(InvalidInput):
    """The cron expression cannot be read."""

    code = "invalid_cron"


class InvalidTimezone(InvalidInput):
    """There is no such time zone."""

    code = "invalid_timezone"


class InvalidSchedule(InvalidInput):
    """The schedule does not say when to run."""

    code = "invalid_schedule"


class NeverFires(InvalidInput):
    """The schedule matches no instant."""

    code = "never_fires"


class InvalidParameters(InvalidInput):
    """The parameters do not satisfy the task's `parameter_schema`."""

    code = "invalid_parameters"


class UnknownTask(InvalidInput):
    """No task has this id."""

    code = "unknown_task"


class InvalidCursor(InvalidInput):
    """The cursor is not one of ours, or belongs to another list."""

    code = "invalid_cursor"


class Unauthorized(OnthedotError):
    """No valid API key was given."""

    code = "unauthorized"


class Forbidden(OnthedotError):
    """The key may not do this."""

    code = "forbidden"


class NotFound(OnthedotError):
    """There is no such thing, or you may not see it."""

    code = "not_found"


class Conflict(OnthedotError):
    """The state of the thing does not allow this now."""

    code = "conflict"


class IdempotencyMismatch(OnthedotError):
    """The Idempotency-Key was used for another request."""

    code = "idempotency_mismatch"


class RequestUnderway(OnthedotError):
    """A request under the same Idempotency-Key is still being served; send this one again in a moment."""

    code = "request_underway"


class PreconditionFailed(OnthedotError):
    """Somebody changed it since you read it."""

    code = "precondition_failed"


class Unavailable(OnthedotError):
    """The database cannot be reached now; try again shortly."""

    code = "database_unavailable"
