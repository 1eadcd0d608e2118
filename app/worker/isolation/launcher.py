"""The worker's side: launching, hearing, stopping and killing the processes of attempts."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import count

from app.worker.attempt import STOP_GRACE_SECONDS
from app.worker.isolation.messages import FORK, READY_NUMBER, ToChild, ToWorker, framed, read_message
from app.worker.isolation.server_line import ForkServerFailed, ServerLine

KILL_AFTER_SECONDS = STOP_GRACE_SECONDS * 0.75
"""How long after it was asked to stop a process is killed; what is left of the grace is for seeing it dead."""
LAST_OUTPUT_SECONDS = 0.25
"""How long after the end of a process its output is waited for. It is there at once, unless a process that has left
its group holds the pipe open."""

Sink = Callable[[bytes], object]


class OutputPipe(asyncio.Protocol):
    """A pipe that a process writes into; what comes goes to a sink."""

    transport: asyncio.ReadTransport

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.at_end = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self._sink(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self.at_end.set_result(None)


class LaunchedProcess:
    """The process of an attempt: its line, its output, its end."""

    def __init__(
        self,
        order: Callable[[int], None],
        status: "asyncio.Future[int]",
        line: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        outputs: Sequence[OutputPipe],
    ) -> None:
        self._order = order
        self._status = status
        self._reader, self._writer = line
        self._outputs = outputs

    def send(self, message: ToChild) -> None:
        """Say something to it."""
        self._writer.write(framed(message))

    async def receive(self) -> ToWorker | None:
        """Return what it says next; None where it says nothing more."""
        return await read_message(self._reader)

    def signal(self, number: int) -> None:
        """Send a signal to its group, unless it has ended."""
        if not self._status.done():
            with suppress(ForkServerFailed):  # then it has ended with it
                self._order(number)

    async def ended(self) -> int:
        """Return its exit status when it has ended and its output has come; -N if signal N has killed it.

        Raises `CannotFork` and `ForkServerFailed`.
        """
        status = await asyncio.shield(self._status)
        await asyncio.wait([output.at_end for output in self._outputs])
        return status

    async def stop(self, ask: Callable[[], object]) -> None:
        """Ask it to end, and kill it if it does not; return when it has ended."""
        ask()
        await asyncio.wait([self._status], timeout=KILL_AFTER_SECONDS)
        self.signal(signal.SIGKILL)
        with suppress(Exception):
            await self.ended()


class Launcher:
    """Launches processes by a fork server, which it starts when it is first needed, and again if it dies.

    `environment` is all of theirs; `modules` are imported once, for functions.
    """

    def __init__(self, *, environment: Mapping[str, str], modules: Sequence[str]) -> None:
        self._environment = environment
        self._modules = modules
        self._numbers = count(READY_NUMBER + 1)
        self._server: ServerLine | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Start the fork server, so that the first attempt need not wait for it. Raises `ForkServerFailed`."""
        await self._running_server()

    async def close(self) -> None:
        """End it, with all that it has launched."""
        if self._server is not None:
            await self._server.close()

    @asynccontextmanager
    async def launched(self, *, stdout: Sink, stderr: Sink) -> AsyncIterator[LaunchedProcess]:
        """Launch a process; what it writes goes to the sinks. At the end of the block it is killed if it still runs.

        Raises `ForkServerFailed`, and `OSError` where there are no file descriptors.
        """
        server, number = await self._running_server(), next(self._numbers)
        async with AsyncExitStack() as ours:
            with ExitStack() as theirs:  # once the process has them, its end alone shall be what closes them
                line, at_line = await _line(ours, theirs)
                out, at_out = await _output(ours, theirs, stdout)
                err, at_err = await _output(ours, theirs, stderr)
                status = server.expect(number)
                server.order(number, FORK, [at_line, at_out, at_err])
            transports = (line[1].transport, out.transport, err.transport)
            status.add_done_callback(partial(_hang_up_soon, transports))
            process = LaunchedProcess(partial(server.order, number), status, line, (out, err))
            try:
                yield process
            finally:
                process.signal(signal.SIGKILL)

    async def _running_server(self) -> ServerLine:
        async with self._starting:
            if self._server is None or not self._server.is_open:
                self._server = await ServerLine.start(self._environment, self._modules)
            return self._server


async def _line(
    ours: AsyncExitStack, theirs: ExitStack
) -> tuple[tuple[asyncio.StreamReader, asyncio.StreamWriter], int]:
    """Open a line; return our end of it, and theirs."""
    end, other_end = socket.socketpair()
    theirs.enter_context(other_end)
    reader, writer = await asyncio.open_unix_connection(sock=end)
    ours.callback(writer.close)
    return (reader, writer), other_end.fileno()


async def _output(ours: AsyncExitStack, theirs: ExitStack, sink: Sink) -> tuple[OutputPipe, int]:
    """Open a pipe into a sink; return it, and the end to write into."""
    read_end, write_end = os.pipe()
    theirs.callback(os.close, write_end)
    pipe = OutputPipe(sink)
    pipe.transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: pipe, os.fdopen(read_end, "rb", buffering=0)
    )
    ours.callback(pipe.transport.close)
    return pipe, write_end


def _hang_up_soon(transports: Sequence[asyncio.BaseTransport], _status: object) -> None:
    loop = asyncio.get_running_loop()
    for transport in transports:
        loop.call_later(LAST_OUTPUT_SECONDS, transport.close)
