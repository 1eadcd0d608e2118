"""Bring a database's schema to this version's."""

import asyncio

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import open_engine
from app.db.errors import database_of_settings
from app.db.partitions_ahead import ensure
from app.paths import MIGRATIONS_DIR

_LOCK = 0x6F_6E_74_68_65_64_6F_74
"""Advisory lock that serialises migrations: `onthedot` in ASCII."""


def upgrade(dsn: str) -> None:
    """Migrate the database to the newest version; does nothing where it is already there.

    Raises `CannotStart` where the database cannot be reached or used.
    """
    with database_of_settings():
        asyncio.run(migrate(dsn))


async def migrate(dsn: str) -> None:
    """Migrate, one process at a time: replicas that start together wait for the first and find it done."""
    engine = open_engine(dsn, size=1, application_name="onthedot migrate")
    try:
        async with engine.connect() as connection:
            await connection.execute(text(f"SELECT pg_advisory_lock({_LOCK})"))
            await connection.commit()
            await connection.run_sync(_run)
            await connection.run_sync(ensure)
            await connection.commit()
            await connection.execute(text(f"SELECT pg_advisory_unlock({_LOCK})"))
    finally:
        await engine.dispose()


async def pending(engine: AsyncEngine) -> bool:
    """Tell whether the database lags behind this version's schema."""
    async with engine.connect() as connection:
        current = await connection.run_sync(_current)
    return current != ScriptDirectory.from_config(_config()).get_current_head()


def _run(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _current(connection: Connection) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table_schema": "onthedot"})
    return context.get_current_revision()


def _config() -> Config:
    """Configure Alembic in code: no ini file at the top level, and the DSN never meets ConfigParser."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_DIR).replace("%", "%%"))
    return config
