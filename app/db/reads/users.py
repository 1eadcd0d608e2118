"""What a user's executions come to."""

from collections import Counter
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Row, Select, Table, func, select, union_all
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.reads.recent import Recent
from app.db.tables import IS_LEASED, IS_UNLEASED, execution_history, executions
from app.domain.statuses import Status

KEPT_SECONDS = 2.0
CRITICAL = 0
"""The priority called critical."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of executions, those to come among them."""

    by_status: dict[str, int]
    by_task: dict[str, int]
    by_queue: dict[str, int]
    failed_critical: int
    """Failed ones of priority 0."""
    since: datetime | None
    """Only those whose `scheduled_time` is not before it; null: all that are kept."""


class SummaryReads:
    """Reads summaries, each at most `KEPT_SECONDS` old.

    One pass over a user's rows: 400,000 take 0.3 s.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._summaries = Recent(self._read, seconds=KEPT_SECONDS)

    async def get(self, user_id: str, *, since: datetime | None) -> Summary:
        """Return the summary of a user's executions; all zero for somebody unknown."""
        return await self._summaries.get((user_id, since))

    async def _read(self, key: tuple[str, datetime | None]) -> Summary:
        async with self._engine.connect() as connection:
            rows = (await connection.execute(summary_statement(*key))).all()
        return _summary(rows, since=key[1])


def summary_statement(user_id: str, since: datetime | None) -> Select[Any]:
    """Return the statement that counts a user's live and finished executions, by all that a summary shows."""
    halves = union_all(
        _of_user(executions, user_id, since).where(IS_UNLEASED),
        _of_user(executions, user_id, since).where(IS_LEASED),
        _of_user(execution_history, user_id, since),
    )
    found = halves.subquery()
    kinds = (found.c.status, found.c.task_id, found.c.queue, found.c.priority)
    return select(*kinds, func.count().label("executions")).group_by(*kinds)


def _of_user(table: Table, user_id: str, since: datetime | None) -> Select[Any]:
    c = table.c
    statement = select(c.status, c.task_id, c.queue, c.priority).where(c.user_id == user_id)
    return statement if since is None else statement.where(c.scheduled_time >= since)


def _summary(rows: list[Row[Any]], *, since: datetime | None) -> Summary:
    by_status, by_task, by_queue = Counter[str](), Counter[str](), Counter[str]()
    failed_critical = 0
    for row in rows:
        by_status[row.status] += row.executions
        by_task[row.task_id] += row.executions
        by_queue[row.queue] += row.executions
        if row.status == Status.FAILED and row.priority == CRITICAL:
            failed_critical += row.executions
    return Summary(
        by_status=dict(by_status),
        by_task=dict(by_task),
        by_queue=dict(by_queue),
        failed_critical=failed_critical,
        since=since,
    )
