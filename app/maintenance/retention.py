"""Deletes what has been kept long enough."""

import logging

from app.db.old_partitions import drop_old_partitions
from app.db.pools import Pool
from app.db.stores.retention import FIRST, Place, RetentionStore
from app.domain.ids import SHARDS, Shard

log = logging.getLogger(__name__)

BATCH = 1000


class Retention:
    """One `tick`: old partitions, and a batch of everything else. Any number of processes may do it.

    What is live never goes: executions that have not ended, their jobs and batches; what has ended goes by the time
    at which it ended. The audit log, recurring jobs and the ledger of their instants stay.
    """

    def __init__(self, pool: Pool, store: RetentionStore, *, days: int) -> None:
        self._pool = pool
        self._store = store
        self._days = days
        self._again = False
        self._sweep: dict[Shard, Place] = {}
        """Where the next batch begins, in the shards that the present sweep is not through with."""
        self._keys_after: bytes | None = None
        """The same of unique keys; None: it is through with them."""

    async def tick(self) -> bool:
        """Delete; return whether there is more."""
        if not self._again:
            await self._begin_sweep()
        keys = await self._store.expire_keys(limit=BATCH)
        batches = await self._store.expire_batches(limit=BATCH)
        effects = await self._store.expire_effects(limit=BATCH)
        runs = await self._store.expire_runs(limit=BATCH)
        unique_keys = await self._expire_unique_keys()
        jobs = sum([await self._expire_jobs(shard) for shard in list(self._sweep)])
        self._report(keys=keys, batches=batches, effects=effects, one_shot_jobs=jobs)
        self._report(unique_keys=unique_keys, workflow_runs=runs)
        self._again = (
            bool(self._sweep) or self._keys_after is not None or BATCH in (keys, batches, effects, runs)
        )
        return self._again

    async def _begin_sweep(self) -> None:
        """Do what is done once a sweep."""
        self._sweep = dict.fromkeys(SHARDS, FIRST)
        self._keys_after = b""
        partitions = await drop_old_partitions(self._pool, days=self._days)
        workers = await self._store.expire_workers()
        logins = await self._store.expire_logins()
        rollups = await self._store.expire_rollups()
        hours = await self._store.expire_hours()
        definitions = await self._store.expire_definitions(limit=BATCH)
        self._report(hourly_counts=hours, workflow_definitions=definitions)
        self._report(partitions=len(partitions), workers=workers, logins=logins, rollups=rollups)

    async def _expire_unique_keys(self) -> int:
        if self._keys_after is None:
            return 0
        swept = await self._store.expire_unique_keys(after=self._keys_after, limit=BATCH)
        self._keys_after = swept.upto
        return swept.dropped

    async def _expire_jobs(self, shard: Shard) -> int:
        swept = await self._store.expire_jobs(shard, after=self._sweep[shard], limit=BATCH)
        if swept.upto is None:
            del self._sweep[shard]
        else:
            self._sweep[shard] = swept.upto
        return swept.deleted

    def _report(self, **deleted: int) -> None:
        if any(deleted.values()):
            log.info("deleted what was old", extra={"event": "retention", **deleted})
