"""The threads of `def` handlers, and what becomes of those that ignore their timeout."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from app.worker.attempt import STOP_GRACE_SECONDS

T = TypeVar("T")

STUCK_SHARE = 0.1
"""Of the executions that a worker runs at once. A thread cannot be killed, its process can; but that interrupts what
runs beside it. With a tenth, what stuck threads hold stays small against what the worker is sized for, and a function
that hangs now and then costs a restart a day rather than one an hour."""
SPARE_THREADS = 1000
"""Beyond those for the executions: for functions that go on after their attempt has ended, until they are found stuck
and the process is replaced. A slot that is free must find a thread."""


class TaskThreads:
    """Runs functions in threads. One that goes on after its attempt was given up is stuck: it keeps its thread."""

    def __init__(self, concurrency: int) -> None:
        self._threads = ThreadPoolExecutor(concurrency + SPARE_THREADS, thread_name_prefix="task")
        self._most_stuck = math.ceil(concurrency * STUCK_SHARE)
        self._stuck: set[Future[Any]] = set()
        self._when_too_many: Callable[[int], object] = lambda _number: None

    def when_too_many(self, act: Callable[[int], object]) -> None:
        """Have this called, with their number, whenever another one is stuck and there are too many."""
        self._when_too_many = act

    async def run(self, call: Callable[[], T]) -> T:
        """Return what `call` returns, called in a thread. If this is cancelled the thread goes on."""
        work = self._threads.submit(call)
        try:
            return await asyncio.wrap_future(work)
        finally:
            if not work.done():
                asyncio.get_running_loop().call_later(STOP_GRACE_SECONDS, self._look_at, work)

    def close(self) -> None:
        """Start nothing more; wait for nobody."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _look_at(self, work: Future[Any]) -> None:
        self._stuck.add(work)
        work.add_done_callback(self._stuck.discard)  # at once, if it has stopped meanwhile
        if len(self._stuck) >= self._most_stuck:
            self._when_too_many(len(self._stuck))
