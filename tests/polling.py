"""Waiting for what will be true, without sleeping blindly."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

DEADLINE_SECONDS = 20.0
"""Generous: it is only ever waited for by a test that fails."""


async def eventually(probe: Callable[[], Awaitable[T | None]], *, seconds: float = DEADLINE_SECONDS) -> T:
    """Return the first true value of `probe`, which is asked every few milliseconds."""
    deadline = time.monotonic() + seconds
    while True:
        value = await probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"still {value!r} after {seconds:g} s")
        await asyncio.sleep(0.01)
