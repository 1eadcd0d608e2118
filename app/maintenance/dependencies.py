"""Lets executions begin whose jobs depend on others."""

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.stores.dependencies import FIRST, DependencyStore, Waiting

BATCH = 500


class DependencyKeeper:
    """One `tick`: look at what waits and is due soon, in each shard, from where the last look ended.

    Workers look at once when what others wait for ends here; this finds what they could not know.
    """

    def __init__(self, dependencies: DependencyStore, *, hints: HintSender, clock: DatabaseClock) -> None:
        self._dependencies = dependencies
        self._hints = hints
        self._clock = clock
        self._after: dict[int, Waiting] = {}

    async def tick(self) -> bool:
        """Look; return whether a shard has more."""
        now, after = self._clock.now(), self._after
        self._after = {}
        for shard in await self._dependencies.shards_to_unblock(now=now):
            looked = await self._dependencies.look(shard, now=now, after=after.get(shard, FIRST), limit=BATCH)
            self._hints.announce(looked.ready)
            if looked.upto is not None:
                self._after[shard] = looked.upto
        return bool(self._after)
