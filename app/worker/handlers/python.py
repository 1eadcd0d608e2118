"""Functions registered with `@task`: `async def` in the event loop, `def` in a thread."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from app.tasks import Context, Handler
from app.worker.attempt import Attempt


class PythonHandler:
    """Calls registered functions. `threads` must offer more threads than executions run at once: a function
    that ignores its timeout keeps its thread, and must not keep somebody else's."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    def bind(self, function: Handler) -> Callable[[Attempt], Awaitable[object]]:
        """Return what runs this function for an attempt, with its output captured."""
        if inspect.iscoroutinefunction(function):
            return lambda attempt: self._await(function, attempt)
        return lambda attempt: self._thread(function, attempt)

    async def _await(self, function: Callable[[Context], Awaitable[object]], attempt: Attempt) -> object:
        with attempt.log.capturing():
            return await function(attempt.context)

    async def _thread(self, function: Handler, attempt: Attempt) -> object:
        with attempt.log.capturing():
            here = copy_context()
        outcome = asyncio.get_running_loop().run_in_executor(
            self._threads, here.run, _call, function, attempt.context
        )
        value, error = await outcome
        if error is not None:
            raise error
        return value


def _call(function: Handler, context: Context) -> tuple[Any, BaseException | None]:
    """Return the value or the error as data: a StopIteration raised into a future would hang it."""
    try:
        return function(context), None
    except BaseException as error:  # noqa: BLE001 - SystemExit in a thread is a failure like any other
        return None, error
