"""One execution with all that belongs to it, as its page shows it."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.queries import load
from app.db.reads.attempts import AttemptView, StoryReads
from app.db.reads.audit import AuditReads, ChangeView
from app.db.reads.executions import ExecutionReads, ExecutionView
from app.db.reads.explanations import ExplanationReads
from app.db.tables import workers
from app.domain.errors import NotFound
from app.domain.explanation import Explanation
from app.domain.ids import shard_of
from app.domain.statuses import FINAL

MOST_CHANGES = 50
TRIES = 3
"""Between two statements the row may move to the history."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What stands around an execution."""

    first_due_at: datetime
    timeout_seconds: float | None
    """Its job's; null: its task's."""
    batch_id: UUID | None
    held: bool
    """Its job is paused."""
    cancel_requested_at: datetime | None
    max_delay_ms: int
    """What its queue promises."""
    has_queue: bool
    has_job: bool
    has_task: bool
    run_key: str
    """Of a step's execution it tells which run and which step it is."""


class ExecutionStory(msgspec.Struct, frozen=True, kw_only=True):
    """An execution, its attempts, and what people did to it."""

    execution: ExecutionView
    setting: Setting
    explanation: Explanation | None
    """None for what has ended: it waits for nothing."""
    attempts: list[AttemptView]
    hosts: Mapping[UUID, str]
    """Of the workers that had to do with it, as far as they are known still."""
    changes: list[ChangeView]
    """The newest first."""

    @property
    def run_again_as(self) -> list[UUID]:
        """Return the executions that did it again, the newest first."""
        told = [change.after or {} for change in self.changes if change.action == "execution.retry"]
        return [UUID(str(after["execution_id"])) for after in told if "execution_id" in after]


class ExecutionStories:
    """Reads them: a handful of look-ups by id."""

    def __init__(self, engine: AsyncEngine, explanations: ExplanationReads) -> None:
        self._engine = engine
        self._explanations = explanations
        self._executions = ExecutionReads(engine)
        self._attempts = StoryReads(engine)
        self._audit = AuditReads(engine)

    async def get(self, execution_id: UUID) -> ExecutionStory:
        """Return it. Raises `NotFound`."""
        execution = await self._executions.get(execution_id)
        setting = await self._setting(execution_id)
        attempts = await self._attempts.attempts(execution)
        asked = {one.worker_id for one in attempts} | {execution.worker_id}
        return ExecutionStory(
            execution=execution,
            setting=setting,
            explanation=None if execution.status in FINAL else await self._explanations.get(execution_id),
            attempts=attempts,
            hosts=await self._hosts({one for one in asked if one is not None}),
            changes=await self._audit.of("execution", str(execution_id), limit=MOST_CHANGES),
        )

    async def _setting(self, execution_id: UUID) -> Setting:
        parameters = (shard_of(execution_id), execution_id)
        async with self._engine.connect() as connection:
            for _ in range(TRIES):
                found = await connection.exec_driver_sql(load("execution_setting"), parameters)
                row = found.mappings().one_or_none()
                if row is not None:
                    return Setting(**row)
        raise NotFound(f"there is no execution {execution_id}")

    async def _hosts(self, worker_ids: set[UUID]) -> Mapping[UUID, str]:
        if not worker_ids:
            return {}
        statement = select(workers.c.worker_id, workers.c.host).where(workers.c.worker_id.in_(worker_ids))
        async with self._engine.connect() as connection:
            return {row.worker_id: row.host for row in await connection.execute(statement)}
