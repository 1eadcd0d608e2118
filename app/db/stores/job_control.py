"""Changes of jobs. Whatever a change takes back never runs; what has begun is left alone and named."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from app.db.acting import acting_in
from app.db.actors import note_action
from app.db.pools import Connection, Pool
from app.db.queries import load
from app.db.stores.dependencies import require_no_circle
from app.db.stores.hourly_counts import count_created, give_back
from app.db.stores.limits import LIMIT_BEGUN
from app.db.stores.locked_jobs import lock_job, run_job, schedule_of
from app.db.stores.schedules import (
    advance,
    begun_of,
    deferred_until,
    drop_planned,
    note_passed_over,
    store_plans,
)
from app.db.stores.workflows.definitions import redefine
from app.db.transactions import Transaction
from app.domain.access import Actor
from app.domain.errors import InvalidInput, NotFound, PreconditionFailed
from app.domain.hints import Ready
from app.domain.ids import new_execution_id, shard_of
from app.domain.job_changes import Change
from app.domain.jobs import NewJob
from app.domain.planning import (
    Misfire,
    MisfirePolicy,
    PassedOver,
    passed_while_paused,
    paused_instants,
    plan,
)
from app.domain.statuses import Trigger
from app.domain.stored_schedule import REPEATING
from app.domain.workflows.definition import WorkflowPatch

_MUTABLE = (
    "name", "tags", "schedule_type", "expression", "scheduled_time", "every_seconds", "timezone",
    "timezone_requested", "gap", "fold", "starts_at", "ends_at", "misfire", "misfire_grace_seconds", "overlap",
    "parameters", "queue", "priority", "max_retries", "timeout_seconds", "is_active", "pause_reason", "paused_until",
    "expires_after_seconds", "concurrency_key", "concurrency_limit", "depends_on",
)  # fmt: skip
"""Columns in the order of the parameters of `change_job.sql`."""


class Changed(msgspec.Struct, frozen=True):
    """What a change came to: executions that had begun and go on, and where replanned ones wait."""

    running: list[UUID]
    ready: list[Ready]


class JobControl:
    """Changes, deletes and runs jobs. Each method is one transaction that locks the job first."""

    def __init__(self, pool: Pool, *, horizon_seconds: float) -> None:
        self._pool = pool
        self._horizon = timedelta(seconds=horizon_seconds)

    async def change(
        self,
        job_id: UUID,
        change: Change,
        *,
        if_version: int | None,
        actor: Actor,
        workflow: WorkflowPatch | None = None,
        within: Transaction | None = None,
    ) -> Changed:
        """Change a job, a workflow's with what its runs are made of, and bring what is planned in line.

        Raises `NotFound`, `PreconditionFailed`, `InvalidInput`.
        """
        async with acting_in(self._pool, actor, within) as connection:
            before = await lock_job(connection, job_id)
            if if_version is not None and if_version != before["version"]:
                changed_at = before["updated_at"].isoformat()
                raise PreconditionFailed(f"the job was changed at {changed_at}; read it anew")
            _require_once(before, change)
            await require_no_circle(connection, job_id, change.columns.get("depends_on", []))
            after = {**before, "parameters": None, **change.columns}  # null: they stay as they are
            await _write(connection, after)
            if workflow is not None:
                await redefine(connection, job_id, workflow, by=actor.name)
            ready = await self._replan(connection, before, after, change) if change.replans else []
            begun = await _begun(connection, job_id)
            if change.limits and begun:
                await connection.execute(LIMIT_BEGUN, begun)
            return Changed(begun, ready)

    async def delete(self, job_id: UUID, *, error: str, actor: Actor) -> Changed:
        """Delete a job; what waits is cancelled with `error` (JSON of a `Failure`). Raises `NotFound`."""
        async with acting_in(self._pool, actor) as connection:
            job = await lock_job(connection, job_id)
            if job["schedule_type"] in REPEATING:
                dropped = await drop_planned(connection, job["shard"], job_id, after=job["now"])
                await give_back(connection, job["user_id"], dropped)
            await connection.fetch(load("cancel_planned"), job["shard"], job_id, error)
            await connection.execute(load("delete_job"), job["shard"], job_id)
            return Changed(await _begun(connection, job_id), [])

    async def run(
        self,
        job_id: UUID,
        execution_id: UUID,
        *,
        now: datetime,
        actor: Actor,
        parameters: str | None = None,
        within: Transaction | None = None,
    ) -> Ready:
        """Create an execution apart from the schedule, under this id, with the job's parameters or these (JSON).

        Raises `NotFound`, `QuotaExceeded`.
        """
        async with acting_in(self._pool, actor, within) as connection:
            job = await lock_job(connection, job_id)
            await count_created(connection, job["user_id"])
            made = await run_job(
                connection,
                job_id,
                [(execution_id, now)],
                trigger=Trigger.MANUAL,
                run_key=str(execution_id),
                parameters=parameters,
            )
            if not made:
                raise NotFound(f"the task or the queue of the job {job_id} is gone")
            await note_action(connection, "job.run", job_id, after={"execution_id": execution_id})
            return made[0].ready

    async def _replan(
        self, connection: Connection, before: asyncpg.Record, after: dict[str, Any], change: Change
    ) -> list[Ready]:
        """Bring planned executions in line with a changed job; return where they wait."""
        job_id, now = before["job_id"], before["now"]
        released: list[datetime] = []
        if before["schedule_type"] in REPEATING:
            released = await _take_back(connection, before, whole=not after["is_active"])
        if after["schedule_type"] in REPEATING:
            ready = await self._plan(connection, before, after, released)
            return ready + await _bring_in_line(connection, after, None, change)
        await give_back(connection, before["user_id"], released)
        instant = (after["scheduled_time"] or now) if change.schedule_changed else None
        ready = await _bring_in_line(connection, after, instant, change)
        if not ready and instant is not None:  # it has run already, or did not run once before: a new instant
            await count_created(connection, before["user_id"])
            execution_id = new_execution_id(job_id, int(now.timestamp() * 1_000_000))
            runs = [(execution_id, instant)]
            made = await run_job(connection, job_id, runs, trigger=Trigger.SCHEDULE, run_key="")
            ready = [each.ready for each in made]
            if not after["is_active"]:
                await _bring_in_line(connection, after, None, change)
        return ready

    async def _plan(
        self, connection: Connection, before: asyncpg.Record, after: dict[str, Any], released: list[datetime]
    ) -> list[Ready]:
        """Plan a repeating job from now or the end of its pause on, after whatever of it has begun."""
        shard, job_id, now = before["shard"], before["job_id"], before["now"]
        since = _counts_since(before, after)
        begun = await begun_of(connection, shard, job_id)
        judged = await deferred_until(connection, shard, job_id, now=now)
        watermark = max([since, *(instant for _, instant in begun), *judged])
        if not before["is_active"] and before["schedule_type"] in REPEATING:
            watermark = max(watermark, before["materialized_until"])
            await _note_paused(connection, before, until=since)
        if not after["is_active"]:
            await advance(connection, shard, [(job_id, watermark, None)])
            await give_back(connection, before["user_id"], released)
            return []
        policy = MisfirePolicy(Misfire(after["misfire"]), after["misfire_grace_seconds"])
        planned = plan(
            schedule_of(after), policy, materialized_until=watermark, now=now, horizon=self._horizon
        )
        plans, taken = [(job_id, planned)], {job_id: released}
        return (await store_plans(connection, shard, plans, now=now, released=taken)).created


async def replace_planned(connection: Connection, job: asyncpg.Record, new: NewJob) -> list[Ready]:
    """Have a locked job that runs once, and has not begun, say what a new one says; return where it waits now.

    It stays as it is what else: id, owner, key, and paused if it is.
    """
    columns = {name: getattr(new, name) for name in _MUTABLE if name in NewJob.__struct_fields__}
    columns |= {"parameters": bytes(new.parameters).decode(), "depends_on": new.depends_on or []}
    after = {**job, **columns}
    await _write(connection, after)
    return await _bring_in_line(connection, after, new.scheduled_time or job["now"], Change(columns))


def _require_once(before: asyncpg.Record, change: Change) -> None:
    """Refuse a schedule that would hold a unique key for ever. Raises `InvalidInput`."""
    if before["unique_key"] is not None and change.columns.get("schedule_type") in REPEATING:
        raise InvalidInput(
            "the job has a unique_key, which is for jobs that run once: create another job",
            pointer="/schedule",
        )


async def _write(connection: Connection, after: dict[str, Any]) -> None:
    try:
        values = [after[name] for name in _MUTABLE]
        await connection.fetchval(load("change_job"), after["shard"], after["job_id"], *values)
    except asyncpg.CheckViolationError as error:
        raise InvalidInput(f"this does not fit together: {error.constraint_name}") from None


async def _take_back(connection: Connection, job: asyncpg.Record, *, whole: bool) -> list[datetime]:
    """Delete what is planned ahead; if `whole`, what is due and waits too, whose instants become `paused`."""
    shard, job_id, now = job["shard"], job["job_id"], job["now"]
    dropped = await drop_planned(connection, shard, job_id, after=now)
    if whole:
        epoch = datetime.fromtimestamp(0, tz=now.tzinfo)
        overdue = await drop_planned(connection, shard, job_id, after=epoch)
        await _note(connection, job, paused_instants(overdue))
        dropped += overdue
    return dropped


async def _bring_in_line(
    connection: Connection, job: dict[str, Any], instant: datetime | None, change: Change
) -> list[Ready]:
    deadline_moves = instant is not None or change.deadline_changed
    args = (job["shard"], job["job_id"], instant, not job["is_active"], job["now"], deadline_moves)
    return [Ready(job["shard"], *row) for row in await connection.fetch(load("replan_waiting"), *args)]


async def _begun(connection: Connection, job_id: UUID) -> list[UUID]:
    return [execution_id for execution_id, _ in await begun_of(connection, shard_of(job_id), job_id)]


def _counts_since(before: asyncpg.Record, after: dict[str, Any]) -> datetime:
    """Return since when a change holds: a pause with an end ended then, however late that is noticed."""
    now: datetime = before["now"]
    ended: datetime | None = before["paused_until"] if after["is_active"] else None
    return now if ended is None else min(now, ended)


async def _note_paused(connection: Connection, job: asyncpg.Record, *, until: datetime) -> None:
    """Enter the instants into the ledger that passed while the job was paused."""
    passed = passed_while_paused(schedule_of(job), after=job["materialized_until"], until=until)
    await _note(connection, job, passed)


async def _note(connection: Connection, job: asyncpg.Record, passed: PassedOver | None) -> None:
    if passed is not None:
        await note_passed_over(connection, job["shard"], [(job["job_id"], passed)])
