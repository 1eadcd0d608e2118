"""What people do to runs: stop them, have steps run again, pass steps over."""

from collections.abc import Sequence
from uuid import UUID

from app.db.acting import acting_in
from app.db.actors import note_action
from app.db.clock import DatabaseClock
from app.db.pools import Connection, Pool
from app.db.queries import load
from app.db.stores.workflows.advance import Run, advance, lock_runs
from app.db.stores.workflows.definitions import DefinitionStore
from app.db.stores.workflows.runs import Moved
from app.db.stores.workflows.stopping import stop_run
from app.db.transactions import Transaction
from app.domain.access import Actor
from app.domain.errors import Conflict, InvalidInput, NotFound
from app.domain.hints import Ready
from app.domain.workflows.progress import PASSED_OVER, RunStatus
from app.domain.workflows.rules import Standing, StepStatus

MOST_NAMED = 5


class RunControl:
    """Changes runs by hand. Each method is one transaction that locks the run and notes who did it."""

    def __init__(self, pool: Pool, definitions: DefinitionStore, clock: DatabaseClock) -> None:
        self._pool = pool
        self._definitions = definitions
        self._clock = clock

    async def cancel(
        self, run_id: UUID, *, cause: str, reason: str | None, actor: Actor, within: Transaction | None = None
    ) -> Moved:
        """Stop a run. Raises `NotFound`, and `Conflict` where it is over or is being stopped."""
        async with acting_in(self._pool, actor, within) as connection:
            run = await self._locked(connection, run_id)
            if run.status is not RunStatus.RUNNING:
                raise Conflict(f"the run is over: {run.status}")
            if run.ends_as is not None:
                raise Conflict("the run is being stopped already")
            stopping = await stop_run(connection, run, RunStatus.CANCELLED, cause)
            await self._advance(connection, run)
            await note_action(
                connection, "workflow_run.cancel", run_id, after={"status": run.status}, reason=reason
            )
            return Moved([], stopping)

    async def retry(
        self, run_id: UUID, steps: Sequence[str] | None, *, actor: Actor, within: Transaction | None = None
    ) -> Moved:
        """Have steps, by default those that did not succeed, run again, with all that come after them.

        Raises `NotFound`, `InvalidInput`, and `Conflict` where there is nothing to run again, or some of it runs.
        """
        async with acting_in(self._pool, actor, within) as connection:
            run = await self._locked(connection, run_id)
            _require_going_on(run)
            keys = _to_retry(run, steps)
            run.progress.retry(keys)
            await _reopen(connection, run)
            ready = await self._advance(connection, run)
            await note_action(connection, "workflow_run.retry", run_id, after={"steps": sorted(keys)})
            return Moved(ready, [])

    async def skip(
        self,
        run_id: UUID,
        step: str,
        *,
        cause: str,
        reason: str | None,
        actor: Actor,
        within: Transaction | None = None,
    ) -> Moved:
        """Pass a step over: what comes after it goes on as if it had succeeded, without a result.

        Raises `NotFound`, `InvalidInput`, and `Conflict` where it runs, has succeeded or is passed over already.
        """
        async with acting_in(self._pool, actor, within) as connection:
            run = await self._locked(connection, run_id)
            _require_going_on(run)
            _require_known(run, [step], "/step")
            if run.stopped_by is not None:
                raise Conflict(
                    f"the run was stopped ({run.stopped_by}); have it run again instead: actions/retry"
                )
            state = run.progress.states[step]
            if state.status is StepStatus.RUNNING:
                raise Conflict(f"the step {step} runs; cancel its execution first")
            if state.counts_as is Standing.SUCCESS:
                raise Conflict(f"the step {step} counts as a success already")
            run.progress.pass_over(step, f"{PASSED_OVER} {cause}")
            await _reopen(connection, run)
            ready = await self._advance(connection, run)
            await note_action(connection, "workflow_run.skip", run_id, after={"step": step}, reason=reason)
            return Moved(ready, [])

    async def _locked(self, connection: Connection, run_id: UUID) -> Run:
        runs = await lock_runs(connection, self._definitions, [run_id], under_way=False)
        if run_id not in runs:
            raise NotFound(f"there is no workflow run {run_id}")
        return runs[run_id]

    async def _advance(self, connection: Connection, run: Run) -> list[Ready]:
        return await advance(connection, {run.run_id: run}, unix_microseconds=self._clock.unix_microseconds())


def _require_going_on(run: Run) -> None:
    """Refuse what cannot be done to a run at this moment. Raises `Conflict`."""
    if run.status is RunStatus.RUNNING and run.ends_as is not None:
        raise Conflict("the run is being stopped; wait until it is over")
    if run.is_queued:
        raise Conflict("the run has not begun: it waits for another run of the workflow to end")


async def _reopen(connection: Connection, run: Run) -> None:
    """Let a run go on; one that was over gets as much time as a new one."""
    if run.status is not RunStatus.RUNNING:
        seconds = run.definition.body.deadline_seconds
        await connection.execute(load("renew_deadline"), run.shard, run.run_id, seconds)
    run.begin()


def _to_retry(run: Run, steps: Sequence[str] | None) -> set[str]:
    states = run.progress.states
    if steps is None:
        keys = {key for key, s in states.items() if s.status in {StepStatus.FAILED, StepStatus.CANCELLED}}
        if not keys:
            raise Conflict(
                "no step of the run has failed or was cancelled; name the steps that are to run again"
            )
    else:
        _require_known(run, steps, "/steps")
        keys = set(steps)
    affected = keys | run.progress.graph.descendants(keys)
    running = sorted(key for key in affected if states[key].status is StepStatus.RUNNING)
    if running:
        more = "" if len(running) <= MOST_NAMED else f" and {len(running) - MOST_NAMED} more"
        raise Conflict(
            f"still running: {', '.join(running[:MOST_NAMED])}{more}; cancel the run first, or wait"
        )
    if all(states[key].status is StepStatus.BLOCKED for key in keys):
        raise Conflict(
            f"{', '.join(sorted(keys)[:MOST_NAMED])}: not run yet; they wait for the steps before them"
        )
    return keys


def _require_known(run: Run, steps: Sequence[str], pointer: str) -> None:
    for index, step in enumerate(steps):
        if step not in run.progress.states:
            place = pointer if pointer == "/step" else f"{pointer}/{index}"
            raise InvalidInput(f"the run has no step {step}", pointer=place, code="unknown_step")
