"""What a worker holds: an execution under its lease, and the task that says how to run it."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from app.domain.failure_rules import FailureRule
from app.domain.retry import Backoff


class LeaseId(NamedTuple):
    """One grant of the lease of an execution. A worker that loses one may be given the next: what it still does under
    the old one must not be taken for the new one's."""

    execution_id: UUID
    lease_epoch: int


class Claim(msgspec.Struct, frozen=True, gc=False):
    """An execution this worker owns until its lease ends. Fields in the order in which the claim returns them.

    `lease_epoch` fences every write: a row that somebody else has touched since has another one.
    """

    shard: int
    execution_id: UUID
    job_id: UUID
    user_id: str
    task_id: str
    task_revision: int | None
    """Revision of the task to run; None: the task is gone."""
    queue: str
    priority: int
    status: str
    trigger: str
    scheduled_time: datetime
    due_at: datetime
    first_due_at: datetime
    parameters: str
    """JSON text."""
    timeout_seconds: float | None
    max_attempts: int
    attempt_number: int
    lease_epoch: int
    claimed_at: datetime
    lease_expires_at: datetime
    lateness_ms: float | None
    parameters_checked: bool = True
    """False: the job was made by SQL, and its parameters have yet to meet the task's schema."""
    run_key: str = ""
    """Of a workflow's step, what it belongs to (domain/workflows/run_keys.py)."""
    limited: bool = False
    """It counts against limits until its lease is over."""
    throttled_ms: float = 0.0
    """How long limits have kept its first attempt waiting."""

    @property
    def lease(self) -> LeaseId:
        """Return the lease under which it is held."""
        return LeaseId(self.execution_id, self.lease_epoch)


class TaskToRun(msgspec.Struct, frozen=True):
    """What a worker needs to know of a task."""

    task_id: str
    revision: int
    execution_handler: str
    timeout_seconds: float
    backoff: Backoff
    parameter_schema: str = "{}"
    """JSON text."""
    failure_rules: tuple[FailureRule, ...] = ()
    memory_mb: int = 0
    """0: nothing is said."""


class QueueToServe(msgspec.Struct, frozen=True):
    """What a worker needs to know of a queue."""

    queue: str
    max_delay_ms: int
    lease_seconds: float
    batch_size: int
    relaxed: bool
    paused: bool
    priority: int
    reserved_slots: int
    """Of each worker."""
    interruptible: bool
