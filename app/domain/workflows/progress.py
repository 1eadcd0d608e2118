"""How a run goes on: it is told what has ended, and says what follows. Nothing is stored here."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from app.domain.workflows.definition import MOST_INSTANCES, Step
from app.domain.workflows.graph import Graph
from app.domain.workflows.references import Unresolvable, references_in, resolved
from app.domain.workflows.rules import ENDS, Standing, StepStatus, judge

PARAMETERS_LIMIT_BYTES = 1024 * 1024
"""Of one execution, as of a job."""
RELEASE_LIMIT_BYTES = 64 * 1024 * 1024
"""Of all instances of a step together."""
CAUSES_NAMED = 3
PASSED_OVER = "passed over"
"""How the cause begins of a step that somebody has skipped: it counts as a success."""


class RunStatus(StrEnum):
    """What a run is doing."""

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class StepState(msgspec.Struct):
    """A step of a run as it stands."""

    status: StepStatus
    counts_as: Standing = Standing.OPEN
    round: int = 0
    """How often it has been released; a retry is another round."""
    instances: int = 0
    """Executions of this round."""
    cause: str | None = None
    """Why it did not complete."""


class StepEnd(msgspec.Struct, frozen=True):
    """How the executions of a step have ended, all of them."""

    key: str
    round: int
    completed: int
    failed: int
    cancelled: int
    skipped: int
    message: str | None
    """What one of those that failed said."""


class Release(msgspec.Struct, frozen=True):
    """A step that begins: one execution for each of these parameters (JSON text)."""

    step: Step
    round: int
    parameters: list[str]


class Progress:
    """A run while it is worked on. `changed` holds the steps that are to be written."""

    def __init__(self, graph: Graph, states: Mapping[str, StepState], *, is_ending: bool = False) -> None:
        self.graph = graph
        self.states = states
        self.changed: dict[str, StepState] = {}
        self._is_ending = is_ending
        """It is being stopped: what runs ends, nothing begins."""
        self._to_judge: deque[str] = deque()

    def begin(self) -> None:
        """Judge every step that waits; a run that was being stopped goes on."""
        self._is_ending = False
        self._to_judge.extend(key for key, state in self.states.items() if state.status is StepStatus.BLOCKED)

    def note_end(self, end: StepEnd) -> None:
        """Take how the executions of a step have ended. One of an earlier round counts no more."""
        state = self.states[end.key]
        if state.status is StepStatus.RUNNING and state.round == end.round:
            status, cause = _ended(end)
            self._close(end.key, status, ENDS.get(status, Standing.FAILURE), cause)

    def take_ready(self) -> list[Step]:
        """Return the steps that begin now; each is to be released, or to fail."""
        ready: list[Step] = []
        while self._to_judge:
            key = self._to_judge.popleft()
            step, state = self.graph.steps[key], self.states[key]
            if state.status is not StepStatus.BLOCKED or self._is_ending:
                continue
            verdict = judge(step.when, [self.states[upstream].counts_as for upstream in step.depends_on])
            if verdict.runs:
                self._change(key, StepStatus.RUNNING)
                ready.append(step)
            elif verdict.skipped is not None:
                self._close(key, StepStatus.SKIPPED, verdict.skipped, self._why_skipped(step))
        return ready

    def sources_of(self, step: Step) -> list[str]:
        """Return the steps whose results a step refers to and that have one."""
        roots = {reference.root for _, reference in references_in([step.parameters, step.map])}
        return sorted(
            root for root in roots if root in self.states and self.states[root].status is StepStatus.COMPLETED
        )

    def release(self, step: Step, sources: Mapping[str, Any]) -> Release | None:
        """Return what a step begins with; None: it has ended at once, with an error or with nothing to do."""
        try:
            parameters = _instances(step, sources)
        except Unresolvable as error:
            self.fail(step.key, str(error))
            return None
        state = self.states[step.key]
        state.round, state.instances = state.round + 1, len(parameters)
        if not parameters:
            self._close(step.key, StepStatus.COMPLETED, Standing.SUCCESS, None)
            return None
        return Release(step, state.round, parameters)

    def fail(self, key: str, cause: str) -> None:
        """End a step that could not begin."""
        self._close(key, StepStatus.FAILED, Standing.FAILURE, cause)

    def cancel(self, cause: str) -> None:
        """Let nothing begin any more; what has begun ends by itself."""
        self._is_ending = True
        for key, state in self.states.items():
            if state.status is StepStatus.BLOCKED:
                self._close(key, StepStatus.CANCELLED, Standing.FAILURE, cause)

    def pass_over(self, key: str, cause: str) -> None:
        """Count a step that does not run as a success, and judge again what was skipped because of it."""
        self._close(key, StepStatus.SKIPPED, Standing.SUCCESS, cause)
        skipped = {k for k in self.graph.descendants([key]) if self.states[k].status is StepStatus.SKIPPED}
        self._reopen(k for k in skipped if not (self.states[k].cause or "").startswith(PASSED_OVER))

    def retry(self, keys: Iterable[str]) -> set[str]:
        """Have steps, and whatever comes after them, run again; return those that wait again."""
        again = set(keys)
        again |= self.graph.descendants(again)
        self._reopen(again)
        return again

    def outcome(self) -> RunStatus | None:
        """Return how the run has ended by its steps; None: it has not."""
        statuses = Counter(state.status for state in self.states.values())
        if statuses[StepStatus.BLOCKED] or statuses[StepStatus.RUNNING]:
            return None
        if statuses[StepStatus.FAILED]:
            return RunStatus.FAILED
        return RunStatus.CANCELLED if statuses[StepStatus.CANCELLED] else RunStatus.COMPLETED

    def _reopen(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._change(key, StepStatus.BLOCKED)
            self._to_judge.append(key)

    def _close(self, key: str, status: StepStatus, counts_as: Standing, cause: str | None) -> None:
        self._change(key, status, counts_as, cause)
        self._to_judge.extend(self.graph.downstream[key])

    def _change(
        self, key: str, status: StepStatus, counts_as: Standing = Standing.OPEN, cause: str | None = None
    ) -> None:
        state = self.states[key]
        state.status, state.counts_as, state.cause = status, counts_as, cause
        self.changed[key] = state

    def _why_skipped(self, step: Step) -> str:
        """Name what has kept a step from running: "extract FAILED", or the rule that was not met."""
        missed = [
            f"{key} {self.states[key].status}"
            for key in step.depends_on
            if self.states[key].counts_as in {Standing.FAILURE, Standing.NOTHING}
        ]
        if not missed:
            return f"{step.when}: nothing before it has failed"
        more = f" and {len(missed) - CAUSES_NAMED} more" if len(missed) > CAUSES_NAMED else ""
        return f"{step.when}: {', '.join(missed[:CAUSES_NAMED])}{more}"


def _ended(end: StepEnd) -> tuple[StepStatus, str | None]:
    """Return how a step has ended by its executions. One that failed makes it fail, whatever the others did."""
    total = end.completed + end.failed + end.cancelled + end.skipped
    if end.failed:
        count = f"{end.failed} of {total} failed: " if total > 1 else ""
        return StepStatus.FAILED, f"{count}{end.message or 'no message'}"
    if end.cancelled or not end.completed:
        count = f"{end.cancelled or total} of {total} were cancelled" if total > 1 else "it was cancelled"
        return StepStatus.CANCELLED, count
    if end.skipped:
        return StepStatus.CANCELLED, f"{end.skipped} of {total} were skipped"
    return StepStatus.COMPLETED, None


def _instances(step: Step, sources: Mapping[str, Any]) -> list[str]:
    """Return the parameters of each execution of a step, as JSON. Raises `Unresolvable`."""
    if step.map is None:
        return [_encoded(step, resolved(step.parameters, sources))]
    items = resolved(step.map, sources)
    if not isinstance(items, list):
        kind = "null" if items is None else type(items).__name__
        raise Unresolvable(
            f"map: {msgspec.json.encode(step.map).decode():.200} leads to {kind}, not to a list"
        )
    if len(items) > MOST_INSTANCES:
        raise Unresolvable(f"map: {len(items):,} items; a step maps over {MOST_INSTANCES:,} at most")
    found: list[str] = []
    size = 0
    for index, item in enumerate(items):
        own = {**sources, "item": item, "index": index}
        found.append(_encoded(step, resolved(step.parameters, own)))
        size += len(found[-1])
        if size > RELEASE_LIMIT_BYTES:
            raise Unresolvable(f"the parameters of its instances are more than {RELEASE_LIMIT_BYTES:,} bytes")
    return found


def _encoded(step: Step, parameters: object) -> str:
    if not isinstance(parameters, dict):
        raise Unresolvable(
            f"its parameters come to {msgspec.json.encode(parameters).decode():.100}, not to an object"
        )
    text = msgspec.json.encode(parameters)
    if len(text) > PARAMETERS_LIMIT_BYTES:
        raise Unresolvable(
            f"the parameters of {step.key} are {len(text):,} bytes with what they refer to; "
            f"an execution has {PARAMETERS_LIMIT_BYTES:,} at most"
        )
    return text.decode()
