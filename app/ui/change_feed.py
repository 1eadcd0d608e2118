"""What has changed, told to every open page: one look a second for all of them, none while nobody watches."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

EVERYTHING = frozenset({"definitions", "executions", "workers"})
"""All topics."""
BEAT_SECONDS = 10.0
"""A page that hears nothing for longer knows that it has lost us."""
MOST_STREAMS = 12
"""Of one session in one process: tabs beyond look by themselves."""


class ChangeSource(Protocol):
    """Where changes are looked for."""

    async def marks(self) -> Mapping[str, str]: ...


class _Watcher:
    """One open page: the topics that it has not been told of yet."""

    def __init__(self) -> None:
        # Between its rendering and our first look anything may have changed.
        self.changed = set(EVERYTHING)
        self.wake = asyncio.Event()

    def take(self) -> frozenset[str]:
        """Return the topics and forget them."""
        self.wake.clear()
        taken, self.changed = frozenset(self.changed), set()
        return taken


class ChangeFeed:
    """Looks for changes with each `tick` and tells those who watch, coalesced: a slow page misses none."""

    def __init__(self, source: ChangeSource, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._monotonic = monotonic
        self._marks: Mapping[str, str] = {}
        self._looked_at = 0.0
        self._watchers: set[_Watcher] = set()
        self._of_session: Counter[str] = Counter()
        self._closed = False
        self.version = 0
        """Another number after each change: what was read under this one still holds."""

    async def tick(self) -> bool:
        """Look once, if anybody watches."""
        if not self._watchers:
            return False
        marks = await self._source.marks()
        changed = {topic for topic in marks if self._marks.get(topic) != marks[topic]}
        self._marks, self._looked_at = marks, self._monotonic()
        self.version += bool(changed)
        for watcher in self._watchers:
            watcher.changed |= changed
            if watcher.changed:
                watcher.wake.set()
        return False

    def close(self) -> None:
        """End every stream, now and from now on: the server stops."""
        self._closed = True
        for watcher in self._watchers:
            watcher.wake.set()

    async def watch(self, session: str) -> AsyncIterator[frozenset[str]]:
        """Yield the topics that changed, and an empty set as a beat; end when the server stops.

        While we cannot look there is no beat: a page must not believe itself up to date.
        """
        with self._watching(session) as watcher:
            while not self._closed:
                await _wait(watcher.wake, BEAT_SECONDS)
                if watcher.wake.is_set() and not self._closed:
                    yield watcher.take()
                elif self._monotonic() - self._looked_at < BEAT_SECONDS:
                    yield frozenset()

    def is_full(self, session: str) -> bool:
        """Tell whether a session watches as often as it may."""
        return self._of_session[session] >= MOST_STREAMS

    @contextmanager
    def _watching(self, session: str) -> Iterator[_Watcher]:
        watcher = _Watcher()
        self._watchers.add(watcher)
        self._of_session[session] += 1
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)
            self._of_session[session] -= 1
            if not self._of_session[session]:
                del self._of_session[session]


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
