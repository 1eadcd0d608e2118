"""How much ended, when, and how: read from rollups, so that it costs the same however much there is."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import msgspec
from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.clock import DatabaseClock
from app.db.reads.recent import Recent
from app.db.tables import rollups
from app.domain.statuses import Status

KEPT_SECONDS = 3.0
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)


class Span(StrEnum):
    """How far back a chart looks."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"


class _Shape(NamedTuple):
    length: timedelta
    bucket: timedelta
    grain_seconds: int


_SHAPES = {
    Span.HOUR: _Shape(timedelta(hours=1), timedelta(minutes=1), 60),
    Span.DAY: _Shape(timedelta(days=1), timedelta(minutes=15), 900),
    Span.WEEK: _Shape(timedelta(days=7), timedelta(hours=2), 900),
}


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """What ended within a stretch of time."""

    at: datetime
    completed: int = 0
    failed: int = 0
    other: int = 0
    """Cancelled or skipped."""


class Rates(msgspec.Struct, frozen=True):
    """The buckets of a span, the oldest first, none left out; each is `bucket_seconds` long."""

    buckets: list[Bucket]
    bucket_seconds: float

    @property
    def completed(self) -> int:
        """Return how many completed in the whole span."""
        return sum(bucket.completed for bucket in self.buckets)

    @property
    def failed(self) -> int:
        """Return how many failed in the whole span."""
        return sum(bucket.failed for bucket in self.buckets)

    @property
    def success(self) -> float | None:
        """Return the share that completed of what ran, from 0 to 1; None: nothing ran."""
        ran = self.completed + self.failed
        return self.completed / ran if ran else None


class RateReads:
    """Reads rates, each span at most `KEPT_SECONDS` old."""

    def __init__(self, engine: AsyncEngine, clock: DatabaseClock) -> None:
        self._engine = engine
        self._clock = clock
        self._recent = Recent(self._read, seconds=KEPT_SECONDS)

    async def rates(self, span: Span) -> Rates:
        """Return what ended within the span until now."""
        return await self._recent.get(span)

    async def _read(self, span: Span) -> Rates:
        shape, now = _SHAPES[span], self._clock.now()
        last = now - (now - _ORIGIN) % shape.bucket
        first = last - shape.length + shape.bucket
        async with self._engine.connect() as connection:
            rows = await connection.execute(_statement(shape, since=first))
            counted = {row.at: Bucket(**row._mapping) for row in rows}
        instants = [first + i * shape.bucket for i in range(int(shape.length / shape.bucket))]
        buckets = [counted.get(at, Bucket(at=at)) for at in instants]
        return Rates(buckets, shape.bucket.total_seconds())


def _statement(shape: _Shape, *, since: datetime) -> Select[tuple[datetime, int, int, int]]:
    c = rollups.c
    at = func.date_bin(shape.bucket, c.bucket, _ORIGIN).label("at")
    total = func.sum(c.executions)
    ran = (Status.COMPLETED.value, Status.FAILED.value)
    counts = (
        total.filter(c.status == Status.COMPLETED.value).label("completed"),
        total.filter(c.status == Status.FAILED.value).label("failed"),
        total.filter(c.status.not_in(ran)).label("other"),
    )
    whole = (func.coalesce(count, 0).cast(rollups.c.executions.type).label(count.name) for count in counts)
    return select(at, *whole).where(c.grain_seconds == shape.grain_seconds, c.bucket >= since).group_by(at)
