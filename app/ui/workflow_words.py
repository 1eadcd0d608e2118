"""What pages say of workflows, their runs and the steps of these."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from app.db.reads.workflow_runs import RunDetail, RunView, StepView
from app.db.reads.workflows import WorkflowView
from app.domain.statuses import Status
from app.domain.workflows.definition import Step
from app.domain.workflows.graph import Graph
from app.domain.workflows.progress import PASSED_OVER, RunStatus
from app.domain.workflows.rules import StepStatus
from app.ui.job_rows import JobStatus

NAMED_BEFORE = 3
"""Of the steps that one waits for."""
RULES = {
    "all_success": "all before it succeed",
    "all_done": "all before it are over",
    "any_success": "one before it succeeds",
    "any_failed": "one before it fails",
    "none_failed": "none before it fails",
}
"""When a step runs, by its `when`."""
OVERLAPS = {
    "allow": "runs may overlap",
    "skip": "a run that is due while another is under way is cancelled",
    "queue": "a run that is due while another is under way waits for its end",
    "cancel_running": "a run that is due cancels the one that is under way",
}
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED", "SKIPPED"})
"""Of steps."""
_WAITS: Mapping[str, str] = {
    Status.PENDING: "a worker has yet to take it",
    Status.SCHEDULED: "a worker holds it ready",
    Status.RETRYING: "it is tried again",
    StepStatus.RUNNING: "it has just been released",
}
_RETRIED = frozenset({StepStatus.FAILED.value, StepStatus.CANCELLED.value})


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How far the steps of a run are."""

    total: int
    ended: int
    failed: int

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Tally":
        """Return it from how many steps have which status."""
        ended = sum(count for status, count in counts.items() if status in ENDED)
        return cls(total=sum(counts.values()), ended=ended, failed=counts.get("FAILED", 0))

    @property
    def share(self) -> float:
        """Return the share that has ended, from 0 to 1."""
        return self.ended / self.total if self.total else 0


class StepLine(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a run as a page shows it."""

    step: StepView
    why: str
    """Why it waits, or how its executions are; empty where there is nothing to say."""
    page: str
    """Of its execution, or of its executions; empty where it has none."""
    may_retry: bool
    may_skip: bool


def run_mark(run: RunView) -> JobStatus:
    """Return what a run is doing: the name of its mark, and the word beside it."""
    if run.is_queued:
        return JobStatus("pending", "Queued")
    if run.is_ending:
        return JobStatus("running", "Stopping")
    return JobStatus(run.status.lower(), run.status.capitalize())


def workflow_mark(workflow: WorkflowView) -> JobStatus:
    """Return what a workflow is doing."""
    latest = workflow.latest_run
    if not workflow.is_active:
        return JobStatus("paused", "Paused")
    if latest is not None and latest.status == RunStatus.RUNNING:
        return JobStatus("running", "Running")
    if latest is not None and latest.status == RunStatus.FAILED:
        return JobStatus("failed", "Failing")
    return JobStatus("pending", "Waiting") if workflow.next_occurrences else JobStatus("stopped", "Over")


def workflow_name(name: str | None, workflow_id: UUID) -> str:
    """Return what a workflow is called; without a name it goes by its id."""
    return name or str(workflow_id)


def overlap_words(overlap: str) -> str:
    """Return what becomes of a run that is due while another one is under way."""
    return OVERLAPS.get(overlap, overlap)


def when_words(when: str) -> str:
    """Return when a step runs."""
    return RULES.get(when, when)


def lines_of(run: RunDetail) -> list[StepLine]:
    """Return the steps of a run."""
    statuses = {step.key: step.status for step in run.steps}
    goes_on = not run.is_ending and not run.is_queued
    was_stopped = run.status is not RunStatus.RUNNING and run.cause is not None
    return [
        StepLine(
            step=step,
            why=_why(step, statuses, run),
            page=page_of(run.workflow_run_id, step),
            may_retry=goes_on and step.status in ENDED,
            may_skip=goes_on and not was_stopped and _may_skip(step),
        )
        for step in run.steps
    ]


def page_of(run_id: UUID, step: StepView) -> str:
    """Return the page of a step's execution, or of its executions; empty where it has none."""
    if step.execution_id is not None:
        return f"/executions/{step.execution_id}"
    if step.instances is not None and step.instances.total:
        return f"/workflow-runs/{run_id}/steps/{step.key}"
    return ""


def counts_in_words(by_status: Mapping[str, int]) -> str:
    """Return executions by what they are doing: `20 completed, 3 failed`."""
    order = [status.value for status in Status]
    known = sorted(
        by_status.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)
    )
    return ", ".join(f"{count:,} {status.lower()}" for status, count in known if count)


def again(run: RunDetail, keys: Sequence[str] | None) -> list[str]:
    """Return the steps that a retry has run again, in the order of the definition; None: from those that failed."""
    graph = Graph([Step(key=step.key, task_id="", depends_on=step.depends_on) for step in run.steps])
    first = {step.key for step in run.steps if step.status in _RETRIED} if keys is None else set(keys)
    after = first | graph.descendants(first)
    return [step.key for step in run.steps if step.key in after]


def can_be_retried(run: RunDetail) -> bool:
    """Tell whether there are steps that failed or were cancelled, and the run is neither being stopped nor queued."""
    return not run.is_ending and not run.is_queued and any(step.status in _RETRIED for step in run.steps)


def _may_skip(step: StepView) -> bool:
    passed_over = step.status == StepStatus.SKIPPED and (step.cause or "").startswith(PASSED_OVER)
    return step.status in {"BLOCKED", "FAILED", "CANCELLED", "SKIPPED"} and not passed_over


def _why(step: StepView, statuses: Mapping[str, str], run: RunDetail) -> str:
    if step.cause:
        return step.cause
    if step.status == StepStatus.BLOCKED:
        return _waits_for(step, statuses, run)
    if step.instances is not None:
        return counts_in_words(step.instances.by_status) or (
            "" if step.instances.total else "nothing to map over"
        )
    return _WAITS.get(step.status, "") if step.started_at is None else ""


def _waits_for(step: StepView, statuses: Mapping[str, str], run: RunDetail) -> str:
    if run.is_queued:
        return "another run of the workflow is under way"
    open_before = [key for key in step.depends_on if statuses[key] not in ENDED]
    more = f" and {len(open_before) - NAMED_BEFORE} more" if len(open_before) > NAMED_BEFORE else ""
    return f"waits for {', '.join(open_before[:NAMED_BEFORE])}{more}" if open_before else ""
