"""What ended when, for the strip above a list: from rollups, or counted among the newest where they do not know."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.clock import DatabaseClock
from app.db.reads.recent import Recent
from app.db.tables import execution_history, rollups
from app.domain.ids import shard_of
from app.domain.statuses import Disposition, Status

MOST_BUCKETS = 60
MOST_COUNTED = 5_000
"""Of a job's or a user's executions: those are not rolled up."""
KEPT_SECONDS = 5.0
_FINE, _COARSE = 60, 900
_FINE_KEPT = timedelta(hours=23)
_WIDTHS = (
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10_800,
    21_600,
    43_200,
    86_400,
    172_800,
    864_000,
    8_640_000,
)
"""Seconds of a bucket to choose from."""
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)


class EndsOf(msgspec.Struct, frozen=True, kw_only=True):
    """Whose ends, and when. A job's or a user's are never narrowed to a queue or a task."""

    since: datetime
    until: datetime
    queue: str | None = None
    task_id: str | None = None
    job_id: UUID | None = None
    user_id: str | None = None


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """What ended within a stretch of time."""

    at: datetime
    on_time: int = 0
    late: int = 0
    failed: int = 0
    other: int = 0
    """Cancelled or skipped."""

    @property
    def total(self) -> int:
        """Return how many ended."""
        return self.on_time + self.late + self.failed + self.other


class Ends(msgspec.Struct, frozen=True):
    """Buckets without a gap, the oldest first."""

    buckets: list[Bucket]
    width: timedelta
    is_whole: bool = True
    """False: only the newest were counted, and the buckets before them would show less than there was."""


class EndReads:
    """Reads what ended when; each answer is kept for a moment."""

    def __init__(self, engine: AsyncEngine, clock: DatabaseClock) -> None:
        self._engine = engine
        self._clock = clock
        self._recent = Recent(self._read, seconds=KEPT_SECONDS)

    async def ends(self, of: EndsOf) -> Ends:
        """Return what ended in a span, in at most `MOST_BUCKETS` buckets and one more that the span's ends cut."""
        width = self._width(of)
        since, until = _floor(of.since, width), _floor(of.until, width) + width
        return await self._recent.get((msgspec.structs.replace(of, since=since, until=until), width))

    def _width(self, of: EndsOf) -> timedelta:
        is_rolled_up = of.job_id is None and of.user_id is None
        least = (of.until - of.since).total_seconds() / MOST_BUCKETS
        if is_rolled_up and of.since < self._clock.now() - _FINE_KEPT:
            least = max(least, _COARSE)
        return timedelta(seconds=next((width for width in _WIDTHS if width >= least), _WIDTHS[-1]))

    async def _read(self, asked: tuple[EndsOf, timedelta]) -> Ends:
        of, width = asked
        counts = of.job_id is not None or of.user_id is not None
        statement = _counted(of, width) if counts else _rolled_up(of, width)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all()
        found = _by_bucket(rows)
        is_whole = not counts or sum(row.executions for row in rows) < MOST_COUNTED
        first = of.since if is_whole else min(found, default=of.since) + width  # the oldest is cut
        steps = round((of.until - first) / width)
        instants = [first + i * width for i in range(steps)]
        return Ends([found.get(at, Bucket(at=at)) for at in instants], width, is_whole)


def _floor(instant: datetime, width: timedelta) -> datetime:
    return instant - (instant - _ORIGIN) % width


def _rolled_up(of: EndsOf, width: timedelta) -> Select[Any]:
    c = rollups.c
    is_fine = width < timedelta(seconds=_COARSE)
    at = func.date_bin(width, c.bucket, _ORIGIN).label("at")
    conditions = [
        c.grain_seconds == (_FINE if is_fine else _COARSE),
        c.bucket >= of.since,
        c.bucket < of.until,
    ]
    conditions += [
        c[name] == value for name in ("queue", "task_id") if (value := getattr(of, name)) is not None
    ]
    return (
        select(at, c.status, func.sum(c.executions).label("executions"), func.sum(c.late).label("late"))
        .where(*conditions)
        .group_by(at, c.status)
    )


def _counted(of: EndsOf, width: timedelta) -> Select[Any]:
    c = execution_history.c
    whose = (
        (c.shard == shard_of(of.job_id), c.job_id == of.job_id)
        if of.job_id is not None
        else (c.user_id == of.user_id,)
    )
    newest = (
        select(c.completed_at, c.status, c.disposition)
        .where(*whose, c.scheduled_time < of.until, c.completed_at >= of.since, c.completed_at < of.until)
        .order_by(c.scheduled_time.desc(), c.execution_id.desc())
        .limit(MOST_COUNTED)
        .subquery()
        .c
    )
    at = func.date_bin(width, newest.completed_at, _ORIGIN).label("at")
    late = func.count().filter(newest.disposition == Disposition.LATE.value).label("late")
    return select(at, newest.status, func.count().label("executions"), late).group_by(at, newest.status)


def _by_bucket(rows: Iterable[Row[Any]]) -> dict[datetime, Bucket]:
    counts: dict[datetime, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        bucket = counts[row.at]
        match row.status:
            case Status.COMPLETED.value:
                bucket["on_time"] += int(row.executions - row.late)
                bucket["late"] += int(row.late)
            case Status.FAILED.value:
                bucket["failed"] += int(row.executions)
            case _:
                bucket["other"] += int(row.executions)
    return {at: Bucket(at=at, **bucket) for at, bucket in counts.items()}
