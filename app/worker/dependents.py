"""Lets what waits for jobs begin as soon as executions of theirs end here."""

import time
from collections.abc import Callable
from uuid import UUID

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.stores.catalog import Catalog
from app.db.stores.dependencies import FIRST, DependencyStore
from app.domain.claims import Claim
from app.domain.hints import Ready

KNOWN_SECONDS = 1.0
"""How long it is taken for true which jobs are waited for. What it misses maintenance finds as soon."""
BATCH = 500


class DependentKeeper:
    """One `tick`: look where something waits for a job of which an execution has ended here."""

    name = "dependents"

    def __init__(
        self,
        dependencies: DependencyStore,
        hints: HintSender,
        catalog: Catalog,
        *,
        clock: DatabaseClock,
        take: Callable[[list[Ready]], bool],
    ) -> None:
        self._dependencies = dependencies
        self._hints = hints
        self._catalog = catalog
        self._clock = clock
        self._take = take
        self._awaited: set[UUID] = set()
        self._next_refresh = 0.0
        self._ended: set[UUID] = set()

    @property
    def waiting(self) -> int:
        """Return of how many jobs somebody has yet to be told."""
        return len(self._ended)

    @property
    def is_due(self) -> bool:
        """Whether there is anything to look at, or what is known of who waits for whom has grown old."""
        return bool(self._ended) or self._is_stale()

    def note(self, claim: Claim) -> None:
        """Take an execution whose end is durable."""
        if claim.job_id in self._awaited:
            self._ended.add(claim.job_id)

    def forget(self) -> None:
        """Tell nobody of what waits."""
        self._ended.clear()

    async def tick(self) -> bool:
        """Look; return whether there was anything to look at."""
        await self._refresh()
        batch, self._ended = self._ended, set()
        if not batch:
            return False
        try:
            now = self._clock.now()
            for shard in await self._dependencies.shards_after(batch, now=now):
                looked = await self._dependencies.look(shard, now=now, after=FIRST, limit=BATCH)
                if looked.ready and not self._take(looked.ready):
                    self._hints.announce(looked.ready)
        except BaseException:
            self._ended |= batch
            raise
        return True

    async def _refresh(self) -> None:
        if not self._is_stale():
            return
        now, depend = time.monotonic(), self._catalog.jobs_depend
        self._awaited = await self._dependencies.awaited() if depend else set()
        self._next_refresh = now + KNOWN_SECONDS if depend else 0.0

    def _is_stale(self) -> bool:
        if not self._catalog.jobs_depend:
            return bool(self._awaited)
        return time.monotonic() >= self._next_refresh
