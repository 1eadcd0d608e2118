"""Keeps limits true: what counts against them, and that what waits knows of them."""

import logging

from app.db.stores.limits import LimitStore

log = logging.getLogger(__name__)


class LimitKeeper:
    """One `tick`: take away what counts and stands for no lease any more; tell what waits of limits that are new."""

    def __init__(self, limits: LimitStore) -> None:
        self._limits = limits

    async def tick(self) -> bool:
        """Do so; there is never more to do at once."""
        swept = await self._limits.sweep()
        if swept:
            log.info(
                "freed limits of leases that are over", extra={"event": "limits_freed", "holders": swept}
            )
        await self._limits.apply_new()
        return False
