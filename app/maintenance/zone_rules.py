"""Plans anew when the rules of time zones have changed, and says what moved."""

import logging
from collections.abc import Callable
from uuid import UUID

from app.db.notifier import HintSender
from app.db.stores.schedules import DueJob
from app.db.stores.zone_rules import ZoneRulesStore
from app.domain.ids import SHARDS
from app.domain.planning import Plan
from app.domain.timezones import tzdata_version

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
        version: Callable[[], str] = tzdata_version,
    ) -> None:
        self._store = store
        self._hints = hints
        self._plan = plan
        self._version = version()
        self._before: str | None = None
        self._shards = list(SHARDS)
        self._after = _FIRST
        self._jobs = self._moved = 0
        self._in_force = False

    async def tick(self) -> bool:
        """Plan a batch; return whether there is more to do."""
        if self._in_force or not await self._is_behind():
            return False
        if self._shards:
            await self._replan()
            return True
        await self._store.write_version(self._version)
        self._in_force = True
        self._report()
        return False

    async def _is_behind(self) -> bool:
        """Tell whether executions are planned by older rules; what a new database holds is planned by none."""
        self._before = await self._store.version()
        if self._before is None:
            await self._store.write_version(self._version)
        self._in_force = self._before is None or self._before >= self._version
        return not self._in_force

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
