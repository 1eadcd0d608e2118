"""Queues as people read them: what was defined, what waits in them, and how late they run."""

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Row, Select, and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.acting import reading
from app.db.reads.paces import PaceReads, Quantiles, QueueLoad
from app.db.tables import queues
from app.db.transactions import Transaction
from app.domain.errors import NotFound
from app.domain.limits import RateLimit, rate_limit
from app.domain.queues import Durability

LATENESS_WINDOW_SECONDS = 300


class PauseView(msgspec.Struct, frozen=True, kw_only=True):
    """Who paused a queue, when, why, and until when."""

    by: str | None
    at: datetime
    reason: str | None
    until: datetime | None


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as it is read."""

    queue: str
    priority: int
    max_delay_ms: int | None
    lease_seconds: float
    max_retries: int
    batch_size: int
    durability: Durability
    reserved_slots: int
    interruptible: bool
    max_concurrency: int | None
    rate_limit: RateLimit | None
    paused: PauseView | None
    """Null while it is not paused."""
    depth: int
    """Executions that are due and wait; 10,000 means that many or more."""
    running: int
    oldest_due_seconds: float | None
    """For how long the first of them has waited."""
    lateness_ms: Quantiles
    """Of what ended within the last 5 minutes."""
    created_at: datetime
    updated_at: datetime
    version: int


class QueueReads:
    """Reads queues."""

    def __init__(self, engine: AsyncEngine, paces: PaceReads) -> None:
        self._engine = engine
        self._paces = paces

    async def get(self, queue: str, *, within: Transaction | None = None) -> QueueView:
        """Return a queue. Raises `NotFound`."""
        found = await self._views(_definitions().where(queues.c.queue == queue), within)
        if not found:
            raise NotFound(f"there is no queue {queue!r:.100}")
        return found[0]

    async def list_page(self, *, limit: int, after: str | None) -> list[QueueView]:
        """Return up to `limit` queues in the order of their names, those after `after`."""
        statement = _definitions().order_by(queues.c.queue).limit(limit)
        return await self._views(statement if after is None else statement.where(queues.c.queue > after))

    async def _views(self, statement: Select[Any], within: Transaction | None = None) -> list[QueueView]:
        async with reading(self._engine, within) as connection:
            rows = (await connection.execute(statement)).all()
        if not rows:
            return []
        loads, paces = (
            await self._paces.loads(within),
            await self._paces.paces(LATENESS_WINDOW_SECONDS, within),
        )
        lateness = {queue: pace.lateness for queue, pace in paces.queues.items()}
        return [
            _view(row, loads.get(row.queue, QueueLoad(queue=row.queue)), lateness.get(row.queue, Quantiles()))
            for row in rows
        ]


def _definitions() -> Select[Any]:
    """Select queues, and whether each is paused now: a pause ends by itself at its `until`."""
    lasts = or_(queues.c.paused_until.is_(None), queues.c.paused_until > func.now())
    return select(queues, and_(queues.c.paused_at.is_not(None), lasts).label("paused"))


def _view(row: Row[Any], load: QueueLoad, lateness: Quantiles) -> QueueView:
    values = dict(row._mapping)
    del values["limited"]
    values["rate_limit"] = rate_limit(values)
    pause = PauseView(
        by=values.pop("paused_by"),
        at=values.pop("paused_at"),
        reason=values.pop("paused_reason"),
        until=values.pop("paused_until"),
    )
    values |= msgspec.structs.asdict(load) | {
        "durability": Durability(values["durability"]),
        "paused": pause if values["paused"] else None,
    }
    return QueueView(**values, lateness_ms=lateness)
