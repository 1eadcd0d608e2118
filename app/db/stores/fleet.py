"""What workers are told to do."""

from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.acting import acting
from app.db.tables import workers
from app.db.transactions import Transaction
from app.domain.access import Principal
from app.domain.errors import Conflict, NotFound


class FleetStore:
    """Gives orders to workers; each reads its own with its next heartbeat."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def drain(self, worker_id: UUID, *, by: Principal, within: Transaction | None = None) -> None:
        """Have a worker claim nothing more. Raises `NotFound`, and `Conflict` where it has stopped."""
        found = workers.c.worker_id == worker_id
        running = (found, workers.c.stopped_at.is_(None))
        async with acting(self._engine, by, within) as connection:
            if (await connection.execute(update(workers).where(*running).values(draining=True))).rowcount:
                return
            if await connection.scalar(select(workers.c.worker_id).where(found)):
                raise Conflict("the worker has stopped already")
        raise NotFound(f"there is no worker {worker_id}")
