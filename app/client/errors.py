"""What can go wrong between a client and the API."""

import msgspec


class FieldProblem(msgspec.Struct, frozen=True):
    """One thing wrong in a request: where (a JSON pointer) and what to do about it."""

    pointer: str = ""
    detail: str = ""


class Problem(msgspec.Struct, frozen=True):
    """A problem document (RFC 9457), as far as a client needs it."""

    status: int
    title: str = "The request failed"
    detail: str = ""
    code: str = ""
    request_id: str = ""
    errors: list[FieldProblem] = []


class ClientError(Exception):
    """Anything that kept a request from succeeding."""


class ApiError(ClientError):
    """The API refused a request; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.title}: {problem.detail}")
        self.problem = problem


class Unreachable(ClientError):
    """Nobody answered at the address."""


class TimedOut(ClientError):
    """The answer did not come in time. Whether a change was made is not known."""
