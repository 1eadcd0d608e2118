"""`wait`: an answer that comes when the execution that it started has ended."""

from contextlib import suppress
from typing import Annotated
from uuid import UUID

from litestar.params import QueryParameter

from app.answer_limit import waiting_on_purpose
from app.db.reads.executions import ExecutionReads, ExecutionView
from app.domain.errors import NotFound
from app.intake.waiting import MAX_WAIT_SECONDS, Waiting

Wait = Annotated[
    float | None, QueryParameter(ge=0, le=MAX_WAIT_SECONDS, description="Seconds to wait for the execution")
]


class Awaited:
    """Executions whose end requests wait for."""

    def __init__(self, waiting: Waiting, reads: ExecutionReads) -> None:
        self._waiting = waiting
        self._reads = reads

    async def execution(self, execution_id: UUID, *, seconds: float) -> ExecutionView | None:
        """Return an execution when it has ended or the time has run out; None where retention has taken it."""
        with waiting_on_purpose():
            await self._waiting.until_ended(execution_id, seconds=seconds)
        with suppress(NotFound):
            return await self._reads.get(execution_id)
        return None
