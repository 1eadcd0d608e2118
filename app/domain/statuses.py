"""The life of an execution: its statuses and the ways between them."""

from enum import StrEnum


class Status(StrEnum):
    """What an execution is doing."""

    BLOCKED = "BLOCKED"
    """Waits for dependencies."""
    PENDING = "PENDING"
    """Materialised; waits for its instant."""
    SCHEDULED = "SCHEDULED"
    """Leased by a worker a moment ahead of its instant; fires from the worker's timer."""
    RUNNING = "RUNNING"
    RETRYING = "RETRYING"
    """Failed; waits for its next attempt."""
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"
    """Never ran, for the reason its disposition gives."""


UNLEASED = (Status.BLOCKED, Status.PENDING, Status.RETRYING)
"""Statuses of what nobody has leased."""
LEASED = (Status.SCHEDULED, Status.RUNNING)
"""Statuses under a worker's lease."""
LIVE = UNLEASED + LEASED
"""Statuses of rows in `executions`."""
FINAL = (Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.SKIPPED)
"""Statuses of rows in `execution_history`."""
READY = (Status.PENDING, Status.RETRYING)
"""Statuses that a worker may claim once `due_at` has come."""

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.BLOCKED: frozenset({Status.PENDING, Status.SKIPPED, Status.CANCELLED}),
    Status.PENDING: frozenset({Status.SCHEDULED, Status.RUNNING, Status.CANCELLED, Status.SKIPPED}),
    Status.SCHEDULED: frozenset(
        {Status.RUNNING, Status.PENDING, Status.RETRYING, Status.CANCELLED, Status.SKIPPED}
    ),
    Status.RUNNING: frozenset(
        {Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.RETRYING, Status.PENDING}
    ),
    Status.RETRYING: frozenset(
        {Status.SCHEDULED, Status.RUNNING, Status.CANCELLED, Status.SKIPPED, Status.FAILED}
    ),
} | {final: frozenset() for final in FINAL}
"""Every way from one status to another. RUNNING goes back to PENDING or RETRYING when its worker gives it up
before it has begun, or loses its lease."""


class Trigger(StrEnum):
    """What brought an execution about."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    BACKFILL = "backfill"
    RETRY = "retry"
    REDRIVE = "redrive"
    WORKFLOW = "workflow"


class Disposition(StrEnum):
    """What became of an instant that a schedule produced."""

    PENDING = "pending"
    RAN = "ran"
    LATE = "late"
    SKIPPED_OVERLAP = "skipped_overlap"
    SKIPPED_MISFIRE = "skipped_misfire"
    COALESCED = "coalesced"
    BLACKOUT = "blackout"
    DST_GAP = "dst_gap"
    PAUSED = "paused"
    DEFERRED_QUOTA = "deferred_quota"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    FAILED = "failed"
