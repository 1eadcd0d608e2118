"""Queues as people define them."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from app.domain.jobs import MaxRetries, Priority
from app.domain.limits import Most, RateLimit

QueueName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_.-]{0,62}$(?!\n)")]
MaxDelayMs = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]
LeaseSeconds = Annotated[float, msgspec.Meta(ge=3, le=86_400)]
"""As short as a worker's may be (see `budget`)."""
BatchSize = Annotated[int, msgspec.Meta(ge=1, le=1000)]
ReservedSlots = Annotated[int, msgspec.Meta(ge=0, le=10_000)]


class Durability(StrEnum):
    """What the record of a completion survives. No job is ever lost under either."""

    STRONG = "strong"
    RELAXED = "relaxed"
    """A crash of the database may lose the record of the last completions; they then run again."""


class QueueRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A queue as people ask for it."""

    queue: QueueName
    priority: Priority = 2
    """Of tasks that name none."""
    max_delay_ms: MaxDelayMs | None = None
    """Lateness objective; None: 2,000."""
    lease_seconds: LeaseSeconds = 600.0
    """A ceiling: the lease in force is never longer than the workers' setting."""
    max_retries: MaxRetries = 3
    batch_size: BatchSize = 100
    """How many executions a worker claims at once."""
    durability: Durability = Durability.STRONG
    reserved_slots: ReservedSlots = 0
    """Slots of each worker that only this queue may use."""
    interruptible: bool = False
    """Its work yields its slots to more urgent work of queues that are not interruptible."""
    max_concurrency: Most | None = None
    """How many of its executions run at once, over all workers."""
    rate_limit: RateLimit | None = None


class QueuePatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parts of a queue to change; what is left out stays."""

    priority: Priority | UnsetType = UNSET
    max_delay_ms: MaxDelayMs | UnsetType | None = UNSET
    lease_seconds: LeaseSeconds | UnsetType = UNSET
    max_retries: MaxRetries | UnsetType = UNSET
    batch_size: BatchSize | UnsetType = UNSET
    durability: Durability | UnsetType = UNSET
    reserved_slots: ReservedSlots | UnsetType = UNSET
    interruptible: bool | UnsetType = UNSET
    max_concurrency: Most | UnsetType | None = UNSET
    rate_limit: RateLimit | UnsetType | None = UNSET
