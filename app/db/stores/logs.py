"""Captured log lines."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from app.db.partitions import fetch_making_partitions
from app.db.pools import Pool
from app.db.queries import load


class Line(Protocol):
    """A captured line, as the worker hands it over."""

    @property
    def sequence(self) -> int: ...
    @property
    def time(self) -> datetime: ...
    @property
    def level(self) -> str: ...
    @property
    def stream(self) -> str: ...
    @property
    def message(self) -> str: ...


class StoredLine(msgspec.Struct, frozen=True):
    """A line with the attempt that wrote it."""

    shard: int
    execution_id: UUID
    attempt_number: int
    line: Line


class LogStore:
    """Log lines of executions, written in batches."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def append(self, lines: Sequence[StoredLine]) -> None:
        """Store lines. A line that is stored already stays as it is."""
        await fetch_making_partitions(
            self._pool,
            load("append_logs"),
            [x.shard for x in lines],
            [x.execution_id for x in lines],
            [x.attempt_number for x in lines],
            [x.line.sequence for x in lines],
            [x.line.time for x in lines],
            [x.line.level for x in lines],
            [x.line.stream for x in lines],
            [x.line.message for x in lines],
        )
