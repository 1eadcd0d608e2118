"""Executions that wait for other jobs, and what becomes of them."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast
from uuid import UUID

import asyncpg
import msgspec

from app.db.pools import Connection, Pool
from app.db.queries import load
from app.domain.dependencies import UpstreamEnd, failure_of, may_begin, way_back
from app.domain.errors import InvalidInput
from app.domain.hints import Ready
from app.domain.ids import SHARDS, shard_of

AHEAD = timedelta(seconds=10)
"""What is due so soon may be let go: if all that it waits for has completed, it begins on the dot."""
UPSTREAM_ENDS = load("upstream_ends")
MOST_AWAITED = 10_000
"""Jobs that a worker knows to be waited for; what ends of others is found by maintenance."""


class Waiting(NamedTuple):
    """A place in the order in which executions that wait are due."""

    due_at: datetime
    execution_id: UUID


FIRST = Waiting(datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


class Looked(NamedTuple):
    """What a look came to: where executions may begin now, and where the next one goes on; None: that were all."""

    ready: list[Ready]
    upto: Waiting | None


class DependencyStore:
    """Lets executions begin that waited for other jobs, or ends them. Any number of processes may do so."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def shards_to_unblock(self, *, now: datetime) -> list[int]:
        """Return the shards in which executions wait for other jobs and are due soon."""
        return [
            row["shard"] for row in await self._pool.fetch(load("shards_to_unblock"), SHARDS, now + AHEAD)
        ]

    async def awaited(self) -> set[UUID]:
        """Return the jobs that others depend on."""
        return {row["job_id"] for row in await self._pool.fetch(load("awaited_jobs"), MOST_AWAITED)}

    async def shards_after(self, job_ids: Collection[UUID], *, now: datetime) -> list[int]:
        """Return the shards in which executions wait for these jobs."""
        rows = await self._pool.fetch(load("blocked_by"), list(job_ids), now + AHEAD, len(SHARDS))
        return [row["shard"] for row in rows]

    async def look(self, shard: int, *, now: datetime, after: Waiting, limit: int) -> Looked:
        """Decide about the next `limit` executions of a shard that wait and are due soon."""
        async with self._pool.acquire() as pooled, pooled.transaction():
            connection = cast("Connection", pooled)
            rows = await connection.fetch(load("blocked_executions"), shard, now + AHEAD, *after, limit)
            if not rows:
                return Looked([], None)
            ready = await _decide(connection, shard, rows)
        upto = Waiting(rows[-1]["due_at"], rows[-1]["execution_id"]) if len(rows) == limit else None
        return Looked(ready, upto)


async def ends_of(
    connection: Connection, waiting: Sequence[tuple[datetime, Sequence[UUID]]]
) -> list[list[UpstreamEnd]]:
    """Return of each waiting execution, by its instant and what its job depends on, what has become of that."""
    asked = [(nth, job_id, instant) for nth, (instant, jobs) in enumerate(waiting) for job_id in jobs]
    columns = (
        [shard_of(job_id) for _, job_id, _ in asked],
        [job_id for _, job_id, _ in asked],
        [instant for *_, instant in asked],
    )
    rows = await connection.fetch(UPSTREAM_ENDS, *columns) if asked else []
    found: list[list[UpstreamEnd]] = [[] for _ in waiting]
    for row in rows:
        nth, job_id, _ = asked[row["nth"] - 1]
        end = UpstreamEnd(job_id, row["status"], row["execution_id"], row["disposition"], row["is_known"])
        found[nth].append(end)
    return found


async def _decide(connection: Connection, shard: int, rows: Sequence[asyncpg.Record]) -> list[Ready]:
    ends = await ends_of(connection, [(row["scheduled_time"], row["depends_on"]) for row in rows])
    begins: list[UUID] = []
    fails: list[tuple[UUID, str]] = []
    for row, upstream in zip(rows, ends, strict=True):
        failure = failure_of(upstream)
        if failure is not None:
            fails.append((row["execution_id"], msgspec.json.encode(failure).decode()))
        elif may_begin(upstream):
            begins.append(row["execution_id"])
    if fails:
        await connection.fetch(load("skip_blocked"), shard, *map(list, zip(*fails, strict=True)))
    if not begins:
        return []
    return [Ready(shard, *row) for row in await connection.fetch(load("unblock"), shard, begins)]


async def require_no_circle(connection: Connection, job_id: UUID, depends_on: Sequence[UUID]) -> None:
    """Refuse a job that would wait for itself in the end. Raises `InvalidInput`.

    Within a transaction that changes what the job depends on; another one that changes that of any job waits for it.
    """
    if not depends_on:
        return
    await connection.execute(load("lock_dependencies"))
    rows = await connection.fetch(load("depends_on_what"), list(depends_on))
    way = way_back(job_id, depends_on, {row["job_id"]: row["depends_on"] for row in rows})
    if way is not None:
        shown = " → ".join(str(each) for each in way)
        detail = (
            f"the jobs would wait for each other in a circle: {shown}; take one of these dependencies out"
        )
        raise InvalidInput(detail, pointer="/depends_on", code="circular_jobs")
