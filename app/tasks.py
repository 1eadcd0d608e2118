"""What modules with tasks import: `from app import task, Context`."""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from types import ModuleType
from typing import Any, TypeVar, overload
from uuid import UUID

Handler = Callable[["Context"], Any]
F = TypeVar("F", bound=Handler)

_MARK = "__onthedot_task__"


class DuplicateHandler(ValueError):
    """Two functions are registered under one name."""


class Context:
    """What a handler gets: who it is, what it shall do, and whether it shall stop.

    `fencing_token` grows with every lease of this execution: a system that refuses smaller tokens than the
    largest it has seen is safe from a worker that has lost its lease and does not know it yet.
    `logger` and `print` end up in the execution's log.
    """

    __slots__ = (
        "_cancelled",
        "attempt_number",
        "execution_id",
        "fencing_token",
        "job_id",
        "logger",
        "parameters",
        "scheduled_time",
        "timeout_seconds",
    )

    def __init__(
        self,
        *,
        execution_id: UUID,
        job_id: UUID,
        attempt_number: int,
        scheduled_time: datetime,
        parameters: dict[str, Any],
        fencing_token: int,
        timeout_seconds: float,
        logger: logging.Logger,
    ) -> None:
        self.execution_id = execution_id
        self.job_id = job_id
        self.attempt_number = attempt_number
        self.scheduled_time = scheduled_time
        self.parameters = parameters
        self.fencing_token = fencing_token
        self.timeout_seconds = timeout_seconds
        self.logger = logger
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """True once this execution shall stop: timed out, cancelled, or its lease lost. Ask it in long loops."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the handler to stop; called by the worker."""
        self._cancelled = True


@overload
def task(name: F) -> F: ...
@overload
def task(name: str | None = None) -> Callable[[F], F]: ...
def task(name: F | str | None = None) -> F | Callable[[F], F]:
    """Register a function as the handler `python:NAME`; without a name, the function's own.

    `def` runs in a thread, `async def` in the worker's event loop. It gets a `Context`; what it returns is the
    execution's result, what it raises its failure.
    """
    if callable(name):
        return _mark(name, name.__name__)
    return lambda function: _mark(function, name or function.__name__)


def _mark(function: F, name: str) -> F:
    """Note the name on the function itself: registration needs no table that all modules share."""
    setattr(function, _MARK, name)
    return function


def handlers_in(modules: Iterable[ModuleType]) -> dict[str, Handler]:
    """Return the registered functions of modules by name. Raises `DuplicateHandler`."""
    found: dict[str, Handler] = {}
    for module in modules:
        for function in vars(module).values():
            name = getattr(function, _MARK, None) if callable(function) else None
            if not isinstance(name, str):
                continue
            if found.setdefault(name, function) is not function:
                raise DuplicateHandler(f"two functions are registered as python:{name}; rename one of them")
    return found
