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


async def awaited(
    execution_id: UUID, seconds: float, waiting: Waiting, reads: ExecutionReads
) -> ExecutionView | None:
    """Return an execution when it has ended or the time has run out; None where retention has taken it."""
    with waiting_on_purpose():
        await waiting.until_ended(execution_id, seconds=seconds)
    with suppress(NotFound):
        return await reads.get(execution_id)
    return None
