"""The one loop that every running part of onthedot turns in."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

Tick = Callable[[], Awaitable[bool]]


class Loop:
    """Calls `tick` again and again: at once while it returns True (did work), else after a wait.

    The wait is `interval_seconds` ± 10 % (so that processes started together drift apart) and ends early
    on `wake()`. A tick that raises is logged and followed by a wait that doubles up to `max_backoff_seconds`.
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
        pause, event = self._interval_seconds, self._wake
        if self._failures:  # hints must not make a broken tick spin: only `stop` ends this wait
            pause, event = min(self._max_backoff_seconds, 0.1 * 2 ** min(self._failures, 16)), self._stop
        try:
            async with asyncio.timeout(pause * random.uniform(0.9, 1.1)):  # noqa: S311 - jitter, not a secret
                await event.wait()
        except TimeoutError:
            return
