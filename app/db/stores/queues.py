"""Queues."""

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.tables import queues
from app.domain.errors import InvalidInput


class Queue(msgspec.Struct, frozen=True):
    """What the intake needs to know of a queue."""

    queue: str
    priority: int


class QueueStore:
    """Reads queues."""

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
