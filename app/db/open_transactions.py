"""Transactions that stay open: of whatever program, and what they are in the way of."""

from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.queries import load

_USAGE = text("SELECT pg_notification_queue_usage()")


class OpenTransaction(NamedTuple):
    """A transaction and the session that it is in."""

    transaction: str
    """Its virtual id, another one for each transaction of a session."""
    pid: int | None
    """None: it is prepared, and nobody's."""
    application: str | None
    user: str | None
    database: str | None
    seconds: float | None
    """How long it has been open; None: we may not know."""
    tables: list[str]
    """Those of ours on which it keeps locks that are in somebody's way."""

    def __str__(self) -> str:
        if self.pid is None:
            return "a prepared transaction (pg_prepared_xacts)"
        since = f", open for {self.seconds:.0f} s" if self.seconds is not None else ""
        return f"PID {self.pid}, {self.application or 'unnamed'!r:.60} as {self.user}{since}"


class OpenTransactions:
    """Reads what is open on the server, but for what it reads by."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def list(self) -> list[OpenTransaction]:
        """Return them, the oldest first."""
        async with self._engine.connect() as connection:
            rows = await connection.exec_driver_sql(load("open_transactions"))
            return [OpenTransaction(**row) for row in rows.mappings()]

    async def notification_queue_usage(self) -> float:
        """Return how full PostgreSQL's queue of notifications is, from 0 to 1. It is one for all databases.

        To be asked makes PostgreSQL drop what everybody has read. By itself it does that only after a NOTIFY that
        succeeds: a queue that was full would stay so.
        """
        async with self._engine.connect() as connection:
            return float(await connection.scalar(_USAGE) or 0)
