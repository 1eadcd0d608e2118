"""Batches: how far the jobs created together have come."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import CompoundSelect, Row, func, select, union_all
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.tables import batches, execution_history, executions
from app.domain.errors import NotFound
from app.domain.statuses import FINAL


class BatchView(msgspec.Struct, frozen=True, kw_only=True):
    """A batch; `completed_at` once every job's execution has ended (jobs that repeat have none of their own)."""

    batch_id: UUID
    total: int
    by_status: dict[str, int]
    created_at: datetime
    completed_at: datetime | None


class BatchReads:
    """Reads batches."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, batch_id: UUID) -> BatchView:
        """Return a batch. Raises `NotFound`. Counted from the executions themselves, along the ids of its jobs."""
        async with self._engine.connect() as connection:
            batch = (
                await connection.execute(select(batches).where(batches.c.batch_id == batch_id))
            ).one_or_none()
            if batch is None:
                raise NotFound(f"there is no batch {batch_id}")
            rows = (await connection.execute(counts_statement(batch))).all()
        counts = {row.status: row[1] for row in rows}
        ended = sum(counts.get(status, 0) for status in FINAL)
        return BatchView(
            batch_id=batch_id,
            total=batch.total,
            by_status=counts,
            created_at=batch.created_at,
            completed_at=max(row.ended for row in rows) if ended >= batch.total else None,
        )


def counts_statement(batch: Row[Any]) -> CompoundSelect[Any]:
    """Return the statement that counts a batch's executions by status, in the days since it was created."""
    live, ended = executions.c, execution_history.c
    among = (
        ended.completed_at > batch.created_at - timedelta(minutes=1),
        ended.completed_at < func.now() + timedelta(minutes=1),
    )
    return union_all(
        *(
            select(c.status, func.count().label("count"), func.max(instant).label("ended"))
            .where(
                c.job_id.between(batch.first_job_id, batch.last_job_id), c.batch_id == batch.batch_id, *more
            )
            .group_by(c.status)
            for c, instant, more in ((live, live.started_at, ()), (ended, ended.completed_at, among))
        )
    )
