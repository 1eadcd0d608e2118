"""Keeps limits true: what counts against them, and that what waits knows of them."""

import logging
from datetime import datetime

from app.db.stores.limits import LimitStore, NewLimit

log = logging.getLogger(__name__)


class LimitKeeper:
    """One `tick`: take away what counts and stands for no lease any more; tell what waits of limits that are new."""

    def __init__(self, limits: LimitStore) -> None:
        self._limits = limits
        self._unaware_before: dict[tuple[str, datetime], int] = {}
        """For each new limit the first transaction that surely knows of it."""

    async def tick(self) -> bool:
        """Do so; there is never more to do at once."""
        swept = await self._limits.sweep()
        if swept:
            log.info(
                "freed limits of leases that are over", extra={"event": "limits_freed", "holders": swept}
            )
        new = {(limit.key, limit.set_at): limit for limit in await self._limits.new_limits()}
        self._unaware_before = {
            seen: self._unaware_before.get(seen, limit.next_transaction) for seen, limit in new.items()
        }
        for seen, limit in new.items():
            await self._tell(limit, unaware_before=self._unaware_before[seen])
        return False

    async def _tell(self, limit: NewLimit, *, unaware_before: int) -> None:
        """Tell what waits, again and again, until whatever creates executions knows of the limit by itself."""
        all_know = limit.is_known and limit.oldest_transaction >= unaware_before
        if await self._limits.apply(limit) and all_know:
            await self._limits.forget(limit)
