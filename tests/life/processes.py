"""Helpers for tests that watch processes."""

import time
from collections.abc import Callable

import psutil

DEADLINE_SECONDS = 60


def eventually(holds: Callable[[], bool]) -> None:
    """Return as soon as `holds()`; fail the test if it does not within the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.01)


def has_ended(pid: int) -> bool:
    """Tell whether the process is gone; a zombie that nobody has reaped yet counts as gone."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
