"""How the whole house is doing, each part at a bounded cost.

Those who ask at the same time share one reading. It is kept for `KEPT_SECONDS`, but not beyond a change: who was told
of one asks under another `version`.
"""

from datetime import datetime
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.queries import load
from app.db.reads.executions import ErrorView
from app.db.reads.late_limited import late_limited
from app.db.reads.recent import Recent
from app.domain.ids import shard_of

FAILURES_LOOKED_AT = 500
LATE_COUNTED = 1000
KEPT_SECONDS = 1.5
SIZE_KEPT_SECONDS = 60.0
"""To ask for it looks at every file of the database."""

V = TypeVar("V", bound=msgspec.Struct)
Key: TypeAlias = tuple[int, int]
"""How many, and under which version."""


class FailingJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job whose newest run failed."""

    job_id: UUID
    job_name: str | None
    user_id: str
    task_id: str
    execution_id: UUID
    failed_at: datetime
    error: ErrorView
    failures: int
    """Within a day, as far as looked at."""
    since: datetime


class Failing(msgspec.Struct, frozen=True):
    """Jobs that fail: the last ones, and how many there are; `more` where not all failures were looked at."""

    items: list[FailingJob]
    total: int = 0
    more: bool = False


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """An execution that waits."""

    execution_id: UUID
    job_id: UUID
    job_exists: bool
    """It may have been deleted while an attempt of it ran."""
    job_name: str | None
    task_id: str
    queue: str
    due_at: datetime
    attempt_number: int = 0


class Late(msgspec.Struct, frozen=True):
    """Executions that should have begun, and that no limit keeps waiting; `total` is counted to `LATE_COUNTED`."""

    items: list[Waiting]
    total: int = 0


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What may be wrong with the house itself."""

    materializer_behind_seconds: float | None
    """How long a schedule has waited for being planned; null: none waits."""
    oldest_transaction_seconds: float | None
    """Old transactions keep PostgreSQL from clearing away what is dead."""
    rollups_behind_seconds: float
    postgresql: int
    database_bytes: int


class FirstSteps(msgspec.Struct, frozen=True, kw_only=True):
    """Which steps of beginning have been taken: told by what there is, never stored."""

    worker: bool
    task: bool
    job: bool
    run: bool

    @property
    def all_taken(self) -> bool:
        """Tell whether there is nothing left to be shown."""
        return self.worker and self.task and self.job and self.run


class OverviewReads:
    """Reads the parts."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._failing = Recent(self._read_failing, seconds=KEPT_SECONDS)
        self._late = Recent(self._read_late, seconds=KEPT_SECONDS)
        self._upcoming = Recent(self._read_upcoming, seconds=KEPT_SECONDS)
        self._size = Recent(self._read_size, seconds=SIZE_KEPT_SECONDS)
        self._begun: FirstSteps | None = None
        """Nobody begins twice: once all steps have been taken, nobody looks again."""

    async def failing(self, limit: int, *, version: int = 0) -> Failing:
        """Return the jobs that failed last."""
        return await self._failing.get((limit, version))

    async def late(self, limit: int, *, version: int = 0) -> Late:
        """Return the executions that are the longest overdue."""
        return await self._late.get((limit, version))

    async def upcoming(self, limit: int, *, version: int = 0) -> list[Waiting]:
        """Return the executions that come next."""
        return await self._upcoming.get((limit, version))

    async def health(self) -> Health:
        """Return how the house itself is doing."""
        [row] = await self._rows(load("house_health"))
        return Health(**row, database_bytes=await self._size.get("database"))

    async def first_steps(self) -> FirstSteps:
        """Return which steps of beginning have been taken."""
        if self._begun is not None:
            return self._begun
        [row] = await self._rows(load("first_steps"))
        steps = FirstSteps(**row)
        self._begun = steps if steps.all_taken else None
        return steps

    async def _read_failing(self, key: Key) -> Failing:
        rows = await self._rows(load("failing_jobs"), FAILURES_LOOKED_AT, key[0])
        if not rows:
            return Failing([])
        return Failing([_view(row, FailingJob) for row in rows], rows[0]["total"], rows[0]["more"])

    async def _read_late(self, key: Key) -> Late:
        async with self._engine.connect() as connection:
            limited = (await late_limited(connection))[:LATE_COUNTED]
            shards = [shard_of(each) for each in limited]
            parameters = (LATE_COUNTED, key[0], shards, limited)
            found = await connection.exec_driver_sql(load("late_waiting"), parameters)
        rows = [dict(row) for row in found.mappings()]
        return Late([_view(row, Waiting) for row in rows], rows[0]["total"]) if rows else Late([])

    async def _read_upcoming(self, key: Key) -> list[Waiting]:
        return [_view(row, Waiting) for row in await self._rows(load("upcoming"), key[0])]

    async def _read_size(self, _key: str) -> int:
        async with self._engine.connect() as connection:
            size: int = await connection.scalar(text("SELECT pg_database_size(current_database())"))
            return size

    async def _rows(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        async with self._engine.connect() as connection:
            found = await connection.exec_driver_sql(statement, parameters)
            return [dict(row) for row in found.mappings()]


def _view(row: dict[str, Any], kind: type[V]) -> V:
    if isinstance(row.get("error"), str):  # a statement of its own: SQLAlchemy does not know that it is JSON
        row |= {"error": msgspec.json.decode(row["error"])}
    return msgspec.convert({name: row[name] for name in row if name in kind.__struct_fields__}, kind)
