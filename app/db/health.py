"""Whether the database can do what a server needs of it."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.migrate import pending


class DatabaseHealth:
    """Asks the database itself; a pool that answers from an old primary would say yes for days."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._migrated = False

    async def problem(self) -> str | None:
        """Return why the database cannot be worked with, or None. Raises what connecting raises."""
        async with self._engine.connect() as connection:
            read_only = await connection.scalar(
                text("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool")
            )
        if read_only:
            return "the database is read-only"
        if not self._migrated and await pending(self._engine):
            return "the database's schema is not this version's: run `onthedot migrate`"
        self._migrated = True
        return None
