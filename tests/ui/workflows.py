"""Runs of workflows as pages find them, without a worker: begun, and their steps ended one by one."""

from typing import Any
from uuid import UUID

from app.db.clock import DatabaseClock
from app.db.pools import Pool
from app.db.stores.workflows.definitions import DefinitionStore
from app.db.stores.workflows.runs import RunStore, StepRef
from app.domain.statuses import Status
from tests.factories import FAILURE, begin_run, make_task, make_workflow

STEPS: list[dict[str, Any]] = [
    {"key": "extract"},
    {"key": "load", "depends_on": ["extract"], "map": [1, 2, 3], "parameters": {"n": {"$from": "item"}}},
    {"key": "check", "depends_on": ["extract"]},
    {"key": "report", "depends_on": ["load", "check"]},
    {"key": "alarm", "depends_on": ["load", "check"], "when": "any_failed"},
]
NAME = "Nightly report"
_END = """
    WITH ended AS (
        DELETE FROM onthedot.executions WHERE run_key LIKE $1 RETURNING *)
    INSERT INTO onthedot.execution_history
           (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
            scheduled_time, due_at, first_due_at, parameters, max_attempts, attempt_number, lease_epoch, worker_id,
            started_at, completed_at, error)
    SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, $2,
           CASE $2 WHEN 'COMPLETED' THEN 'ran' WHEN 'FAILED' THEN 'failed' ELSE 'cancelled' END, trigger, run_key,
           scheduled_time, due_at, first_due_at, parameters, max_attempts, 1, 2, gen_random_uuid(),
           now(), now(), $3
      FROM ended"""


async def new_workflow(pool: Pool, *steps: dict[str, Any], **fields: Any) -> UUID:
    """Make a workflow, by default of five steps; return it."""
    if not await pool.fetchval("SELECT true FROM onthedot.tasks WHERE task_id = 'report'"):
        await make_task(pool)
    job = await make_workflow(pool, *(steps or STEPS), **{"name": NAME} | fields)
    return job.job_id


async def new_run(pool: Pool, clock: DatabaseClock, *steps: dict[str, Any], **fields: Any) -> UUID:
    """Make a workflow, and begin a run of it; return that."""
    return await begin_run(pool, clock, await new_workflow(pool, *steps, **fields))


async def end_step(
    pool: Pool, clock: DatabaseClock, run_id: UUID, step: str, *, status: Status = Status.COMPLETED
) -> None:
    """Let all executions of a step have ended, and its run go on."""
    error = FAILURE if status is Status.FAILED else None
    await pool.execute(_END, f"w:{run_id}/{step}/%", status.value, error)
    await RunStore(pool, DefinitionStore(), clock).carry_on([StepRef(run_id, step)])


async def failed_run(pool: Pool, clock: DatabaseClock) -> UUID:
    """Return a run that is over, of which one step has failed, one was skipped, and the others have completed."""
    run_id = await new_run(pool, clock)
    for step, status in (("extract", Status.COMPLETED), ("load", Status.COMPLETED), ("check", Status.FAILED)):
        await end_step(pool, clock, run_id, step, status=status)
    await end_step(pool, clock, run_id, "alarm")
    return run_id
