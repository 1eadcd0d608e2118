"""Functions registered with `@task`: `async def` in the event loop, `def` in a thread."""

import inspect
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from typing import Any

from app.tasks import Context, Handler
from app.worker.attempt import Attempt
from app.worker.handlers.threads import TaskThreads


class PythonHandler:
    """Calls registered functions."""

    def __init__(self, threads: TaskThreads) -> None:
        self.threads = threads

    def bind(self, function: Handler) -> Callable[[Attempt], Awaitable[object]]:
        """Return what runs this function for an attempt, with its output captured."""
        if inspect.iscoroutinefunction(function):
            return lambda attempt: self._await(function, attempt)
        return lambda attempt: self._thread(function, attempt)

    async def _await(self, function: Callable[[Context], Awaitable[object]], attempt: Attempt) -> object:
        with attempt.log.capturing():
            return await function(attempt.context)

    async def _thread(self, function: Handler, attempt: Attempt) -> object:
        attempt.in_thread = True
        with attempt.log.capturing():
            here = copy_context()
        value, error = await self.threads.run(partial(here.run, _call, function, attempt.context))
        if error is not None:
            raise error
        return value


def _call(function: Handler, context: Context) -> tuple[Any, BaseException | None]:
    """Return the value or the error as data: a StopIteration raised into a future would hang it."""
    try:
        return function(context), None
    except BaseException as error:  # noqa: BLE001 - SystemExit in a thread is a failure like any other
        return None, error
