"""Ends executions whose start deadline has passed before they began."""

import logging

from app.db.stores.expiry import ExpiryStore

log = logging.getLogger(__name__)

BATCH = 500


class Expirer:
    """One `tick`: end what is too late in each shard. Any number of expirers may run.

    It keeps the books: what is too late is not begun even where none runs, for every claim looks at the deadline.
    """

    def __init__(self, *, expiries: ExpiryStore) -> None:
        self._expiries = expiries

    async def tick(self) -> bool:
        """End what is too late; return whether a shard may have more."""
        shards = await self._expiries.shards_to_expire()
        ended = {shard: await self._expiries.expire(shard, limit=BATCH) for shard in shards}
        for shard, count in ended.items():
            if count:
                extra = {"event": "executions_expired", "shard": shard, "executions": count}
                log.info("start deadlines had passed", extra=extra)
        return BATCH in ended.values()
