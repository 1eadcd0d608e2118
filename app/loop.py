"""The one loop that every running part of onthedot turns in."""

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

Tick = Callable[[], Awaitable[bool]]

TOGETHER_SECONDS = 0.9
"""Loops of one process that wait this long or longer end their waits together, on a beat of the process: to be woken
costs more (0.3 ms, as nothing is in the processor's caches) than what an idle loop does then."""
_phase_seconds = random.uniform(0, TOGETHER_SECONDS)  # noqa: S311 - processes started together keep apart
_EARLY = 0.02
"""Parts of a beat that a timer may be early and is still taken for being on it."""


class Loop:
    """Calls `tick` again and again: at once while it returns True (did work), else after a wait.

    The wait is `interval_seconds` ± 10 % (so that processes started together drift apart) or, from
    `TOGETHER_SECONDS` on, so many whole beats, the first of which may have begun; it ends early on `wake()`.
    A tick that raises is logged and followed by a wait that doubles up to `max_backoff_seconds`.
    `start` and `stop` may be called in any order and more than once; `stop` lets a running tick finish.
    """

    def __init__(
        self, name: str, tick: Tick, *, interval_seconds: float, max_backoff_seconds: float = 10.0
    ) -> None:
        self._name = name
        self._tick = tick
        self._interval_seconds = interval_seconds
        self._max_backoff_seconds = max_backoff_seconds
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        self._failures = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to turn."""
        if self._task is None and not self._stop.is_set():
            self._task = asyncio.create_task(self._run(), name=self._name)

    def wake(self) -> None:
        """End the present wait: there may be work."""
        self._wake.set()

    async def stop(self) -> None:
        """Finish the running tick and turn no more."""
        self._stop.set()
        self._wake.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            if not await self._turn():
                await self._wait()

    async def _turn(self) -> bool:
        try:
            again = await self._tick()
        except Exception:
            self._failures += 1
            log.exception("tick failed", extra={"event": "tick_failed", "loop": self._name})
            return False
        self._failures = 0
        return again

    async def _wait(self) -> None:
        pause, event = _idle_pause(self._interval_seconds), self._wake
        if self._failures:  # hints must not make a broken tick spin: only `stop` ends this wait
            seconds = min(self._max_backoff_seconds, 0.1 * 2 ** min(self._failures, 16))
            pause, event = _with_jitter(seconds), self._stop
        try:
            async with asyncio.timeout(pause):
                await event.wait()
        except TimeoutError:
            return


def _idle_pause(seconds: float) -> float:
    """Return how long to wait now: to the end of so many beats, or, if it is less than one, so long give or take."""
    if seconds < TOGETHER_SECONDS:
        return _with_jitter(seconds)
    since_phase = asyncio.get_running_loop().time() - _phase_seconds
    begun = math.floor(since_phase / TOGETHER_SECONDS + _EARLY)
    return (begun + round(seconds / TOGETHER_SECONDS)) * TOGETHER_SECONDS - since_phase


def _with_jitter(seconds: float) -> float:
    return seconds * random.uniform(0.9, 1.1)  # noqa: S311 - jitter, not a secret
