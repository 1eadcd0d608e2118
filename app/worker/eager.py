"""Starting work in the event loop without waiting for its next turn."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def start_at_once(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task. From Python 3.12 on it runs at once up to its first wait, in a context of its own: one that
    never waits is done when this returns, and costs no turn of the event loop. Before, it starts in the next turn.
    """
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    return loop.create_task(work)
