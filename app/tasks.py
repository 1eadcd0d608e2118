"""What modules with tasks import: `from app import task, Context`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from types import ModuleType
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, overload
from uuid import UUID

Handler = Callable[["Context"], Any]
F = TypeVar("F", bound=Handler)

Isolation = Literal["process"]
LEAST_MEMORY_MB, MOST_MEMORY_MB = 64, 2**20
"""Less than the least holds no interpreter with anything to do."""
_MARK = "__onthedot_task__"


class DuplicateHandler(ValueError):
    """Two functions are registered under one name."""


class Context:
    """What a handler gets: who it is, what it shall do, and whether it shall stop.

    `fencing_token` grows with every lease of this execution: a system that refuses smaller tokens than the
    largest it has seen is safe from a worker that has lost its lease and does not know it yet.
    `logger` and `print` end up in the execution's log. `upstream` holds, in a workflow, what the steps that this one
    depends on have returned, by their keys: a list where a step maps over one, null where it has not completed.
    """

    __slots__ = (
        "_cancelled",
        "_effects",
        "attempt_number",
        "execution_id",
        "fencing_token",
        "job_id",
        "logger",
        "parameters",
        "scheduled_time",
        "timeout_seconds",
        "upstream",
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
        effects: "Effects",
        upstream: Mapping[str, Any] | None = None,
    ) -> None:
        self.execution_id = execution_id
        self.job_id = job_id
        self.attempt_number = attempt_number
        self.scheduled_time = scheduled_time
        self.parameters = parameters
        self.fencing_token = fencing_token
        self.timeout_seconds = timeout_seconds
        self.logger = logger
        self.upstream: Mapping[str, Any] = upstream or {}
        self._effects = effects
        self._cancelled = False

    def transaction(self) -> Any:  # noqa: ANN401 - see below
        """Return a block in a transaction of onthedot's database that commits with this execution's completion.

        `async with ctx.transaction() as connection:` gives an asyncpg connection, `with` in a `def` handler one whose
        methods need no `await`. What is done there is there if and only if the execution is recorded as completed: no
        crash, and no other worker that has taken over, comes between the two. A block that raises is undone; if the
        handler goes on, what other blocks did still counts. Keep it short: it holds locks and one of
        `ONTHEDOT_TRANSACTION_CONNECTIONS`, up to the handler's end.
        """
        return self._effects.block_in_thread() if _in_thread() else self._effects.block()

    def once(self, key: str, action: Callable[[], Any]) -> Any:  # noqa: ANN401 - what `action` returns
        """Call `action` unless an attempt of this execution has done so under this key; return what it came to.

        In an `async def` handler: `await ctx.once("charge", charge)`; `action` may be `async` there. The result is
        kept as JSON (up to 256 KiB) and returned as read back. Between the effect and its record a crash may come,
        and then it is done again: give who takes the effect `f"{ctx.execution_id}/charge"` as its idempotency key.
        Within `ctx.transaction` the record commits with it. Raises `LeaseLost` where another worker has taken over.
        """
        call = self._effects.once_in_thread if _in_thread() else self._effects.once
        return call(key, action)

    @property
    def cancelled(self) -> bool:
        """True once this execution shall stop: timed out, cancelled, its lease lost, or it is to yield.

        Ask it in long loops.
        """
        return self._cancelled

    def cancel(self) -> None:
        """Ask the handler to stop; called by the worker."""
        self._cancelled = True


class TaskOptions(NamedTuple):
    """How a function is registered."""

    name: str
    isolation: Isolation | None = None
    """None: it runs in the worker itself."""
    memory_mb: int | None = None


class Effects(Protocol):
    """What a worker gives a context to reach the database by."""

    def block(self) -> AbstractAsyncContextManager[Any]:
        """Return a block of the attempt's transaction."""

    def block_in_thread(self) -> AbstractContextManager[Any]:
        """Return the same for a handler's thread."""

    def once(self, key: str, action: Callable[[], Any]) -> Awaitable[Any]:
        """Do something once."""

    def once_in_thread(self, key: str, action: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Do the same in a handler's thread."""


def _in_thread() -> bool:
    """Tell whether the caller runs outside an event loop, as `def` handlers do."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False


@overload
def task(name: F) -> F: ...
@overload
def task(
    name: str | None = None, *, isolation: Isolation | None = None, memory_mb: int | None = None
) -> Callable[[F], F]: ...
def task(
    name: F | str | None = None, *, isolation: Isolation | None = None, memory_mb: int | None = None
) -> F | Callable[[F], F]:
    """Register a function as the handler `python:NAME`; without a name, the function's own.

    `def` runs in a thread, `async def` in the worker's event loop. It gets a `Context`; what it returns is the
    execution's result, what it raises its failure.

    `isolation="process"` runs it in a child process instead, which is killed if it does not heed its timeout and may
    use `memory_mb` (of 2**20 bytes, default 1024) unless the task's `resource_requirements` say otherwise. Raises
    `ValueError` for options that mean nothing.
    """
    options = _checked(TaskOptions("" if callable(name) else name or "", isolation, memory_mb))
    if callable(name):
        return _mark(name, options)
    return lambda function: _mark(function, options)


def options_of(function: Handler) -> "TaskOptions":
    """Return what a function is registered as; of one that is not, what holds where nothing is said."""
    mark = getattr(function, _MARK, None)
    return mark if isinstance(mark, TaskOptions) else TaskOptions("")


def _checked(options: "TaskOptions") -> "TaskOptions":
    if options.isolation not in {None, "process"}:
        raise ValueError(f'@task(isolation={options.isolation!r}): use "process", or leave it out')
    if options.memory_mb is None:
        return options
    if options.isolation is None:
        raise ValueError('@task(memory_mb=…) holds for a process only; add isolation="process"')
    if type(options.memory_mb) is not int or not LEAST_MEMORY_MB <= options.memory_mb <= MOST_MEMORY_MB:
        raise ValueError(
            f"@task(memory_mb={options.memory_mb!r}): use a whole number from {LEAST_MEMORY_MB} to {MOST_MEMORY_MB}"
        )
    return options


def _mark(function: F, options: "TaskOptions") -> F:
    """Note the name on the function itself: registration needs no table that all modules share."""
    named = TaskOptions(options.name or function.__name__, options.isolation, options.memory_mb)
    setattr(function, _MARK, named)
    return function


def handlers_in(modules: Iterable[ModuleType]) -> dict[str, Handler]:
    """Return the registered functions of modules by name. Raises `DuplicateHandler`."""
    found: dict[str, Handler] = {}
    for module in modules:
        for function in vars(module).values():
            mark = getattr(function, _MARK, None) if callable(function) else None
            if not isinstance(mark, TaskOptions):
                continue
            if found.setdefault(mark.name, function) is not function:
                raise DuplicateHandler(
                    f"two functions are registered as python:{mark.name}; rename one of them"
                )
    return found
