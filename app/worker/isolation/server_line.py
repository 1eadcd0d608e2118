"""A worker's line to its fork server."""

import asyncio
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from app.worker.isolation.messages import READY_NUMBER, REPORT, REQUEST

START_SECONDS = 60.0
CLOSE_SECONDS = 2.0


class ForkServerFailed(Exception):
    """There is no process that could fork."""

    category = "resource_exhaustion"


class CannotFork(OSError):
    """The operating system gives no process."""

    category = "resource_exhaustion"


class ServerLine:
    """Orders to a fork server, and what it reports. `is_open` until it ends."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._expected: dict[int, asyncio.Future[int]] = {}
        self._hearing = asyncio.create_task(self._hear(), name="fork server")
        self.is_open = True

    @classmethod
    async def start(cls, environment: Mapping[str, str], modules: Sequence[str]) -> "ServerLine":
        """Start a fork server and return when it can fork. Raises `ForkServerFailed`."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the library's way
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "app.worker.isolation.fork_server", str(theirs.fileno()), *modules),
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # whoever kills the worker's group leaves it time to kill its own
            )
        self = cls(process, ours)
        try:
            async with asyncio.timeout(START_SECONDS):
                await self.expect(READY_NUMBER)
        except TimeoutError:
            await self.close()
            raise ForkServerFailed(f"the fork server was not ready after {START_SECONDS:g} s") from None
        return self

    def expect(self, number: int) -> "asyncio.Future[int]":
        """Return what will hold the exit status of the process with this number (-N: killed by signal N).

        It may hold `CannotFork` or `ForkServerFailed` instead.
        """
        status = self._expected[number] = asyncio.get_running_loop().create_future()
        status.add_done_callback(_note_error)
        return status

    def order(self, number: int, order: int, descriptors: Sequence[int] = ()) -> None:
        """Order the fork server to fork, or to send a signal. Raises `ForkServerFailed`."""
        try:
            socket.send_fds(self._control, [REQUEST.pack(number, order)], descriptors)
        except OSError as error:
            raise ForkServerFailed(f"the fork server takes no orders ({error})") from error

    async def close(self) -> None:
        """Hang up: the fork server ends, with all that it has started."""
        self._hearing.cancel()
        await asyncio.wait([self._hearing])
        self._lose_all()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._process.wait()

    async def _hear(self) -> None:
        loop, received = asyncio.get_running_loop(), b""
        with suppress(ConnectionError):
            while data := await loop.sock_recv(self._control, 4096):
                received += data
                while len(received) >= REPORT.size:
                    self._take(*REPORT.unpack(received[: REPORT.size]))
                    received = received[REPORT.size :]
        self._lose_all()

    def _take(self, number: int, status: int, forked: bool) -> None:  # noqa: FBT001 - as it is unpacked
        expected = self._expected.pop(number)
        if forked:
            expected.set_result(status)
        else:
            expected.set_exception(CannotFork(status, "no process could be forked"))

    def _lose_all(self) -> None:
        self.is_open = False
        self._control.close()
        for expected in self._expected.values():
            expected.set_exception(
                ForkServerFailed("the fork server has ended, and the attempt's process with it")
            )
        self._expected.clear()


def _note_error(status: "asyncio.Future[int]") -> None:
    """Look at an error, so that nobody has to: who is cancelled does not wait for the end of its process."""
    if not status.cancelled():
        status.exception()
