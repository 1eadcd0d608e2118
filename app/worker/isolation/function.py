"""A registered function in a process of its own, and its talk with the worker."""

import asyncio
import inspect
import io
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from itertools import count
from typing import Any, NoReturn

import msgspec

from app.domain.effects import check_key, effect_json
from app.domain.failures import ErrorDescription, RemoteError
from app.domain.recordable import recordable
from app.tasks import Context, Handler
from app.worker.capture import Level, Stream
from app.worker.isolation.limits import limit_memory
from app.worker.isolation.messages import (
    Answer,
    Function,
    Output,
    Raised,
    Recall,
    Record,
    Remember,
    Returned,
    Stop,
    ToWorker,
    framed,
    receive_message,
)
from app.worker.output import LogHandler, let_info_through

LISTENER_STACK_BYTES = 256 * 1024
"""It counts as the function's memory; the usual 8 MiB would be much of a small limit."""


class NoTransaction(Exception):
    """There are no transactions of onthedot in a child process."""

    category = "configuration_error"

    def __init__(self) -> None:
        super().__init__(
            "ctx.transaction does not reach into a child process; use ctx.once, a connection of your own with "
            "onthedot.assert_lease, or leave isolation out"
        )


class Line:
    """A child's end of the line to its worker. Threads may send side by side."""

    def __init__(self, line: socket.socket) -> None:
        self._socket = line
        self._lock = (
            threading.RLock()
        )  # re-entrant: the garbage collector may run somebody's print in our midst

    def send(self, message: ToWorker) -> None:
        """Send; blocks while the worker does not read."""
        data = framed(message)
        with self._lock:
            self._socket.sendall(data)

    def add_line(self, message: str, *, level: Level) -> bool:
        """Send a line of the log."""
        self.send(Record(level, message))
        return True


class _OutputStream(io.RawIOBase):
    """What is printed, on the line: there it keeps its order among what is logged."""

    def __init__(self, line: Line, stream: Stream, number: int) -> None:
        self._line = line
        self._stream = stream
        self._number = number

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        octets = bytes(data)
        self._line.send(Output(self._stream, octets))
        return len(octets)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number  # for those that hand it on to a process


class RemoteEffects:
    """`ctx.once` by way of the worker; its transactions stay there."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._numbers = count(1)
        self._open: dict[int, Future[str | None]] = {}

    def block(self) -> NoReturn:
        """Say that there are no transactions here."""
        raise NoTransaction

    block_in_thread = block

    async def once(self, key: str, action: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it was
        """Do something unless an attempt of this execution has done it, and return what it came to."""
        known = await asyncio.wrap_future(self._recall(key))
        if known is None:
            result = action()
            known = effect_json(key, await result if inspect.isawaitable(result) else result)
            await asyncio.wrap_future(self._remember(key, known))
        return msgspec.json.decode(known)

    def once_in_thread(self, key: str, action: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Do the same without an event loop."""
        known = self._recall(key).result()
        if known is None:
            known = effect_json(key, action())
            self._remember(key, known).result()
        return msgspec.json.decode(known)

    def take(self, answer: Answer) -> None:
        """Hand an answer to who waits for it."""
        waiting = self._open.pop(answer.question)
        if answer.error is None:
            waiting.set_result(answer.known)
        else:
            waiting.set_exception(RemoteError(answer.error))

    def _recall(self, key: str) -> "Future[str | None]":
        check_key(key)
        number = next(self._numbers)
        return self._ask(number, Recall(number, key))

    def _remember(self, key: str, result: str) -> "Future[str | None]":
        number = next(self._numbers)
        return self._ask(number, Remember(number, key, result))

    def _ask(self, number: int, question: ToWorker) -> "Future[str | None]":
        answer = self._open[number] = Future[str | None]()
        self._line.send(question)
        return answer


class FunctionRun:
    """One call of a function: the process is made for it and ends with it."""

    def __init__(self, order: Function, line: socket.socket, function: Handler) -> None:
        self._order = order
        self._socket = line
        self._line = Line(line)
        self._function = function
        self._effects = RemoteEffects(self._line)
        self._context = _context(order, self._effects)
        self._interrupt: Callable[[], object] | None = None

    def run(self) -> NoReturn:
        """Call the function and tell what it came to."""
        self._capture()
        limit_memory(self._order.memory_mb)
        self._listen()
        self._line.send(self._outcome())
        os._exit(
            os.EX_OK
        )  # neither its threads nor what modules have put at the interpreter's end hold it up

    def _outcome(self) -> Returned | Raised:
        try:
            return Returned(recordable(self._call()))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is an outcome
            if isinstance(error, MemoryError) and not error.args:
                error.args = (f"the process has reached its limit of {self._order.memory_mb} MB",)
            return Raised(ErrorDescription.of(error))
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()

    def _call(self) -> object:
        if inspect.iscoroutinefunction(self._function):
            return asyncio.run(self._await(self._function))
        return self._function(self._context)

    async def _await(self, function: Callable[[Context], Awaitable[object]]) -> object:
        work, loop = asyncio.ensure_future(function(self._context)), asyncio.get_running_loop()
        self._interrupt = lambda: loop.call_soon_threadsafe(work.cancel)
        if self._context.cancelled:
            work.cancel()
        return await work

    def _capture(self) -> None:
        """Send what is printed and logged to the worker. What is written past Python goes by the pipes at 1 and 2."""
        for name, number in (("stdout", 1), ("stderr", 2)):
            raw = _OutputStream(self._line, name, number)  # type: ignore[arg-type]  # of a literal
            setattr(
                sys, name, io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "replace", line_buffering=True)
            )
        root = logging.getLogger()
        let_info_through(root)
        root.addHandler(LogHandler(log=lambda: self._line))

    def _listen(self) -> None:
        usual = threading.stack_size(LISTENER_STACK_BYTES)
        threading.Thread(target=self._hear, name="onthedot-line", daemon=True).start()
        threading.stack_size(usual)

    def _hear(self) -> None:
        while (message := receive_message(self._socket)) is not None:
            match message:
                case Stop():
                    self._context.cancel()
                    if self._interrupt is not None:
                        self._interrupt()
                case Answer():
                    self._effects.take(message)
        os.killpg(0, signal.SIGKILL)  # the worker has gone


def _context(order: Function, effects: RemoteEffects) -> Context:
    return Context(
        execution_id=order.execution_id,
        job_id=order.job_id,
        attempt_number=order.attempt_number,
        scheduled_time=order.scheduled_time,
        parameters=msgspec.json.decode(order.parameters),
        upstream=msgspec.json.decode(order.upstream),
        fencing_token=order.fencing_token,
        timeout_seconds=order.timeout_seconds,
        logger=logging.getLogger("onthedot.task"),
        effects=effects,
    )
