"""Makes the daily partitions of the coming days."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.partitions import ensure

LOCK = 0x6F_74_64_70_61_72_74
"""Advisory lock of the makers: `otdpart` in ASCII."""


class PartitionKeeper:
    """One `tick`: see that the partitions of the next two weeks exist."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def tick(self) -> bool:
        """Make what is missing."""
        async with self._engine.begin() as connection:
            await connection.execute(text("SET LOCAL lock_timeout = '2s'"))
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
            await connection.run_sync(ensure)
        return False
