"""Attempts and log lines of an execution."""

from datetime import datetime
from uuid import UUID

import msgspec
from sqlalchemy import column, func, select, table, tuple_
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.reads.executions import ErrorView, ExecutionView
from app.db.tables import execution_logs
from app.domain.ids import shard_of

# The view alone knows where the last attempt stands and what it came to: people and programs are told the same.
_attempts = table(
    "attempts",
    *map(
        column, ("shard", "execution_id", "attempt_number", "worker_id", "started_at", "ended_at", "outcome")
    ),
    column("error", JSONB),
    column("lease_epoch"),
    schema="audit",
)
_ATTEMPTS = select(
    *(
        _attempts.c[name]
        for name in ("attempt_number", "worker_id", "started_at", "ended_at", "error", "lease_epoch")
    ),
    func.nullif(_attempts.c.outcome, "running").label("outcome"),
).order_by(_attempts.c.attempt_number, _attempts.c.lease_epoch)


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
        statement = _ATTEMPTS.where(
            _attempts.c.shard == shard_of(execution.execution_id),
            _attempts.c.execution_id == execution.execution_id,
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all()
        return [msgspec.convert(row, AttemptView, from_attributes=True) for row in rows]

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
