"""Queues: what the intake needs of them, and their changes."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET
from sqlalchemy import func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.acting import acting
from app.db.tables import queues
from app.db.transactions import Transaction
from app.domain.access import Principal
from app.domain.errors import Conflict, InvalidInput, NotFound, PreconditionFailed
from app.domain.limits import rate_columns
from app.domain.queues import QueuePatch, QueueRequest


class Queue(msgspec.Struct, frozen=True):
    """What the intake needs to know of a queue."""

    queue: str
    priority: int


class QueueStore:
    """Reads and writes queues. Each method is one transaction; who changes something is `by`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def find(self, queue: str) -> Queue | None:
        """Return a queue, or None."""
        statement = select(queues.c.queue, queues.c.priority).where(queues.c.queue == queue)
        async with self._engine.connect() as connection:
            row = (await connection.execute(statement)).one_or_none()
        return Queue(row.queue, row.priority) if row else None

    async def unknown(self, queue: str) -> InvalidInput:
        """Return the error for a queue that does not exist; it names those that do."""
        async with self._engine.connect() as connection:
            names = await connection.scalars(select(queues.c.queue).order_by(queues.c.queue).limit(50))
        detail = f"there is no queue {queue!r:.100}; there are {', '.join(names)}"
        return InvalidInput(detail, pointer="/queue", code="unknown_queue")

    async def create(
        self, request: QueueRequest, *, by: Principal, within: Transaction | None = None
    ) -> None:
        """Store a new queue. Raises `Conflict` where the name is taken."""
        async with acting(self._engine, by, within) as connection:
            try:
                await connection.execute(
                    insert(queues).values(**rate_columns(msgspec.structs.asdict(request)))
                )
            except IntegrityError:
                raise Conflict(f"there is a queue {request.queue} already") from None

    async def change(self, queue: str, patch: QueuePatch, *, by: Principal, if_version: int | None) -> None:
        """Change parts of a queue and raise its version. Raises `NotFound` and `PreconditionFailed`."""
        given = {name: value for name, value in msgspec.structs.asdict(patch).items() if value is not UNSET}
        async with acting(self._engine, by) as connection:
            await _lock(connection, queue, if_version=if_version)
            await _write(connection, queue, rate_columns(given))

    async def pause(
        self,
        queue: str,
        *,
        reason: str | None,
        until: datetime | None,
        by: Principal,
        within: Transaction | None = None,
    ) -> None:
        """Pause a queue: nothing of it is claimed until `until` or its resumption. Raises `NotFound`."""
        async with acting(self._engine, by, within) as connection:
            await _lock(connection, queue)
            pause = {"paused_by": by.user_id, "paused_reason": reason, "paused_until": until}
            await _write(connection, queue, pause | {"paused_at": func.now()})

    async def resume(self, queue: str, *, by: Principal, within: Transaction | None = None) -> None:
        """End the pause of a queue, if there is one. Raises `NotFound`."""
        async with acting(self._engine, by, within) as connection:
            if await _lock(connection, queue):
                await _write(connection, queue, dict.fromkeys(_PAUSE))


_PAUSE = ("paused_at", "paused_by", "paused_reason", "paused_until")


async def _lock(connection: AsyncConnection, queue: str, *, if_version: int | None = None) -> bool:
    """Lock a queue and tell whether it was paused."""
    statement = select(queues).where(queues.c.queue == queue).with_for_update(key_share=True)
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        raise NotFound(f"there is no queue {queue!r:.100}")
    if if_version is not None and if_version != row.version:
        raise PreconditionFailed(f"the queue was changed at {row.updated_at.isoformat()}; read it anew")
    return row.paused_at is not None


async def _write(connection: AsyncConnection, queue: str, values: dict[str, Any]) -> None:
    version = {"version": queues.c.version + 1, "updated_at": func.now()}
    await connection.execute(update(queues).where(queues.c.queue == queue).values(**values, **version))
