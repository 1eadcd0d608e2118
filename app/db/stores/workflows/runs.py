"""Runs of workflows as workers and maintenance handle them: begun, carried on, stopped at their deadline."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast
from uuid import UUID

import msgspec

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.pools import Connection, Pool
from app.db.queries import load
from app.db.stores.workflows.advance import Run, advance, lock_runs, note_ends
from app.db.stores.workflows.definitions import Definition, DefinitionStore
from app.db.stores.workflows.results import upstream_of
from app.db.stores.workflows.stopping import stop_run
from app.domain.admission import Overlap
from app.domain.claims import Claim
from app.domain.hints import Ready
from app.domain.ids import shard_of
from app.domain.workflows.progress import RunStatus
from app.domain.workflows.run_keys import Round


class StepRef(NamedTuple):
    """A step of a run."""

    run_id: UUID
    step: str


FIRST = StepRef(UUID(int=0), "")


class Moved(msgspec.Struct, frozen=True):
    """What became of runs: where executions of theirs wait now, and which ones were asked to stop."""

    ready: list[Ready] = []
    stopping: list[UUID] = []

    def announce(self, hints: HintSender) -> None:
        """Tell workers. To be called after the commit."""
        hints.announce(self.ready)
        for execution_id in self.stopping:
            hints.announce_cancel(execution_id)


class Stalled(NamedTuple):
    """Steps that have ended without their run knowing, and where the next look begins; None: that were all."""

    steps: list[StepRef]
    upto: StepRef | None


class RunStore:
    """Begins runs and carries them on. Any number of processes may carry on the same run: its row is locked, and what
    has been done already is found done."""

    def __init__(self, pool: Pool, definitions: DefinitionStore, clock: DatabaseClock) -> None:
        self._pool = pool
        self._definitions = definitions
        self._clock = clock

    async def begin(self, claim: Claim) -> Moved:
        """Begin the run of an execution of a workflow's job, unless an earlier attempt has. Raises `NotFound`."""
        async with self._transaction() as connection:
            definition = await self._definitions.newest(connection, claim.job_id)
            overlap = definition.body.overlap
            before = [] if overlap is Overlap.ALLOW else await self._under_way(connection, claim)
            is_queued = bool(before) and overlap is not Overlap.SKIP
            if not await _insert(connection, claim, definition, is_queued=is_queued):
                return Moved()
            runs = await lock_runs(connection, self._definitions, [claim.execution_id])
            others = await self._overlap(connection, runs[claim.execution_id], before, overlap)
            return Moved(others.ready + await self._advance(connection, runs), others.stopping)

    async def carry_on(self, steps: Collection[StepRef]) -> list[Ready]:
        """Look at steps of which something has ended; return where what follows waits."""
        async with self._transaction() as connection:
            runs = await lock_runs(connection, self._definitions, [step.run_id for step in steps])
            await note_ends(connection, runs, steps)
            ready = await self._advance(connection, runs)
            queues = [run.workflow_id for run in runs.values() if _lets_others_begin(run)]
            return ready + await self._begin_queued(connection, queues)

    async def ended(self, rounds: Mapping[Round, int]) -> list[StepRef]:
        """Return the steps of these rounds, each with its shard, of which nothing is live any more."""
        by_prefix = {one.prefix: StepRef(one.run_id, one.step) for one in rounds}
        rows = await self._pool.fetch(load("ended_steps"), list(rounds.values()), list(by_prefix))
        return [by_prefix[row["prefix"]] for row in rows]

    async def upstream(self, step: Round) -> dict[str, Any]:
        """Return what the steps have returned that a step depends on, by their keys; null: it has not completed.

        Raises `ResultsTooLarge`.
        """
        async with self._pool.acquire() as pooled, pooled.transaction(readonly=True):
            return await upstream_of(cast("Connection", pooled), self._definitions, step)

    async def exist(self) -> bool:
        """Tell whether any run is under way."""
        rows = await self._pool.fetch(load("runs_exist"))
        return bool(rows[0]["exist"])

    async def stalled(self, after: StepRef, *, limit: int) -> Stalled:
        """Return steps that have ended without their run knowing, of the next `limit` that run."""
        rows = await self._pool.fetch(load("stalled_steps"), *after, limit)
        steps = [StepRef(row["workflow_run_id"], row["step"]) for row in rows if row["is_stalled"]]
        last = StepRef(rows[-1]["workflow_run_id"], rows[-1]["step"]) if len(rows) == limit else None
        return Stalled(steps, last)

    async def look(self, *, limit: int) -> Moved:
        """Stop runs that are past their deadlines, and begin those that wait for no other run any more."""
        rows = await self._pool.fetch(load("runs_to_look_at"), limit)
        ready: list[Ready] = []
        stopping: list[UUID] = []
        for row in rows:
            async with self._transaction() as connection:
                runs = await lock_runs(connection, self._definitions, [row["workflow_run_id"]])
                for run in runs.values():
                    if row["is_past_deadline"]:
                        seconds = run.definition.body.deadline_seconds
                        cause = f"it was not over {seconds:g} s after it began, its deadline"
                        stopping += await stop_run(connection, run, RunStatus.FAILED, cause)
                    else:
                        run.begin()
                ready += await self._advance(connection, runs)
        return Moved(ready, stopping)

    async def _overlap(
        self, connection: Connection, run: Run, before: Sequence[Run], overlap: Overlap
    ) -> Moved:
        """Do with a run what its workflow wants done while others are under way; return what became of those."""
        stopping: list[UUID] = []
        if not before:
            run.begin()
        elif overlap is Overlap.SKIP:
            names = ", ".join(str(other.run_id) for other in before[:3])
            run.stop(RunStatus.CANCELLED, f"the run {names} was under way (overlap: skip)")
        elif overlap is Overlap.CANCEL_RUNNING:
            cause = f"the run {run.run_id} was due (overlap: cancel_running)"
            for other in before:
                stopping += await stop_run(connection, other, RunStatus.CANCELLED, cause)
            return Moved(await self._advance(connection, {other.run_id: other for other in before}), stopping)
        return Moved()

    async def _under_way(self, connection: Connection, claim: Claim) -> list[Run]:
        """Lock the workflow, so that one run begins at a time, and its other runs that are not over."""
        await connection.fetch(load("lock_workflow"), claim.shard, claim.job_id)
        rows = await connection.fetch(load("runs_under_way"), claim.shard, claim.job_id)
        ids = [row["workflow_run_id"] for row in rows if row["workflow_run_id"] != claim.execution_id]
        return list((await lock_runs(connection, self._definitions, ids)).values())

    async def _begin_queued(self, connection: Connection, workflow_ids: Iterable[UUID]) -> list[Ready]:
        """Begin the runs that have waited for those that are over, one of each workflow."""
        ready: list[Ready] = []
        for workflow_id in set(workflow_ids):
            rows = await connection.fetch(load("runs_under_way"), shard_of(workflow_id), workflow_id)
            if rows and all(row["is_queued"] for row in rows):
                runs = await lock_runs(connection, self._definitions, [rows[0]["workflow_run_id"]])
                for run in runs.values():
                    run.begin()
                ready += await self._advance(connection, runs)
        return ready

    async def _advance(self, connection: Connection, runs: dict[UUID, Run]) -> list[Ready]:
        return await advance(connection, runs, unix_microseconds=self._clock.unix_microseconds())

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with self._pool.acquire() as pooled, pooled.transaction():
            yield cast("Connection", pooled)


async def _insert(connection: Connection, claim: Claim, definition: Definition, *, is_queued: bool) -> bool:
    """Write down a new run with its steps; return whether it is new."""
    row = await connection.fetchrow(
        load("begin_run"),
        claim.shard, claim.execution_id, claim.job_id, definition.version, claim.user_id, claim.trigger,
        claim.scheduled_time, claim.parameters, definition.body.deadline_seconds, is_queued,
    )  # fmt: skip
    if row is not None:
        steps = list(definition.graph.steps)
        await connection.execute(load("begin_steps"), claim.shard, claim.execution_id, steps)
    return row is not None


def _lets_others_begin(run: Run) -> bool:
    return run.status is not RunStatus.RUNNING and run.definition.body.overlap is not Overlap.ALLOW
