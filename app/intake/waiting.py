"""Waiting for executions to end, for any number of requests with one look at a time."""

import asyncio
import logging
from collections import Counter
from uuid import UUID

from app.db.stores.executions import ExecutionStore

log = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 0.02
MAX_WAIT_SECONDS = 60.0


class Waiting:
    """Requests that wait for executions. While there are any, one loop asks for all of them at once."""

    def __init__(self, executions: ExecutionStore, stopping: asyncio.Event) -> None:
        self._executions = executions
        self._stopping = stopping
        self._wanted: Counter[UUID] = Counter()
        self._looked = asyncio.Condition()
        self._live: set[UUID] = set()
        self._looking: asyncio.Task[None] | None = None

    async def until_ended(self, execution_id: UUID, *, seconds: float) -> bool:
        """Wait until an execution has ended, at most so long or until the server stops; return whether it has."""
        self._wanted[execution_id] += 1
        self._live.add(execution_id)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())
        try:
            async with asyncio.timeout(min(seconds, MAX_WAIT_SECONDS)), self._looked:
                await self._looked.wait_for(lambda: execution_id not in self._live or self._stopping.is_set())
        except TimeoutError:
            return False
        else:
            return execution_id not in self._live
        finally:
            self._wanted[execution_id] -= 1
            self._wanted += Counter()  # drops what nobody waits for any more

    async def _look(self) -> None:
        while self._wanted:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            asked = set(self._wanted)
            try:
                live = await self._executions.live(list(asked))
            except Exception:
                log.warning(
                    "could not look for ended executions", exc_info=True, extra={"event": "wait_failed"}
                )
                continue
            async with self._looked:
                self._live = live | (set(self._wanted) - asked)
                self._looked.notify_all()
