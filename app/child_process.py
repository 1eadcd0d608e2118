"""A process that another one of ours keeps alive."""

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from app.startup import CANNOT_START

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
STEADY_SECONDS = 60.0
"""A process that has lived this long is well: its death is followed by the first pause again."""
FIRST_START_ATTEMPTS = 3
NOT_STARTED = 127


class ChildFailed(RuntimeError):
    """A process could not be brought to work; its own output says why."""


def onthedot_command(process: str, *flags: str) -> list[str]:
    """Return the command line that `ps` shows: the console script of this environment, else `-m app`."""
    script = Path(sys.executable).with_name("onthedot")
    return [sys.executable, *([str(script)] if script.is_file() else ["-m", "app"]), process, *flags]


class ChildProcess:
    """Runs `command` and runs it again whenever it ends, until `stop`; with `until_done` only if it did not end with
    status 0.

    `environment` makes the process's variables from the number of its end of the line (see `app.children`).
    It leads a session of its own, so that a terminal's Ctrl-C does not reach it; its output is ours.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Callable[[int], dict[str, str]],
        until_done: bool = False,
    ) -> None:
        self.name = name
        self._command = command
        self._environment = environment
        self._until_done = until_done
        self._ready = asyncio.Event()
        self._is_ready = False
        self._stopping = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def was_ready(self) -> bool:
        """Whether the process has ever said that it does its work."""
        return self._ready.is_set()

    @property
    def is_ready(self) -> bool:
        """Whether the process has said so since it was last started."""
        return self._is_ready

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone and is not run again."""
        return self._task().done()

    @property
    def failure(self) -> BaseException | None:
        """Why the process was given up; None: it was not."""
        task = self._task()
        return task.exception() if task.done() and not task.cancelled() else None

    def start(self) -> None:
        """Begin to keep the process alive."""
        self._running = asyncio.create_task(self._keep_alive(), name=self.name)

    async def first_ready(self) -> None:
        """Return when the process is ready. Raises `ChildFailed` if its first attempts all ended before."""
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait({ready, self._task()}, return_when=asyncio.FIRST_COMPLETED)
            if self._task().done():
                self._task().result()
        finally:
            ready.cancel()

    def stop(self) -> None:
        """Ask the process to end, and do not run it again; asked a second time it should hurry."""
        self._stopping.set()
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    def kill(self) -> None:
        """End the process by force, with what it has started in its group."""
        self._stopping.set()
        if self._process is not None:
            log.warning(
                "onthedot %s is killed", self.name, extra={"event": "child_killed", "child": self.name}
            )
            _kill_group(self._process.pid)

    async def ended(self) -> None:
        """Return when the process has ended after `stop`, or was given up."""
        await asyncio.wait({self._task()})

    def _task(self) -> asyncio.Task[None]:
        if self._running is None:
            raise RuntimeError(f"onthedot {self.name} was not started")
        return self._running

    async def _keep_alive(self) -> None:
        attempts, pause_seconds = 0, FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            attempts, began = attempts + 1, time.monotonic()
            status = await self._run_once()
            if self._stopping.is_set() or (self._until_done and status == 0):
                return
            hopeless = status == CANNOT_START or attempts >= FIRST_START_ATTEMPTS
            if hopeless and not self.was_ready:
                raise ChildFailed(f"onthedot {self.name} does not start ({_describe(status)})")
            if time.monotonic() - began >= STEADY_SECONDS:
                pause_seconds = FIRST_PAUSE_SECONDS
            self._log_end(status, pause_seconds=pause_seconds)
            await self._pause(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)

    async def _run_once(self) -> int:
        """Start the process and return its exit status when it has ended."""
        try:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)  # noqa: FBT003 - the library's way
            with ours:
                with theirs:
                    process = await asyncio.create_subprocess_exec(
                        *self._command,
                        env=self._environment(theirs.fileno()),
                        pass_fds=[theirs.fileno()],
                        stdin=asyncio.subprocess.DEVNULL,
                        start_new_session=True,
                    )
                return await self._watch(process, line=ours)
        except OSError:  # no memory, no file descriptors, or the program is being replaced
            log.exception("onthedot %s cannot be started", self.name, extra={"event": "child_not_started"})
            return NOT_STARTED

    async def _watch(self, process: asyncio.subprocess.Process, *, line: socket.socket) -> int:
        self._process = process
        if self._stopping.is_set():  # said while the process came to be
            self.stop()
        listener = asyncio.create_task(self._listen(line))
        try:
            return await process.wait()
        finally:
            self._process, self._is_ready = None, False
            listener.cancel()
            await asyncio.wait([listener])
            _kill_group(process.pid)  # what a crashed worker ran must not run on beside its next attempt

    async def _listen(self, line: socket.socket) -> None:
        if await asyncio.get_running_loop().sock_recv(line, 1):
            self._ready.set()
            self._is_ready = True

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    def _log_end(self, status: int, *, pause_seconds: float) -> None:
        log.error(
            "onthedot %s has ended (%s) and is started again in %.1f s",
            self.name,
            _describe(status),
            pause_seconds,
            extra={"event": "child_ended", "child": self.name, "status": status},
        )


def _kill_group(leader_pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS forbids it for a group of zombies
        os.killpg(leader_pid, signal.SIGKILL)


def _describe(status: int) -> str:
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
