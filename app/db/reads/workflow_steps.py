"""The executions of a step that maps over a list, as people read them."""

from datetime import datetime
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.queries import load
from app.domain.ids import shard_of
from app.domain.statuses import Status
from app.domain.workflows.run_keys import Round


class InstancePage(msgspec.Struct, frozen=True, kw_only=True):
    """Executions in the order of the items."""

    instances: list[tuple[int, UUID]]
    """Index and execution."""
    next_index: int | None
    """That the next page begins with; None: there is none."""


class StepReads:
    """Reads which executions a step has."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def instances(
        self, of: Round, *, run_started_at: datetime, first: int, status: Status | None, limit: int
    ) -> InstancePage:
        """Return the executions of a round from the index `first` on, at most `limit`."""
        arguments = (shard_of(of.run_id), of.prefix, run_started_at, first, status, limit + 1)
        async with self._engine.connect() as connection:
            rows = (await connection.exec_driver_sql(load("step_instances"), arguments)).all()
        more = rows[limit].instance if len(rows) > limit else None
        return InstancePage(
            instances=[(row.instance, row.execution_id) for row in rows[:limit]], next_index=more
        )
