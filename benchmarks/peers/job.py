"""What the Python scripts of the systems share: the job itself, and the load put on a system.

They run in virtual environments of their own, so this needs nothing but the standard library. `job.mjs` is its twin.
When a job began, and the instant from which its lateness counts, are records of two doubles: the job's number, and
seconds since 1970.
"""

import asyncio
import math
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

DSN = os.environ.get("PEER_DSN", "")
WARM_UPS = 5
"""Jobs before those that are measured; their numbers are negative."""
LEAD_SECONDS = 5
FLUSH_SECONDS = 0.02
CHUNK = 5_000
RECORD = struct.Struct("<dd")

T = TypeVar("T")


class Peer(Protocol):
    """A system: how its tables are made, its worker is run, and jobs are given to it."""

    async def setup(self) -> None:
        """Make its tables."""

    async def work(self) -> None:
        """Run one worker process until SIGTERM."""

    async def enqueue(self, number: int) -> None:
        """Create one job to be run at once."""

    async def fill(self, numbers: Sequence[int]) -> None:
        """Create many jobs to be run at once, the fastest way."""

    async def schedule(self, jobs: Sequence[tuple[int, float]]) -> None:
        """Create jobs, each to be run at its instant."""


Opened = Callable[[], AbstractAsyncContextManager[Peer]]


def ran(number: int) -> None:
    """Note that a job runs, and when: all that the job does."""
    _book().write(RECORD.pack(number, time.time()))


@cache
def _book() -> BinaryIO:
    book = (_folder() / f"ran-{os.getpid()}").open("ab", buffering=1 << 16)
    threading.Thread(target=_flush, args=(book,), daemon=True).start()
    return book


def _flush(book: BinaryIO) -> None:
    while True:
        time.sleep(FLUSH_SECONDS)
        book.flush()


def main(opened: Opened) -> None:
    """Do what the command line says with a system that `opened()` opens."""
    try:
        import uvloop  # a system that has it in its environment is faster with it
    except ImportError:
        run: Callable[[Coroutine[object, object, None]], None] = asyncio.run
    else:
        run = uvloop.run
    run(_do(opened, sys.argv[1], [int(text) for text in sys.argv[2:]]))


async def _do(opened: Opened, command: str, numbers: list[int]) -> None:
    async with opened() as peer:
        match command:
            case "setup":
                await peer.setup()
            case "work":
                await peer.work()
            case "fill":
                await peer.fill(range(numbers[0]))
            case "spread":
                await _spread(peer, *numbers)
            case "idle":
                await _idle(peer, *numbers)


async def _spread(peer: Peer, jobs: int, seconds: int) -> None:
    """Create jobs in advance, each due on its own instant."""
    await _warm_up(peer)
    first = math.ceil(time.time()) + LEAD_SECONDS
    due = [(number, first + seconds * number / jobs) for number in range(jobs)]
    await peer.schedule(due)
    if time.time() > first:
        raise SystemExit(f"{jobs} jobs could not be scheduled within {LEAD_SECONDS} s")
    _note(due)


async def _idle(peer: Peer, jobs: int, gap_ms: int) -> None:
    """Create one job after the other, while nothing else happens."""
    await _warm_up(peer)
    began, asked = time.time(), []
    for number in range(jobs):
        await asyncio.sleep(max(0.0, began + number * gap_ms / 1000 - time.time()))
        asked.append((number, time.time()))
        await peer.enqueue(number)
    _note(asked)


async def _warm_up(peer: Peer) -> None:
    for number in range(-WARM_UPS, 0):
        await peer.enqueue(number)
        await asyncio.sleep(0.3)


def _note(instants: Iterable[tuple[int, float]]) -> None:
    (_folder() / "asked").write_bytes(b"".join(RECORD.pack(*each) for each in instants))


def _folder() -> Path:
    return Path(os.environ["PEER_FOLDER"])


def read(path: Path) -> list[tuple[int, float]]:
    """Return the records of a file."""
    return [(int(number), at) for number, at in RECORD.iter_unpack(path.read_bytes())]


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Yield them by parts."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
