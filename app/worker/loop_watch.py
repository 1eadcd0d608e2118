"""A watch, from a thread, over the event loop in which handlers run."""

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable

LOOK_EVERY_SECONDS = 3.0
STILL_LOOKS = 10
"""So many looks in a row that find the loop where it was: it stands still. Looks are counted, not time: a process
that was frozen has been looked at as little as it has run."""


class LoopWatch:
    """Calls `on_blocked`, once, when the loop stands still and timeouts have come that it does not keep.

    An `async def` that waits without `await` blocks its neighbours too, and nothing in the process can interrupt it.
    It may do so for a while; past somebody's timeout and `STILL_LOOKS` it may not. `is_overdue` tells whether a
    timeout has come; it is called in the thread, and so is `on_blocked`, with the stack of the main thread, which
    names the culprit.
    """

    def __init__(
        self,
        *,
        is_overdue: Callable[[], bool],
        on_blocked: Callable[[str], object],
        look_every_seconds: float = LOOK_EVERY_SECONDS,
    ) -> None:
        self._is_overdue = is_overdue
        self._on_blocked = on_blocked
        self._look_every_seconds = look_every_seconds
        self._loop = asyncio.get_running_loop()
        self._still = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="loop-watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()

    def _watch(self) -> None:
        while not self._stop.wait(self._look_every_seconds):
            self._still += 1
            self._loop.call_soon_threadsafe(self._turned)
            if self._still > STILL_LOOKS and self._is_overdue():
                self._on_blocked(_stack_of_main_thread())
                return

    def _turned(self) -> None:
        self._still = 0


def _stack_of_main_thread() -> str:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001 - the documented way
    return "".join(traceback.format_stack(frame)) if frame else ""
