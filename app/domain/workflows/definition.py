"""Workflows as people define them."""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from app.domain.admission import Overlap
from app.domain.job_changes import JobPatch
from app.domain.jobs import JobRequest, MaxRetries, Name, Priority, Tag, TimeoutSeconds
from app.domain.stored_schedule import JobSchedule

MOST_STEPS = 5_000
MOST_INSTANCES = 10_000
"""Of one step that maps over a list."""
WORKFLOW_TASK = "onthedot.workflow"
"""The task of every workflow's job: what it does is to begin a run."""
WORKFLOW_HANDLER = "builtin:workflow"

StepKey = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$(?!\n)")]
DeadlineSeconds = Annotated[float, msgspec.Meta(gt=0, le=366 * 86_400)]


class When(StrEnum):
    """Which ends of the steps before it let a step run. docs/workflows.md has the table."""

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"
    ANY_SUCCESS = "any_success"
    ANY_FAILED = "any_failed"
    NONE_FAILED = "none_failed"


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One step: a task with its parameters, after other steps."""

    key: StepKey
    task_id: str
    parameters: dict[str, Any] = {}
    """A value `{"$from": "extract.rows"}` stands for what the step `extract` has returned under `rows`."""
    depends_on: Annotated[list[StepKey], msgspec.Meta(max_length=MOST_STEPS)] = []
    when: When = When.ALL_SUCCESS
    map: list[Any] | dict[str, str] | None = None
    """A list, or a reference to one: the step runs once for each of its items, `{"$from": "item"}`."""
    queue: str | None = None
    priority: Priority | None = None
    max_retries: MaxRetries | None = None
    timeout_seconds: TimeoutSeconds | None = None


class WorkflowBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a change replaces: the steps, and what holds for a run as a whole."""

    steps: Annotated[list[Step], msgspec.Meta(min_length=1, max_length=MOST_STEPS)]
    overlap: Overlap = Overlap.ALLOW
    """What becomes of a run that is due while another run of the workflow is under way."""
    deadline_seconds: DeadlineSeconds | None = None
    """A run that is not over so long after it began is stopped, and has failed."""


class WorkflowRequest(WorkflowBody, frozen=True, kw_only=True):
    """A workflow as people ask for it."""

    schedule: JobSchedule
    name: Name | None = None
    parameters: dict[str, Any] = {}
    """Of each run; steps refer to them as `{"$from": "parameters.NAME"}`."""
    tags: Annotated[list[Tag], msgspec.Meta(max_length=50)] = []
    user_id: str | None = None
    """Defaults to the owner of the API key; only an admin may name somebody else."""

    def job(self) -> JobRequest:
        """Return the job whose executions begin the runs."""
        return JobRequest(
            task_id=WORKFLOW_TASK,
            schedule=self.schedule,
            parameters=self.parameters,
            user_id=self.user_id,
            name=self.name,
            tags=self.tags,
        )

    def body(self) -> WorkflowBody:
        """Return what its runs are made of."""
        return WorkflowBody(steps=self.steps, overlap=self.overlap, deadline_seconds=self.deadline_seconds)


class WorkflowPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parts of a workflow to change; what is left out stays. Runs that have begun keep what they began with."""

    steps: Annotated[list[Step], msgspec.Meta(min_length=1, max_length=MOST_STEPS)] | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    deadline_seconds: DeadlineSeconds | UnsetType | None = UNSET
    schedule: JobSchedule | UnsetType = UNSET
    name: Name | UnsetType | None = UNSET
    parameters: dict[str, Any] | UnsetType = UNSET
    tags: Annotated[list[Tag], msgspec.Meta(max_length=50)] | UnsetType = UNSET

    def given(self) -> dict[str, Any]:
        """Return what it says of the runs."""
        found = {name: getattr(self, name) for name in WorkflowBody.__struct_fields__}
        return {name: value for name, value in found.items() if value is not UNSET}

    def job(self) -> JobPatch:
        """Return what it says of the job whose executions begin the runs."""
        names = ("schedule", "name", "parameters", "tags")
        return JobPatch(**{name: getattr(self, name) for name in names})
