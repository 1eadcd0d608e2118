"""Workers as people read them."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Row, Select, and_, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.acting import reading
from app.db.reads.paging import Page, Window, older_than
from app.db.tables import workers
from app.db.transactions import Transaction
from app.domain.cursors import write_cursor
from app.domain.errors import NotFound

STALE_AFTER = timedelta(seconds=15)
"""Three heartbeats."""
LOST_AFTER = timedelta(seconds=60)
STOPPED_SHOWN_FOR = timedelta(hours=1)
LOST_SHOWN_FOR = timedelta(days=1)


class WorkerState(StrEnum):
    """How a worker is, by its last heartbeat."""

    LIVE = "live"
    DRAINING = "draining"
    """Finishes what it has and claims nothing more."""
    STALE = "stale"
    """Not heard of for 15 s."""
    LOST = "lost"
    """Not heard of for a minute."""
    STOPPED = "stopped"
    """Signed off in good order."""


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it is read; `running` is what it carried at its last heartbeat."""

    worker_id: UUID
    host: str
    pid: int
    version: str
    queues: list[str]
    """Those it serves; empty: all."""
    labels: dict[str, Any]
    suspects_only: bool
    """It was begun by another worker, for executions that must run alone."""
    slots: int
    running: int
    cpu_cores: float | None
    """Cores of its host that work there may take in all."""
    memory_mb: int | None
    state: WorkerState
    heartbeat_at: datetime
    started_at: datetime
    stopped_at: datetime | None
    drain_reason: str | None
    """Why it has stopped claiming by itself; None where somebody else wanted it to, or nobody does."""


class StateCount(msgspec.Struct, frozen=True):
    """How many workers are in a state, and what they can and do carry together."""

    state: WorkerState
    workers: int = 0
    slots: int = 0
    running: int = 0


class WorkerReads:
    """Reads workers."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, worker_id: UUID, *, within: Transaction | None = None) -> WorkerView:
        """Return a worker. Raises `NotFound`."""
        statement = _workers().where(workers.c.worker_id == worker_id)
        async with reading(self._engine, within) as connection:
            row = (await connection.execute(statement)).one_or_none()
        if row is None:
            raise NotFound(f"there is no worker {worker_id}")
        return _view(row)

    async def list_page(self, window: Window) -> Page[WorkerView]:
        """Return a page of workers, the last started first.

        One that stopped in good order is listed for an hour longer, a lost one for a day.
        """
        statement = (
            _workers()
            .where(_is_shown(), *older_than(window.cursor, workers.c.started_at, workers.c.worker_id))
            .order_by(workers.c.started_at.desc(), workers.c.worker_id.desc())
            .limit(window.limit + 1)
        )
        async with self._engine.connect() as connection:
            found = [_view(row) for row in await connection.execute(statement)]
        page, more = found[: window.limit], len(found) > window.limit
        cursor = write_cursor(page[-1].started_at, page[-1].worker_id, window.filters) if more else None
        return Page(page, cursor)

    async def count_states(self) -> list[StateCount]:
        """Count the workers that are listed, by state; every state is there."""
        shown = _workers().where(_is_shown()).subquery().c
        totals = (func.count(), func.sum(shown.slots), func.sum(shown.running))
        statement = select(shown.state, *totals).group_by(shown.state)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all()
        counted = {row.state: StateCount(WorkerState(row.state), *row[1:]) for row in rows}
        return [counted.get(state, StateCount(state)) for state in WorkerState]


def _workers() -> Select[Any]:
    return select(*(workers.c[name] for name in _COLUMNS), _state().label("state"))


_COLUMNS = tuple(name for name in WorkerView.__struct_fields__ if name != "state")


def _state() -> ColumnElement[str]:
    c = workers.c
    return case(
        (c.stopped_at.is_not(None), WorkerState.STOPPED.value),
        (c.heartbeat_at < func.now() - LOST_AFTER, WorkerState.LOST.value),
        (c.heartbeat_at < func.now() - STALE_AFTER, WorkerState.STALE.value),
        (c.draining, WorkerState.DRAINING.value),
        else_=WorkerState.LIVE.value,
    )


def _is_shown() -> ColumnElement[bool]:
    c = workers.c
    return or_(
        and_(c.stopped_at.is_(None), c.heartbeat_at > func.now() - LOST_SHOWN_FOR),
        c.stopped_at > func.now() - STOPPED_SHOWN_FOR,
    )


def _view(row: Row[Any]) -> WorkerView:
    return msgspec.convert(row, WorkerView, from_attributes=True)
