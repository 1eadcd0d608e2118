"""Cancelling executions, and running finished ones again."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from app.db.pools import Pool
from app.db.queries import load
from app.domain.hints import Ready
from app.domain.ids import shard_of

TRIES = 3
"""Between two statements a worker may begin, end or give back an execution; then it is looked at again."""


class Cancelling(StrEnum):
    """What became of the wish to cancel."""

    CANCELLED = "cancelled"
    """It had not begun and will never run."""
    REQUESTED = "requested"
    """It runs; its worker has been asked to stop it."""
    ENDED = "ended"
    """It had ended already, or does not exist."""


class ExecutionControl:
    """Each method decides by the row itself, in one statement: who changes it first wins."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def cancel(self, execution_id: UUID, *, error: str, now: datetime) -> Cancelling:
        """Cancel an execution; `error` (JSON of a `Failure`) says who did and why."""
        shard = shard_of(execution_id)
        for _ in range(TRIES):
            if await self._pool.fetch(load("cancel_waiting"), shard, execution_id, error):
                return Cancelling.CANCELLED
            if await self._pool.fetch(load("request_cancel"), shard, execution_id, now, error):
                return Cancelling.REQUESTED
        return Cancelling.ENDED

    async def run_again(self, execution_id: UUID, new_id: UUID, *, now: datetime) -> Ready | None:
        """Do again what a finished execution did; None where it is not finished or its job is gone."""
        shard = shard_of(execution_id)
        row = await self._pool.fetchrow(load("run_again"), shard, execution_id, new_id, now)
        return Ready(shard, *row) if row else None
