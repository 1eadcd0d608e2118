"""Executions whose start deadline has passed."""

import msgspec

from app.db.partitions import fetch_making_partitions
from app.db.pools import Pool
from app.db.queries import load
from app.domain.expiry import EXPIRED
from app.domain.ids import SHARDS

_EXPIRED = msgspec.json.encode(EXPIRED).decode()


class ExpiryStore:
    """Ends what is too late to begin."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def shards_to_expire(self) -> list[int]:
        """Return the shards in which `expire` has something to do."""
        return [row[0] for row in await self._pool.fetch(load("shards_to_expire"), SHARDS)]

    async def expire(self, shard: int, *, limit: int) -> int:
        """Move up to `limit` executions of a shard to the history whose deadline has passed; return how many."""
        rows = await fetch_making_partitions(self._pool, load("expire_executions"), shard, limit, _EXPIRED)
        return len(rows)
