"""Attempts and log lines of an execution."""

from datetime import datetime
from uuid import UUID

import msgspec
from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.reads.executions import ErrorView, ExecutionView
from app.db.tables import attempts, execution_logs
from app.domain.ids import shard_of
from app.domain.statuses import Status


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. `outcome` is null while it runs."""

    attempt_number: int
    worker_id: UUID | None
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str | None
    error: ErrorView | None
    lease_epoch: int


class LogLineView(msgspec.Struct, frozen=True, kw_only=True):
    """One captured line."""

    sequence: int
    time: datetime
    level: str
    stream: str
    attempt_number: int
    message: str


class StoryReads:
    """Reads what happened within an execution."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def attempts(self, execution: ExecutionView) -> list[AttemptView]:
        """Return all attempts of an execution, the first one first: those that were retried, and the last."""
        a = attempts.c
        statement = (
            select(a.attempt_number, a.worker_id, a.started_at, a.ended_at, a.outcome, a.error, a.lease_epoch)
            .where(a.shard == shard_of(execution.execution_id), a.execution_id == execution.execution_id)
            .order_by(a.attempt_number, a.lease_epoch)
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all()
        earlier = [msgspec.convert(row, AttemptView, from_attributes=True) for row in rows]
        return earlier + _last_attempt(execution, earlier)

    async def log_page(
        self, execution_id: UUID, *, limit: int, after: tuple[int, int] = (0, 0)
    ) -> list[LogLineView]:
        """Return up to `limit` lines in order, those after `(attempt_number, sequence)`."""
        c = execution_logs.c
        statement = (
            select(c.sequence, c.time, c.level, c.stream, c.attempt_number, c.message)
            .where(c.shard == shard_of(execution_id), c.execution_id == execution_id)
            .where(tuple_(c.attempt_number, c.sequence) > after)
            .order_by(c.attempt_number, c.sequence)
            .limit(limit)
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all()
        return [msgspec.convert(row, LogLineView, from_attributes=True) for row in rows]


def _last_attempt(execution: ExecutionView, earlier: list[AttemptView]) -> list[AttemptView]:
    """Return the attempt that runs or that ended the execution; it stands on the execution itself."""
    began = execution.status is Status.RUNNING or execution.completed_at is not None
    known = bool(earlier) and earlier[-1].attempt_number >= execution.attempt_number
    if not began or known or execution.attempt_number == 0:
        return []
    return [
        AttemptView(
            attempt_number=execution.attempt_number,
            worker_id=execution.worker_id,
            started_at=execution.started_at,
            ended_at=execution.completed_at,
            outcome=_OUTCOMES.get(execution.status),
            error=execution.error if execution.status is Status.FAILED else None,
            lease_epoch=execution.lease_epoch,
        )
    ]


_OUTCOMES = {
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "cancelled",
}
