"""What holds for a job's runs, where the job leaves it to its task or queue."""

from uuid import UUID

import msgspec
from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.tables import jobs, queues, tasks
from app.domain.ids import shard_of
from app.domain.retry import Backoff, RetryPolicy

DEFAULT_DELAY_MS = 2_000
"""Of queues that promise nothing else."""


class JobPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for a job's runs."""

    task_name: str
    queue: str
    priority: int
    timeout_seconds: float
    max_retries: int
    backoff: Backoff
    max_delay_ms: int
    """What starts later is late."""


class JobPolicyReads:
    """Reads what holds for jobs."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, job_id: UUID) -> JobPolicy | None:
        """Return it; None where the job's task or queue is gone."""
        place = {"its_shard": shard_of(job_id), "its_id": job_id}
        async with self._engine.connect() as connection:
            row = (await connection.execute(_POLICY, place)).one_or_none()
        if row is None:
            return None
        policy, delay, most = row.retry_policy, row.retry_delay_seconds, row.retry_max_delay_seconds
        names = set(JobPolicy.__struct_fields__) - {"backoff"}
        return JobPolicy(
            backoff=Backoff(RetryPolicy(policy), delay, most), **{name: row._mapping[name] for name in names}
        )


def _policy() -> Select[tuple[object, ...]]:
    j, t, q = jobs.c, tasks.c, queues.c
    return (
        select(
            t.name.label("task_name"),
            q.queue,
            func.coalesce(j.priority, t.priority).label("priority"),
            func.coalesce(j.timeout_seconds, t.timeout_seconds).label("timeout_seconds"),
            func.coalesce(j.max_retries, t.max_retries, q.max_retries).label("max_retries"),
            func.coalesce(q.max_delay_ms, DEFAULT_DELAY_MS).label("max_delay_ms"),
            t.retry_policy,
            t.retry_delay_seconds,
            t.retry_max_delay_seconds,
        )
        .select_from(jobs)
        .join(tasks, t.task_id == j.task_id)
        .join(queues, q.queue == func.coalesce(j.queue, t.queue))
        .where(j.shard == bindparam("its_shard"), j.job_id == bindparam("its_id"))
    )


_POLICY = _policy()
