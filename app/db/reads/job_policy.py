"""What holds for a job's runs, where the job leaves it to its task or queue."""

from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, RowMapping, Select, bindparam, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.tables import jobs, queues, tasks, users
from app.domain.ids import shard_of
from app.domain.limits import RateLimit
from app.domain.retry import Backoff, RetryPolicy

DEFAULT_DELAY_MS = 2_000
"""Of queues that promise nothing else."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What limits all runs of a task, in a queue or of a user; null is no limit."""

    most: int | None
    """At once."""
    per_hour: int | None = None
    rate: RateLimit | None


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
    concurrency_key: str | None
    concurrency_limit: int | None
    cpu_cores: float
    memory_mb: int
    labels: dict[str, str]
    of_task: Limits
    of_queue: Limits
    of_user: Limits


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
        return _read(row._mapping)


def _read(row: RowMapping) -> JobPolicy:
    policy, delay, most = row["retry_policy"], row["retry_delay_seconds"], row["retry_max_delay_seconds"]
    plain = set(JobPolicy.__struct_fields__) & row.keys()
    return JobPolicy(
        **{name: row[name] for name in plain},
        backoff=Backoff(RetryPolicy(policy), delay, most),
        of_task=Limits(most=row["task_most"], rate=_rate(row, "task")),
        of_queue=Limits(most=row["queue_most"], rate=_rate(row, "queue")),
        of_user=Limits(most=row["user_most"], per_hour=row["user_per_hour"], rate=_rate(row, "user")),
    )


def _rate(row: RowMapping, whose: str) -> RateLimit | None:
    per_second = row[f"{whose}_rate"]
    return None if per_second is None else RateLimit(per_second=per_second, burst=row[f"{whose}_burst"])


def _policy() -> Select[tuple[object, ...]]:
    j, t, q, u = jobs.c, tasks.c, queues.c, users.c
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
            func.coalesce(j.concurrency_key, t.concurrency_key).label("concurrency_key"),
            func.coalesce(j.concurrency_limit, t.concurrency_limit).label("concurrency_limit"),
            *(t.cpu_cores, t.memory_mb, t.labels),
            *_limits("task", t.concurrency, t.rate_per_second, t.rate_burst),
            *_limits("queue", q.max_concurrency, q.rate_per_second, q.rate_burst),
            *_limits("user", u.max_concurrent_jobs, u.rate_per_second, u.rate_burst),
            u.max_jobs_per_hour.label("user_per_hour"),
        )
        .select_from(jobs)
        .join(tasks, t.task_id == j.task_id)
        .join(queues, q.queue == func.coalesce(j.queue, t.queue))
        .outerjoin(users, u.user_id == j.user_id)
        .where(j.shard == bindparam("its_shard"), j.job_id == bindparam("its_id"))
    )


def _limits(
    whose: str, most: ColumnElement[int], rate: ColumnElement[float], burst: ColumnElement[int]
) -> tuple[ColumnElement[Any], ...]:
    return most.label(f"{whose}_most"), rate.label(f"{whose}_rate"), burst.label(f"{whose}_burst")


_POLICY = _policy()
