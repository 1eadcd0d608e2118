"""The captured log of an attempt, from wherever a page wants to begin."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Select, select, tuple_
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.reads.attempts import LogLineView
from app.db.tables import execution_logs
from app.domain.ids import shard_of

PAGE_LINES = 500
LINES_BEFORE = 50
"""Shown above a line that is asked for."""
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_CLOCKS_APART = timedelta(minutes=1)


class LeastLevel(StrEnum):
    """From which level on lines are shown."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the levels that are shown."""
        return _LEVELS[_LEVELS.index(self.value) :]


class LogPlace(msgspec.Struct, frozen=True, order=True):
    """Where a line stands. A run that its worker gave back counts as no attempt: the next one has the same number and
    counts its lines from 1 again. So lines are in the order of their times."""

    time: datetime
    sequence: int


class LogPart(msgspec.Struct, frozen=True):
    """Lines in order, and whether there are others before and after them."""

    lines: list[LogLineView]
    has_earlier: bool = False
    has_later: bool = False


class LogOf(msgspec.Struct, frozen=True):
    """Whose log, and from which level on; None: all of it."""

    execution_id: UUID
    attempt_number: int
    least: LeastLevel | None = None


class LogReads:
    """Reads logs. An attempt has some thousands of lines at most, which its primary key finds."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def newest(self, of: LogOf, *, before: LogPlace | None = None) -> LogPart:
        """Return the last lines, or the last before a place."""
        lines = await self._lines(_backwards(of, before, PAGE_LINES + 1))
        return LogPart(lines[:PAGE_LINES][::-1], len(lines) > PAGE_LINES, before is not None)

    async def around(self, of: LogOf, line: int) -> LogPart:
        """Return the lines from a little before a line on; where there is no such line, the last ones."""
        found = await self._lines(_backwards(of, None, 1).where(execution_logs.c.sequence == line))
        if not found:
            return await self.newest(of)
        before = await self._lines(_backwards(of, place_of(found[0]), LINES_BEFORE + 1))
        part = await self.after(of, place_of(found[0]))
        lines = [*before[:LINES_BEFORE][::-1], found[0], *part.lines]
        return LogPart(lines, len(before) > LINES_BEFORE, part.has_later)

    async def after(self, of: LogOf, place: LogPlace | None) -> LogPart:
        """Return the lines that follow a place, or the first ones."""
        c = execution_logs.c
        following = [tuple_(c.time, c.sequence) > (place.time, place.sequence)] if place else []
        lines = await self._lines(
            _of(of).where(*following).order_by(c.time, c.sequence).limit(PAGE_LINES + 1)
        )
        return LogPart(lines[:PAGE_LINES], place is not None, len(lines) > PAGE_LINES)

    async def whole(self, execution_id: UUID, attempt_number: int) -> AsyncIterator[list[LogLineView]]:
        """Yield all lines of an attempt, some at a time."""
        of, place = LogOf(execution_id, attempt_number), None
        while True:
            part = await self.after(of, place)
            if part.lines:
                yield part.lines
                place = place_of(part.lines[-1])
            if not part.has_later:
                return

    async def _lines(self, statement: Select[Any]) -> list[LogLineView]:
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all()
        return [msgspec.convert(row, LogLineView, from_attributes=True) for row in rows]


def place_of(line: LogLineView) -> LogPlace:
    """Return where a line stands."""
    return LogPlace(line.time, line.sequence)


def _backwards(of: LogOf, before: LogPlace | None, limit: int) -> Select[Any]:
    c = execution_logs.c
    earlier = [tuple_(c.time, c.sequence) < (before.time, before.sequence)] if before else []
    return _of(of).where(*earlier).order_by(c.time.desc(), c.sequence.desc()).limit(limit)


def _of(of: LogOf) -> Select[Any]:
    c = execution_logs.c
    conditions: list[ColumnElement[bool]] = [
        c.shard == shard_of(of.execution_id),
        c.execution_id == of.execution_id,
        c.attempt_number == of.attempt_number,
        c.time >= made_at(of.execution_id) - _CLOCKS_APART,  # older days need not be looked into
    ]
    if of.least is not None:
        conditions.append(c.level.in_(of.least.levels))
    return select(c.sequence, c.time, c.level, c.stream, c.attempt_number, c.message).where(*conditions)


def made_at(any_id: UUID) -> datetime:
    """Return when an id was made, which it tells itself (UUIDv7)."""
    milliseconds = any_id.int >> 80 & (1 << 47) - 1  # ids come from anywhere: some year we know
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
