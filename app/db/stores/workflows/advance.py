"""Runs going on: locked, told what has ended, and what follows written and released, all in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from app.db.pools import Connection
from app.db.queries import load
from app.db.stores.workflows.definitions import Definition, DefinitionStore
from app.db.stores.workflows.results import RUN_STATES, Span, TooLarge, Wanted, results_of
from app.domain.hints import Ready
from app.domain.ids import new_execution_id, shard_of
from app.domain.workflows.definition import Step
from app.domain.workflows.progress import (
    PARAMETERS_LIMIT_BYTES,
    Progress,
    Release,
    RunStatus,
    StepEnd,
    StepState,
)
from app.domain.workflows.rules import Standing, StepStatus

RESULTS_LIMIT_BYTES = PARAMETERS_LIMIT_BYTES
"""Of one step: what is larger fits into no parameters."""


class Run:
    """A locked run while it is worked on."""

    def __init__(self, row: asyncpg.Record, definition: Definition, states: Mapping[str, StepState]) -> None:
        self.shard: int = row["shard"]
        self.run_id: UUID = row["workflow_run_id"]
        self.workflow_id: UUID = row["workflow_id"]
        self.parameters: str = row["parameters"]
        self.started_at: datetime = row["started_at"]
        self.now: datetime = row["now"]
        self.status = RunStatus(row["status"])
        self.is_queued = bool(row["is_queued"])
        self.ends_as: str | None = row["ends_as"]
        self.stopped_by: str | None = row["cause"]
        """Why it was stopped before."""
        self.cause: str | None = None
        """Why it is stopped now; null: as it was."""
        self.definition = definition
        self.progress = Progress(definition.graph, states, is_ending=self.ends_as is not None)
        self._as_before = (self.status, self.is_queued, self.ends_as)

    def stop(self, ends_as: RunStatus, cause: str) -> None:
        """Let it begin nothing more, and have ended so once what runs has."""
        self.ends_as, self.cause, self.is_queued = ends_as, cause, False
        self.progress.cancel(cause)

    def begin(self) -> None:
        """Let it go on, with whatever waits."""
        self.status, self.is_queued, self.ends_as = RunStatus.RUNNING, False, None
        self.progress.begin()

    def result_of(self, step: str) -> Wanted:
        """Return what to ask for to know what a step has returned."""
        state, is_mapped = self.progress.states[step], self.progress.graph.steps[step].map is not None
        return Wanted(self.run_id, step, state.round, state.instances, is_mapped)

    def close(self) -> bool:
        """Note whether its last step has ended; return whether its row is to be written."""
        outcome = self.progress.outcome()
        if outcome is not None:
            self.status = RunStatus(self.ends_as) if self.ends_as else outcome
        return (self.status, self.is_queued, self.ends_as) != self._as_before


async def lock_runs(
    connection: Connection, definitions: DefinitionStore, run_ids: Iterable[UUID], *, under_way: bool = True
) -> dict[UUID, Run]:
    """Lock runs and read how their steps stand; those that are over are left out unless `under_way` is False."""
    wanted = sorted(set(run_ids))
    rows = await connection.fetch(load("lock_runs"), shards_of(wanted), wanted, under_way)
    if not rows:
        return {}
    locked = [row["workflow_run_id"] for row in rows]
    found = await connection.fetch(RUN_STATES, shards_of(locked), locked)
    states = {row["workflow_run_id"]: _states(row) for row in found}
    runs: dict[UUID, Run] = {}
    for row in rows:
        definition = await definitions.get(connection, row["workflow_id"], row["version"])
        runs[row["workflow_run_id"]] = Run(row, definition, states[row["workflow_run_id"]])
    return runs


def shards_of(ids: Iterable[UUID]) -> list[int]:
    """Return the shards that these ids lie in: the planner looks at no others."""
    return sorted({shard_of(each) for each in ids})


async def note_ends(
    connection: Connection, runs: Mapping[UUID, Run], steps: Iterable[tuple[UUID, str]]
) -> None:
    """Tell runs how steps of theirs have ended, as far as nothing of them is live."""
    asked = [
        (run.shard, run_id, step, run.progress.states[step].round)
        for run_id, step in set(steps)
        if (run := runs.get(run_id)) and run.progress.states[step].status is StepStatus.RUNNING
    ]
    if not asked:
        return
    span = Span.of([runs[run_id] for _, run_id, *_ in asked])
    rows = await connection.fetch(load("step_ends"), *map(list, zip(*asked, strict=True)), *span)
    for run_id, *end in rows:
        runs[run_id].progress.note_end(StepEnd(*end))


async def advance(connection: Connection, runs: Mapping[UUID, Run], *, unix_microseconds: int) -> list[Ready]:
    """Release what follows, step after step where one ends at once, and write down how everything stands.

    Return where the new executions wait.
    """
    ready: list[Ready] = []
    while begun := [(run, step) for run in runs.values() for step in run.progress.take_ready()]:
        sources = await _sources(connection, begun)
        released = [
            (run, release)
            for (run, step), known in zip(begun, sources, strict=True)
            if (release := _release(run, step, known)) is not None
        ]
        if released:
            ready += await _insert(connection, released, unix_microseconds)
    await _write(connection, runs.values())
    return ready


def _states(row: asyncpg.Record) -> dict[str, StepState]:
    columns = (row[name] for name in ("statuses", "counts_as", "rounds", "instances", "causes"))
    return {
        step: StepState(StepStatus(status), Standing(counts_as), *rest)
        for step, status, counts_as, *rest in zip(row["steps"], *columns, strict=True)
    }


def _release(run: Run, step: Step, sources: "Mapping[str, Any] | str") -> Release | None:
    if isinstance(sources, str):
        run.progress.fail(step.key, sources)
        return None
    return run.progress.release(step, sources)


async def _sources(
    connection: Connection, begun: Sequence[tuple[Run, Step]]
) -> list["Mapping[str, Any] | str"]:
    """Return what each step may refer to; in its place why it cannot: results that are too large."""
    wanted = {run.result_of(root) for run, step in begun for root in run.progress.sources_of(step)}
    span = Span.of([run for run, _ in begun])
    results = await results_of(connection, wanted, span=span, limit_bytes=RESULTS_LIMIT_BYTES)
    found: list[Mapping[str, Any] | str] = []
    for run, step in begun:
        values: dict[str, Any] = {"parameters": msgspec.json.decode(run.parameters)}
        refused: str | None = None
        for root in run.progress.sources_of(step):
            result = results[run.run_id, root]
            if isinstance(result, TooLarge):
                refused = f"what {root} has returned is {result.words(RESULTS_LIMIT_BYTES)}"
            values[root] = result
        found.append(refused or values)
    return found


async def _insert(
    connection: Connection, released: Sequence[tuple[Run, Release]], unix_microseconds: int
) -> list[Ready]:
    steps = [
        (run.run_id, release.step.key, release.round, release.step.task_id, release.step.queue,
         release.step.priority, release.step.max_retries, release.step.timeout_seconds)
        for run, release in released
    ]  # fmt: skip
    instances = [
        (nth, index, new_execution_id(run.workflow_id, unix_microseconds + index), parameters)
        for nth, (run, release) in enumerate(released, start=1)
        for index, parameters in enumerate(release.parameters)
    ]
    rows = await connection.fetch(
        load("release_steps"),
        *map(list, zip(*steps, strict=True)),
        *map(list, zip(*instances, strict=True)),
        shards_of(run.run_id for run, _ in released),
    )
    created = {row["execution_id"] for row in rows}
    for nth, _, execution_id, _ in instances:
        run, release = released[nth - 1]
        if execution_id not in created and release.step.key not in _failed(run):
            where = f" or no queue {release.step.queue}" if release.step.queue else ""
            run.progress.fail(release.step.key, f"there is no task {release.step.task_id}{where} any more")
    return [Ready(row["shard"], row["queue"], row["priority"], row["due_at"], row["limited"]) for row in rows]


def _failed(run: Run) -> set[str]:
    return {key for key, state in run.progress.changed.items() if state.status is StepStatus.FAILED}


async def _write(connection: Connection, runs: Iterable[Run]) -> None:
    runs = list(runs)
    shards = shards_of(run.run_id for run in runs)
    steps = [
        (run.run_id, key, s.status, s.counts_as, s.round, s.instances, s.cause)
        for run in runs
        for key, s in run.progress.changed.items()
    ]
    if steps:
        await connection.execute(load("move_steps"), *map(list, zip(*steps, strict=True)), shards)
    rows = [(run.run_id, run.status, run.is_queued, run.ends_as, run.cause) for run in runs if run.close()]
    if rows:
        await connection.execute(load("write_runs"), *map(list, zip(*rows, strict=True)), shards)
