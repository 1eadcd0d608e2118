"""Plans anew when the rules of time zones have changed, and says what moved."""

import logging
from collections.abc import Callable
from uuid import UUID

from app.db.notifier import HintSender
from app.db.stores.schedules import DueJob
from app.db.stores.zone_rules import ZoneRulesStore
from app.domain.ids import SHARDS
from app.domain.planning import Plan

log = logging.getLogger(__name__)

BATCH = 200
"""Jobs planned in one transaction: it holds their locks."""
_FIRST = UUID(int=0)


class ZoneRules:
    """One `tick`: where this process brings newer rules than those that executions are planned by, plan one batch of
    jobs anew; when none is left, write the version down.

    Any number may run: what one has planned, the next finds in order. One with older rules does nothing, so that
    processes of two versions side by side do not move instants to and fro.
    """

    def __init__(
        self,
        store: ZoneRulesStore,
        *,
        hints: HintSender,
        plan: Callable[[DueJob], Plan],
        version: str,
    ) -> None:
        self._store = store
        self._hints = hints
        self._plan = plan
        self._version = version
        self._before = ""
        self._shards = list(SHARDS)
        self._after = _FIRST
        self._jobs = self._moved = 0
        self._in_force = False

    async def tick(self) -> bool:
        """Plan a batch; return whether there is more to do."""
        if self._in_force:
            return False
        before = await self._store.version()
        if before is None or before >= self._version:  # a new database has nothing planned by older rules
            await self._store.write_version(self._version)
            self._in_force = True
            return False
        self._before = before
        if self._shards:
            await self._replan()
            return True
        await self._store.write_version(self._version)
        self._in_force = True
        self._report()
        return False

    async def _replan(self) -> None:
        shard = self._shards[-1]
        done = await self._store.replan(
            shard, after=self._after, limit=BATCH, version=self._version, plan=self._plan
        )
        self._hints.announce(done.created)
        self._jobs += done.jobs
        self._moved += len(done.moved)
        self._after = done.last or _FIRST
        if done.last is None:
            self._shards.pop()

    def _report(self) -> None:
        log.warning(
            "the rules of time zones changed from %s to %s: %d jobs planned anew, the instants of %d moved",
            self._before,
            self._version,
            self._jobs,
            self._moved,
            extra={"event": "zone_rules_changed", "jobs": self._jobs, "moved": self._moved},
        )
