"""Makes the daily partitions of the coming days."""

from app.db.engine import Engine
from app.db.partitions_ahead import ensure_ahead


class PartitionKeeper:
    """One `tick`: see that the partitions of the next two weeks exist."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def tick(self) -> bool:
        """Make what is missing."""
        await ensure_ahead(self._engine)
        return False
