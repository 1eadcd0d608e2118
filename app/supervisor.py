"""The processes of one `onthedot serve`: started together, kept alive, stopped in order."""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from app.child_process import ChildFailed, ChildProcess, onthedot_command
from app.children import MARGIN_SECONDS
from app.settings import Settings, child_environment

log = logging.getLogger(__name__)

START_TIMEOUT_SECONDS = 60.0
API_STOP_SECONDS = 5.0
HURRY_SECONDS = 1.0
"""What is left to the processes after a second signal. With a grace of 20 s and its margin all of it fits into the
30 s that container engines give."""

Command = Callable[[str], Sequence[str]]
"""Gives the command line for a process: `api`, `maintenance` or `worker`."""


def stop_signals() -> list[signal.Signals]:
    """Return the signals that stop `serve`: not SIGHUP under `nohup`, but SIGINT also in a script's background."""
    ignores_hangup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if ignores_hangup else [signal.SIGHUP])]


class Supervisor:
    """Runs the processes that `settings` ask for; they find settings and secrets in their environment."""

    def __init__(self, settings: Settings, *, command: Command = onthedot_command) -> None:
        self._grace_seconds = settings.grace_seconds
        self._children = [
            ChildProcess(name, command(name), environment=partial(_environment, settings))
            for name in _process_names(settings)
        ]
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self, *, on_ready: Callable[[], None]) -> None:
        """Start everything, call `on_ready` when all of it works, and return when a signal has stopped it.

        SIGINT, SIGTERM and SIGHUP stop; a second one hurries. Raises `ChildFailed` if a process cannot be
        brought to work; the others have been stopped by then.
        """
        with self._signals():
            for child in self._children:
                child.start()
            try:
                if await self._become_ready():
                    on_ready()
                    await self._stop.wait()
            finally:
                await self._shut_down()

    async def _become_ready(self) -> bool:
        """Return True when every process is ready, and False when a signal came first."""
        ready = asyncio.create_task(_all_ready(self._children))
        stop = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait(
                {ready, stop}, timeout=START_TIMEOUT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if stop.done():
                return False
            if ready.done():
                ready.result()
                return True
            late = sorted({child.name for child in self._children if not child.was_ready})
            raise ChildFailed(f"not ready after {START_TIMEOUT_SECONDS:g} s: onthedot {', '.join(late)}")
        finally:
            ready.cancel()
            stop.cancel()

    async def _shut_down(self) -> None:
        """Stop the workers and maintenance, and then the API, in which people can watch them finish."""
        api = [child for child in self._children if child.name == "api"]
        rest = [child for child in self._children if child.name != "api"]
        await self._end(rest, patience_seconds=self._grace_seconds + MARGIN_SECONDS)
        await self._end(api, patience_seconds=API_STOP_SECONDS)

    async def _end(self, children: list[ChildProcess], *, patience_seconds: float) -> None:
        """Ask processes to end; when patience is out or a second signal comes, ask again, then force them."""
        for child in children:
            child.stop()
        ended = asyncio.create_task(_all_ended(children))
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait({ended, hurry}, timeout=patience_seconds, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not ended.done():
            for child in children:
                child.stop()
            await asyncio.wait({ended}, timeout=HURRY_SECONDS)
        for child in children:
            child.kill()
        await ended

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        handled = stop_signals()
        for number in handled:
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        if self._stop.is_set():
            self._hurry.set()
        else:
            log.info(
                "stopping; what runs gets up to %g s to finish, a second signal hurries",
                self._grace_seconds,
                extra={"event": "stopping"},
            )
        self._stop.set()


async def _all_ready(children: list[ChildProcess]) -> None:
    await asyncio.gather(*(child.first_ready() for child in children))


async def _all_ended(children: list[ChildProcess]) -> None:
    for child in children:
        await child.ended()


def _environment(settings: Settings, supervisor_fd: int) -> dict[str, str]:
    return child_environment(settings, supervisor_fd=supervisor_fd)


def _process_names(settings: Settings) -> list[str]:
    fewest, _ = settings.worker_processes
    counts = {
        "api": ("api", settings.api_processes),
        "materializer": ("maintenance", 1),
        "worker": ("worker", fewest),
    }
    return [name for role in settings.roles for name in [counts[role][0]] * counts[role][1]]
