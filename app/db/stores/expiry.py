"""Executions whose start deadline has passed."""

import msgspec

from app.db.partitions import fetch_making_partitions
from app.db.pools import Pool
from app.db.queries import load
from app.domain.expiry import EXPIRED

_EXPIRED = msgspec.json.encode(EXPIRED).decode()


class ExpiryStore:
    """Ends what is too late to begin."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def expire(self, shard: int, *, limit: int) -> int:
        """Move up to `limit` executions of a shard to the history whose deadline has passed; return how many."""
        rows = await fetch_making_partitions(self._pool, load("expire_executions"), shard, limit, _EXPIRED)
        return len(rows)
