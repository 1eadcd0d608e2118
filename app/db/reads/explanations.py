"""Why an execution waits."""

from uuid import UUID

from sqlalchemy import RowMapping
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.clock import DatabaseClock
from app.db.queries import load
from app.db.reads.dependencies import dependencies_in_the_way
from app.db.reads.executions import ExecutionReads
from app.db.reads.limit_situations import limits_in_the_way
from app.db.reads.paces import PaceReads
from app.db.reads.workers import STALE_AFTER
from app.domain.explanation import MOST_AHEAD, Explanation, Pause, Reason, Situation, explain
from app.domain.ids import SHARDS, shard_of
from app.domain.statuses import FINAL, Status

PACE_WINDOW_SECONDS = 60
_ONE_PLAN = """SELECT set_config('plan_cache_mode', 'force_generic_plan', true),
                      set_config('enable_seqscan', 'off', true)"""
"""Until the transaction ends: to plan `explain.sql` anew for its values takes longer than to run it."""


class ExplanationReads:
    """Reads what the claim decides by, and explains it."""

    def __init__(self, engine: AsyncEngine, paces: PaceReads, clock: DatabaseClock) -> None:
        self._engine = engine
        self._executions = ExecutionReads(engine)
        self._paces = paces
        self._clock = clock

    async def get(self, execution_id: UUID) -> Explanation:
        """Return why an execution waits. Raises `NotFound`."""
        row = await self._row(execution_id)
        if row is None:
            execution = await self._executions.get(execution_id)
            if execution.status not in FINAL:  # it was on its way between the two
                return await self.get(execution_id)
            return Explanation(status=execution.status, runnable=False, reasons=[])
        pace = (await self._paces.paces(PACE_WINDOW_SECONDS)).queues.get(row["queue"])
        ended_per_second = pace.completed_per_second + pace.failed_per_second if pace else 0.0
        limits, dependencies = (
            await self._limits(row, execution_id),
            await self._dependencies(row, execution_id),
        )
        return explain(self._situation(row, ended_per_second, limits, dependencies))

    async def _limits(self, row: RowMapping, execution_id: UUID) -> list[Reason]:
        if not row["is_ready"] or not row["limited"]:
            return []
        async with self._engine.connect() as connection:
            return await limits_in_the_way(connection, execution_id, self._clock)

    async def _dependencies(self, row: RowMapping, execution_id: UUID) -> list[Reason]:
        if row["status"] != Status.BLOCKED:
            return []
        async with self._engine.connect() as connection:
            return await dependencies_in_the_way(connection, execution_id)

    async def _row(self, execution_id: UUID) -> RowMapping | None:
        silence_seconds = STALE_AFTER.total_seconds()
        parameters = (shard_of(execution_id), execution_id, MOST_AHEAD, silence_seconds, list(SHARDS))
        async with self._engine.connect() as connection:
            await connection.exec_driver_sql(_ONE_PLAN)
            found = await connection.exec_driver_sql(load("explain"), parameters)
            return found.mappings().one_or_none()

    def _situation(
        self, row: RowMapping, ended_per_second: float, limits: list[Reason], dependencies: list[Reason]
    ) -> Situation:
        return Situation(
            now=self._clock.now(),
            job_id=row["job_id"],
            queue=row["queue"],
            status=Status(row["status"]),
            due_at=row["due_at"],
            is_ready=row["is_ready"],
            is_early=row["is_early"],
            held=row["held"],
            worker_deaths=row["worker_deaths"],
            cancel_requested_at=row["cancel_requested_at"],
            expires_at=row["expires_at"],
            is_expired=row["is_expired"],
            limits=limits,
            dependencies=dependencies,
            job_pause=_pause(row, "job") if row["job_paused"] else None,
            queue_pause=_pause(row, "queue") if row["queue_paused_at"] is not None else None,
            workers=row["workers"],
            free_slots=row["free_slots"],
            ahead=row["ahead"],
            ended_per_second=ended_per_second,
        )


def _pause(row: RowMapping, what: str) -> Pause:
    return Pause(*(row[f"{what}_paused_{part}"] for part in ("at", "by", "reason", "until")))
