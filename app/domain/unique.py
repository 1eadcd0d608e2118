"""Unique jobs: at most one of a user and task under a key. Who asks for a second one keeps or replaces the first."""

import hashlib
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID


class UniquePolicy(StrEnum):
    """What happens where the key is held."""

    KEEP = "keep"
    """Nothing is created: the job that holds it is the answer."""
    REPLACE = "replace"
    """It gets what was asked for, while it has not begun; else a new job takes the key over."""


class Fate(StrEnum):
    """What became of a job that was asked for under a key."""

    CREATED = "created"
    EXISTS = "exists"
    REPLACED = "replaced"


class Holder(NamedTuple):
    """The job that had a key last, as it is while the key is locked."""

    job_id: UUID
    holds: bool
    """It holds the key still."""
    has_begun: bool


def scope_hash(user_id: str, task_id: str, key: str) -> bytes:
    """Return what stands for a key: it belongs to a user and a task, whose ids have no line ends."""
    return hashlib.sha256(f"{user_id}\n{task_id}\n{key}".encode()).digest()


def fate_of(policy: UniquePolicy, holder: Holder | None) -> Fate:
    """Decide what becomes of a job that is asked for under a locked key."""
    if holder is None or not holder.holds:
        return Fate.CREATED
    if policy is UniquePolicy.KEEP:
        return Fate.EXISTS
    return Fate.CREATED if holder.has_begun else Fate.REPLACED
