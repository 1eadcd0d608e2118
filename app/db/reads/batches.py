"""Batches: how far the jobs created together have come."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, CompoundSelect, Row, func, literal_column, select, union_all
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.tables import batches, execution_history, executions
from app.domain.errors import NotFound
from app.domain.statuses import FINAL


class BatchView(msgspec.Struct, frozen=True, kw_only=True):
    """A batch. `completed_at`: when the last execution of its jobs ended, once none waits or runs; jobs that recur
    have none in it."""

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
        """Return a batch. Raises `NotFound`. Counted from the executions themselves."""
        async with self._engine.connect() as connection:
            batch = (
                await connection.execute(select(batches).where(batches.c.batch_id == batch_id))
            ).one_or_none()
            if batch is None:
                raise NotFound(f"there is no batch {batch_id}")
            rows = (await connection.execute(counts_statement(batch))).all()
        counts = Counter[str]()
        for row in rows:
            counts[row.status] += row[1]
        ends = [row.ended for row in rows if row.status in FINAL]
        is_over = len(ends) == len(rows) and counts.total() >= batch.total
        return BatchView(
            batch_id=batch_id,
            total=batch.total,
            by_status=dict(counts),
            created_at=batch.created_at,
            completed_at=max(ends) if is_over else None,
        )


def counts_statement(batch: Row[Any]) -> CompoundSelect[Any]:
    """Return the statement that counts a batch's executions by status: those it began with, along their ids, and
    those that ran again, by an index of them alone. What has ended, has so since it was created."""
    live, ended = executions.c, execution_history.c
    since, now = batch.created_at - timedelta(minutes=1), func.now() + timedelta(minutes=1)
    halves = (
        (live, live.started_at, ()),
        (ended, ended.completed_at, (ended.completed_at.between(since, now),)),
    )
    return union_all(
        *(
            select(c.status, func.count(), func.max(instant).label("ended"))
            .where(c.batch_id == batch.batch_id, *among, *days)
            .group_by(c.status)
            for c, instant, days in halves
            for among in (
                (
                    c.execution_id.between(batch.first_execution_id, batch.last_execution_id),
                    c.run_key == _OWN_INSTANT,
                ),
                (c.run_key != _OWN_INSTANT,),
            )
        )
    )


_OWN_INSTANT: ColumnElement[str] = literal_column("''")
"""As the partial indexes say it, which are found by that."""
