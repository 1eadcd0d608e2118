"""Cancelling executions, and running finished ones again."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from app.db.acting import acting_in
from app.db.actors import note_action
from app.db.pools import Connection, Pool
from app.db.queries import load
from app.db.stores.hourly_counts import count_created
from app.db.transactions import Transaction
from app.domain.access import Actor
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
    """Each method decides by the row itself, in one statement: who changes it first wins.

    What was done is written into the audit log in the same transaction: executions have no triggers.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def cancel(
        self,
        execution_id: UUID,
        *,
        error: str,
        now: datetime,
        actor: Actor,
        reason: str | None,
        within: Transaction | None = None,
    ) -> Cancelling:
        """Cancel an execution; `error` (JSON of a `Failure`) says who did and why."""
        async with acting_in(self._pool, actor, within) as connection:
            for _ in range(TRIES):
                outcome = await _cancel(connection, execution_id, error=error, now=now)
                if outcome is not None:
                    after = {"cancelling": outcome}
                    await note_action(
                        connection, "execution.cancel", execution_id, after=after, reason=reason
                    )
                    return outcome
        return Cancelling.ENDED

    async def run_again(
        self,
        execution_id: UUID,
        new_id: UUID,
        *,
        now: datetime,
        actor: Actor,
        within: Transaction | None = None,
    ) -> Ready | None:
        """Do again what a finished execution did; None where it is not finished or its job is gone.

        Raises `QuotaExceeded`.
        """
        shard = shard_of(execution_id)
        async with acting_in(self._pool, actor, within) as connection:
            row = await connection.fetchrow(load("run_again"), shard, execution_id, new_id, now)
            if row is None:
                return None
            await count_created(connection, row["user_id"])
            after = {"execution_id": new_id}
            await note_action(connection, "execution.retry", execution_id, after=after)
            return Ready(shard, row["queue"], row["priority"], row["due_at"], row["limited"])


async def _cancel(
    connection: Connection, execution_id: UUID, *, error: str, now: datetime
) -> Cancelling | None:
    """Cancel what has not begun, ask what runs to stop; None: neither, at this moment."""
    shard = shard_of(execution_id)
    if await connection.fetch(load("cancel_waiting"), shard, execution_id, error):
        return Cancelling.CANCELLED
    if await connection.fetch(load("request_cancel"), shard, execution_id, now, error):
        return Cancelling.REQUESTED
    return None
