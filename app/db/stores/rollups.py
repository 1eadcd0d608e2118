"""Counts of finished executions, kept up to a moment ago."""

from datetime import datetime
from typing import NamedTuple

from app.db.pools import Pool
from app.db.queries import load


class RolledUp(NamedTuple):
    """Until when is counted, and whether there is more to count."""

    until: datetime
    more: bool


class RollupStore:
    """Counts in one statement that also remembers how far it came: each execution is counted once."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def roll_up(self, *, longest_seconds: float, behind_seconds: float) -> RolledUp | None:
        """Count what ended since the last time; None: another process is at it."""
        row = await self._pool.fetchrow(load("roll_up"), longest_seconds, behind_seconds)
        return RolledUp(*row) if row else None
