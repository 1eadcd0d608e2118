"""Whether anything that pages show has changed."""

from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.queries import load


class ChangeReads:
    """Looks for changes, at the cost of a few index probes."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def marks(self) -> Mapping[str, str]:
        """Return a mark for each topic: `definitions`, `executions`, `workers`. It differs after a change."""
        async with self._engine.connect() as connection:
            found = await connection.exec_driver_sql(load("watch_changes"))
            return dict(found.mappings().one())
