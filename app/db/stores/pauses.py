"""Pauses with an end."""

from typing import NamedTuple
from uuid import UUID

from app.db.acting import acting_in
from app.db.actors import RESUMER
from app.db.pools import Pool
from app.db.queries import load


class LapsedPause(NamedTuple):
    """A job whose pause is over, at the version that says so."""

    job_id: UUID
    version: int


class PauseStore:
    """Finds the pauses that are over."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def lapsed(self, *, limit: int) -> list[LapsedPause]:
        """Return up to `limit` jobs whose pause is over."""
        return [LapsedPause(*row) for row in await self._pool.fetch(load("lapsed_pauses"), limit)]

    async def resume_queues(self) -> list[str]:
        """Resume the queues whose pause is over, and return them."""
        async with acting_in(self._pool, RESUMER) as connection:
            return [row["queue"] for row in await connection.fetch(load("resume_queues"))]
