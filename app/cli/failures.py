"""Exit codes, and what people are told when something fails."""

from collections.abc import Iterator
from enum import IntEnum

from app.client.errors import ApiError, ClientError, TimedOut, Unreachable


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    AUTHENTICATION = 4
    CONFLICT = 5
    TIMED_OUT = 6
    UNREACHABLE = 7
    INTERRUPTED = 130


_BY_STATUS = {
    400: Exit.USAGE,
    401: Exit.AUTHENTICATION,
    403: Exit.AUTHENTICATION,
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    412: Exit.CONFLICT,
    413: Exit.USAGE,
    415: Exit.USAGE,
    422: Exit.USAGE,
    503: Exit.UNREACHABLE,
}

_REMEDIES = {
    "unauthorized": "name a file with your API key: --token-file FILE, or ONTHEDOT_TOKEN_FILE",
    "forbidden": "use the key of a user whose role allows it: `onthedot user list` shows the roles",
    "unknown_task": "`onthedot task list` shows the tasks there are, `onthedot task create` makes one",
    "unknown_queue": "`onthedot queue list` shows the queues there are",
    "unknown_user": "`onthedot user list` shows the users there are",
    "precondition_failed": "read it anew, and repeat the change with the version that you saw",
    "database_unavailable": "`onthedot status` shows when the server can work again",
}
"""What to try next, by the code of a problem."""


def exit_code(error: ClientError) -> Exit:
    """Return the exit code of a failed request."""
    match error:
        case ApiError(problem=problem):
            return _BY_STATUS.get(problem.status, Exit.FAILED)
        case Unreachable():
            return Exit.UNREACHABLE
        case TimedOut():
            return Exit.TIMED_OUT
        case _:
            return Exit.FAILED


def explanation(error: ClientError, *, noun: str) -> Iterator[str]:
    """Yield what to tell of a failed request, line by line, the remedy last. `noun` is the command's: `job`."""
    match error:
        case ApiError(problem=problem):
            code = f" ({problem.code})" if problem.code else ""
            yield f"error: {problem.title}{code}"
            details = [found.detail for found in problem.errors] or [problem.detail]
            yield from (f"  {detail}" for detail in details if detail)
            yield from (f"  at {found.pointer}" for found in problem.errors if found.pointer)
            if problem.request_id:
                yield f"  request id: {problem.request_id}"
            if remedy := _remedy(problem.code, noun):
                yield f"try: {remedy}"
        case Unreachable():
            yield f"error: nobody answers at {error}"
            yield "try: start a server with `onthedot serve`, or name the one to talk to: --url, or ONTHEDOT_URL"
        case _:
            yield f"error: {error}"
            yield "try: `onthedot status` shows whether the server can work; a change may have been made"


def _remedy(code: str, noun: str) -> str | None:
    if code == "not_found" and noun:
        return f"`onthedot {noun} list` shows what there is"
    return _REMEDIES.get(code)
