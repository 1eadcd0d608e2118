"""The last runs of jobs, and what of each runs and waits at this moment: for many jobs at once, at a bounded cost."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import ARRAY, Select, SmallInteger, TableValuedAlias, Uuid, bindparam, func, select, true
from sqlalchemy import column as sql_column
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.tables import execution_history, executions
from app.domain.ids import shard_of
from app.domain.statuses import Status

LOOKED_BACK = timedelta(days=31)
"""What ended before is no recent run, however long history is kept: each day more is another look into an index."""
MOST_LIVE = 200
"""Due executions of a job that are counted."""


class Run(msgspec.Struct, frozen=True):
    """A finished execution of a job, in short."""

    execution_id: UUID
    status: Status
    scheduled_time: datetime
    started_at: datetime | None
    completed_at: datetime
    lateness_ms: float | None

    @property
    def seconds(self) -> float | None:
        """Return how long its last attempt ran; None where there was none."""
        return (self.completed_at - self.started_at).total_seconds() if self.started_at else None


class LiveRuns(msgspec.Struct, frozen=True, kw_only=True):
    """What of a job runs and waits now; each count stops at `MOST_LIVE`."""

    running: int = 0
    running_since: datetime | None = None
    retrying: int = 0
    waiting: int = 0
    """Due, and not begun."""


class JobRunReads:
    """Reads the runs of jobs."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def recent(self, job_ids: Collection[UUID], *, count: int) -> Mapping[UUID, list[Run]]:
        """Return the last runs of each job, the newest `scheduled_time` first, at most `count` of each."""
        runs: dict[UUID, list[Run]] = {job_id: [] for job_id in job_ids}
        async with self._engine.connect() as connection:
            # A list has 1,500 of them: by their places, as columns by name took a third of its page's time.
            rows = await connection.execute(_RECENT, _places(job_ids) | {"count": count})
            for job_id, execution_id, status, scheduled, started, completed, lateness in rows:
                run = Run(execution_id, _STATUSES[status], scheduled, started, completed, lateness)
                runs[job_id].append(run)
        return runs

    async def live(self, job_ids: Collection[UUID]) -> Mapping[UUID, LiveRuns]:
        """Return what of each job runs and waits."""
        async with self._engine.connect() as connection:
            rows = await connection.execute(_LIVE, _places(job_ids))
            return {
                row.job_id: LiveRuns(**{name: row._mapping[name] for name in LiveRuns.__struct_fields__})
                for row in rows
            }


def _places(job_ids: Collection[UUID]) -> dict[str, Any]:
    return {"job_ids": list(job_ids), "shards": [shard_of(job_id) for job_id in job_ids]}


def _asked() -> TableValuedAlias:
    """Return the jobs that are asked for, as a table."""
    ids, shards = bindparam("job_ids", type_=ARRAY(Uuid)), bindparam("shards", type_=ARRAY(SmallInteger))
    columns = (sql_column("job_id", Uuid), sql_column("shard", SmallInteger))
    return func.unnest(ids, shards).table_valued(*columns, name="asked").render_derived()


def _recent() -> Select[Any]:
    """Select along history_job, backwards, in the days concerned: a job's runs of all of them are merged."""
    asked, c = _asked(), execution_history.c
    newest = (
        select(*(c[name] for name in Run.__struct_fields__))
        .where(c.job_id == asked.c.job_id, c.shard == asked.c.shard)
        .where(c.completed_at.between(func.now() - LOOKED_BACK, func.now() + timedelta(minutes=1)))
        .order_by(c.scheduled_time.desc(), c.execution_id.desc())
        .limit(bindparam("count"))
        .lateral("newest")
    )
    return (
        select(asked.c.job_id, newest)
        .join_from(asked, newest, true())
        .order_by(newest.c.scheduled_time.desc(), newest.c.execution_id.desc())
    )


def _live() -> Select[Any]:
    """Select along executions_one_per_instant, which has what is due before all that is planned."""
    asked, c = _asked(), executions.c
    due = (
        select(c.status, c.due_at, func.coalesce(c.started_at, c.claimed_at).label("began"))
        .where(c.job_id == asked.c.job_id, c.shard == asked.c.shard, c.scheduled_time <= func.now())
        .order_by(c.scheduled_time)
        .limit(MOST_LIVE)
        .lateral("due")
    )
    runs, retries = due.c.status == Status.RUNNING.value, due.c.status == Status.RETRYING.value
    waits = due.c.status.in_([Status.PENDING.value, Status.SCHEDULED.value]) & (due.c.due_at <= func.now())
    return (
        select(
            asked.c.job_id,
            func.count().filter(runs).label("running"),
            func.min(due.c.began).filter(runs).label("running_since"),
            func.count().filter(retries).label("retrying"),
            func.count().filter(waits).label("waiting"),
        )
        .join_from(asked, due, true())
        .group_by(asked.c.job_id)
    )


_STATUSES = {status.value: status for status in Status}
_RECENT, _LIVE = _recent(), _live()
