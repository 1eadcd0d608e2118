"""How fast and how punctually executions end, and what waits: measured on the newest rows, at a bounded cost."""

from collections.abc import Mapping
from uuid import UUID

import msgspec
from sqlalchemy import RowMapping
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.acting import reading
from app.db.clock import DatabaseClock
from app.db.queries import load
from app.db.reads.recent import Recent
from app.db.transactions import Transaction

MOST_COUNTED = 10_000
"""Rows of a queue that are counted or measured: 10 ms, whatever waits and however fast executions end."""
KEPT_SECONDS = 2.0


class Quantiles(msgspec.Struct, frozen=True):
    """The median, and what 99 of 100 stay below; null where nothing was measured."""

    p50: float | None = None
    p99: float | None = None


class QueueLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue holds now. `depth` is counted to `MOST_COUNTED`."""

    queue: str
    depth: int = 0
    oldest_due_seconds: float | None = None
    running: int = 0


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How executions have ended lately. Times are in milliseconds."""

    completed_per_second: float = 0.0
    failed_per_second: float = 0.0
    lateness: Quantiles = Quantiles()
    lateness_max: float | None = None
    due_to_claimed: Quantiles = Quantiles()
    claimed_to_started: Quantiles = Quantiles()
    started_to_completed: Quantiles = Quantiles()


class Paces(msgspec.Struct, frozen=True):
    """The pace of each queue that had ended anything, and over all of them."""

    overall: Pace
    queues: Mapping[str, Pace]


class PaceReads:
    """Reads loads, which are live, and paces, each at most `KEPT_SECONDS` old."""

    def __init__(self, engine: AsyncEngine, clock: DatabaseClock) -> None:
        self._engine = engine
        self._clock = clock
        self._paces = Recent(self._read_paces, seconds=KEPT_SECONDS)
        self._created = Recent(self._read_created, seconds=KEPT_SECONDS)

    async def loads(self, within: Transaction | None = None) -> dict[str, QueueLoad]:
        """Return what each queue holds now."""
        rows = await self._rows(load("queue_loads"), MOST_COUNTED, within=within)
        return {row["queue"]: QueueLoad(**row) for row in rows}

    async def paces(self, window_seconds: int, within: Transaction | None = None) -> Paces:
        """Return how executions have ended within the window.

        Who is in a transaction reads by its connection: waiting for another one while holding that, many might
        wait for each other.
        """
        if within is not None:
            return await self._read_paces(window_seconds, within)
        return await self._paces.get(window_seconds)

    async def created_per_second(self, window_seconds: int) -> float:
        """Return how many executions were created a second within the window."""
        return await self._created.get(window_seconds)

    async def _read_paces(self, window_seconds: int, within: Transaction | None = None) -> Paces:
        rows = await self._rows(load("queue_paces"), float(window_seconds), MOST_COUNTED, within=within)
        overall = next((row for row in rows if row["queue"] is None), None)
        queues = {row["queue"]: _pace(row) for row in rows if row["queue"] is not None}
        # A queue cut short has a span of its own: only the rates of the queues add up to the overall one.
        return Paces(
            msgspec.structs.replace(
                _pace(overall) if overall else Pace(),
                completed_per_second=sum(pace.completed_per_second for pace in queues.values()),
                failed_per_second=sum(pace.failed_per_second for pace in queues.values()),
            ),
            queues,
        )

    async def _read_created(self, window_seconds: int) -> float:
        now = self._clock.unix_seconds()
        least = UUID(int=int((now - window_seconds) * 1000) << 80)
        [row] = await self._rows(load("created_lately"), least, float(window_seconds), MOST_COUNTED)
        span = float(window_seconds)
        if row["created"] == MOST_COUNTED:
            span = max(now - (row["oldest_id"].int >> 80) / 1000, 0.001)
        return float(row["created"]) / span

    async def _rows(
        self, statement: str, *parameters: object, within: Transaction | None = None
    ) -> list[RowMapping]:
        async with reading(self._engine, within) as connection:
            found = await connection.exec_driver_sql(statement, parameters)
            return list(found.mappings())


def _pace(row: RowMapping) -> Pace:
    return Pace(
        completed_per_second=row["completed"] / row["span_seconds"],
        failed_per_second=row["failed"] / row["span_seconds"],
        lateness=_quantiles(row["lateness_ms"]),
        lateness_max=row["lateness_max_ms"],
        due_to_claimed=_quantiles(row["claim_ms"]),
        claimed_to_started=_quantiles(row["start_ms"]),
        started_to_completed=_quantiles(row["run_ms"]),
    )


def _quantiles(pair: list[float | None] | None) -> Quantiles:
    return Quantiles(*(None if value is None else round(value, 3) for value in pair or ()))
