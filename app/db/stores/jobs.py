"""Jobs, stored together with the executions of those that run once."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from app.db.pools import ACQUIRE_TIMEOUT_SECONDS, Pool
from app.db.queries import load
from app.domain.jobs import NewJob

_FIELDS = (
    "shard", "job_id", "user_id", "task_id", "task_version", "name", "tags", "schedule_type", "expression",
    "scheduled_time", "every_seconds", "timezone", "timezone_requested", "gap", "fold", "starts_at", "ends_at",
    "misfire", "misfire_grace_seconds", "overlap", "parameters", "queue", "priority", "max_retries",
    "timeout_seconds", "materialize_at", "created_at", "execution_id", "due_at", "batch_id",
)  # fmt: skip
"""Fields of `NewJob` in the order of the parameters of `create_jobs.sql`."""


class Lane(NamedTuple):
    """Where executions wait for a worker."""

    queue: str
    priority: int


class JobStore:
    """Writes jobs."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def create(self, jobs: Sequence[NewJob]) -> dict[UUID, Lane]:
        """Store jobs in one statement and return those stored, each with the lane its executions wait in.

        One whose task has gone, or has changed since the parameters were checked, or whose queue does not
        exist, is left out.
        """
        columns = [[_value(job, name) for job in jobs] for name in _FIELDS]
        async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT_SECONDS) as connection:
            rows = await connection.fetch(load("create_jobs"), *columns)
        return {row[0]: Lane(row[1], row[2]) for row in rows}


def _value(job: NewJob, name: str) -> object:
    """Return a field. Tags go as an array literal: `unnest` cannot take arrays of different lengths apart.
    Their pattern admits no character that would need escaping."""
    if name == "tags":
        return "{" + ",".join(f'"{tag}"' for tag in job.tags) + "}"
    return getattr(job, name)
