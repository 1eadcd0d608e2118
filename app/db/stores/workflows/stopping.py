"""Stopping a run: what waits never runs, what runs is asked to stop, nothing begins any more."""

from uuid import UUID

import msgspec

from app.db.pools import Connection
from app.db.queries import load
from app.db.stores.workflows.advance import Run, note_ends
from app.domain.failures import Category, Failure
from app.domain.workflows.progress import RunStatus
from app.domain.workflows.rules import StepStatus


async def stop_run(connection: Connection, run: Run, ends_as: RunStatus, cause: str) -> list[UUID]:
    """Stop a locked run; it is over when what runs has ended. Return the executions that were asked to stop."""
    run.stop(ends_as, cause)
    failure = Failure.build("Cancelled", f"its workflow run was stopped: {cause}", Category.UNKNOWN)
    arguments = (run.shard, f"w:{run.run_id}/", msgspec.json.encode(failure).decode())
    await connection.fetch(load("cancel_steps"), *arguments)
    stopping = await connection.fetch(load("stop_steps"), *arguments)
    states = run.progress.states
    running = [key for key, state in states.items() if state.status is StepStatus.RUNNING]
    await note_ends(connection, {run.run_id: run}, [(run.run_id, key) for key in running])
    return [row["execution_id"] for row in stopping]
