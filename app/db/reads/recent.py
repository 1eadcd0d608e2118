"""Answers of costly reads, kept for a moment."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST = 1000
"""Answers kept. Beyond, the oldest go."""


class Recent(Generic[K, V]):
    """Answers `read(key)`, each kept for `seconds` from the moment its reading began.

    Those who ask while an answer is being read wait for that one, so that a slow read is never made twice at once.
    """

    def __init__(self, read: Callable[[K], Awaitable[V]], *, seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._answers: dict[K, tuple[float, asyncio.Future[V]]] = {}

    async def get(self, key: K) -> V:
        """Return the answer for `key`. Raises what reading it raises; an error is not kept."""
        now = time.monotonic()
        known = self._answers.get(key)
        if known is None or (known[1].done() and now >= known[0]):
            known = self._answers[key] = (now + self._seconds, self._start(key))
            self._forget(now)
        return await asyncio.shield(known[1])  # one who goes away takes nothing from the others

    def _start(self, key: K) -> "asyncio.Future[V]":
        reading = asyncio.ensure_future(self._read(key))
        reading.add_done_callback(lambda ended: self._drop_failed(key, ended))
        return reading

    def _drop_failed(self, key: K, ended: "asyncio.Future[V]") -> None:
        known = self._answers.get(key)
        if (ended.cancelled() or ended.exception()) and known and known[1] is ended:
            del self._answers[key]

    def _forget(self, now: float) -> None:
        """Drop what is out of date once much has piled up, and the oldest where that does not do."""
        if len(self._answers) > MOST:
            fresh = {key: kept for key, kept in self._answers.items() if now < kept[0]}
            self._answers = dict(list(fresh.items())[-MOST:])
