"""Daily partitions, made ahead of time."""

from sqlalchemy import Connection, text

from app.db.engine import Engine
from app.db.partitions import LOCK, TODAY, create_statements

DAYS_AHEAD = 14


async def ensure_ahead(engine: Engine) -> None:
    """Make the partitions of the coming days, one process at a time."""
    async with engine.begin() as connection:
        await connection.execute(text("SET LOCAL lock_timeout = '2s'"))
        await connection.run_sync(ensure)


def ensure(connection: Connection, *, days_ahead: int = DAYS_AHEAD) -> None:
    """Make the partitions of yesterday, today and the coming days, by the database's date, where they are missing.

    One process at a time: others wait until the caller commits.
    """
    connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    today = connection.scalar(text(TODAY))
    for statement in create_statements(today, days_ahead=days_ahead):
        connection.execute(text(statement))
