"""Names for time zones that are no IANA names."""

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.tables import zone_aliases


class ZoneAliasStore:
    """The settings table of zone aliases. It changes with a migration or by an operator's SQL, so it is read once."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._aliases: Mapping[str, str] | None = None

    async def all(self) -> Mapping[str, str]:
        """Return the aliases: name as people write it -> IANA zone."""
        if self._aliases is None:
            async with self._engine.connect() as connection:
                rows = await connection.execute(select(zone_aliases.c.alias, zone_aliases.c.zone))
                self._aliases = {row.alias: row.zone for row in rows}
        return self._aliases
