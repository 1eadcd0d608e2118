"""Changes of jobs: what people may change, and what follows for executions that are planned already."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from app.domain.admission import Overlap
from app.domain.jobs import DependsOn, ExpiresAfterSeconds, MaxRetries, Name, Priority, Tag, TimeoutSeconds
from app.domain.limits import ConcurrencyKey, Most, check_key
from app.domain.stored_schedule import JobSchedule, schedule_columns

_WHAT_EXECUTIONS_COPY = frozenset(
    {
        "parameters",
        "queue",
        "priority",
        "max_retries",
        "timeout_seconds",
        "is_active",
        "expires_after_seconds",
        "overlap",
        "concurrency_key",
        "concurrency_limit",
        "depends_on",
    }
)
_WHAT_LIMITS = frozenset({"overlap", "concurrency_key", "concurrency_limit"})


class JobPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parts of a job to change; what is left out stays. `null` gives an override back to the task.

    A `schedule` replaces the whole schedule.
    """

    name: Name | UnsetType | None = UNSET
    tags: Annotated[list[Tag], msgspec.Meta(max_length=50)] | UnsetType = UNSET
    schedule: JobSchedule | UnsetType = UNSET
    parameters: dict[str, Any] | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    concurrency_key: ConcurrencyKey | UnsetType | None = UNSET
    concurrency_limit: Most | UnsetType | None = UNSET
    queue: str | UnsetType | None = UNSET
    priority: Priority | UnsetType | None = UNSET
    max_retries: MaxRetries | UnsetType | None = UNSET
    timeout_seconds: TimeoutSeconds | UnsetType | None = UNSET
    expires_after_seconds: ExpiresAfterSeconds | UnsetType | None = UNSET
    depends_on: DependsOn | UnsetType = UNSET
    is_active: bool | UnsetType = UNSET


class Change(msgspec.Struct, frozen=True):
    """A change of a job as columns to write."""

    columns: dict[str, Any]

    @property
    def schedule_changed(self) -> bool:
        """Tell whether it says anew when the job runs."""
        return "schedule_type" in self.columns

    @property
    def deadline_changed(self) -> bool:
        """Tell whether it says anew how late an execution may begin."""
        return "expires_after_seconds" in self.columns

    @property
    def replans(self) -> bool:
        """Tell whether planned executions must follow: they carry copies of what the claim decides by."""
        return self.schedule_changed or not _WHAT_EXECUTIONS_COPY.isdisjoint(self.columns)

    @property
    def limits(self) -> bool:
        """Tell whether it says anew what executions run beside: this holds for those that have begun, too."""
        return not _WHAT_LIMITS.isdisjoint(self.columns)


def change_of(patch: JobPatch, *, now: datetime, aliases: Mapping[str, str]) -> Change:
    """Return the columns that a patch changes. Raises `InvalidInput` with pointers under `/schedule`."""
    given = {name: value for name, value in msgspec.structs.asdict(patch).items() if value is not UNSET}
    check_key(given.get("concurrency_key"))
    schedule = given.pop("schedule", None)
    if "parameters" in given:
        given["parameters"] = msgspec.json.encode(given["parameters"]).decode()
    if given.get("is_active"):
        given |= {"pause_reason": None, "paused_until": None}
    if schedule is not None:
        given |= msgspec.structs.asdict(schedule_columns(schedule, now=now, aliases=aliases))
    return Change(given)


def pause(*, reason: str | None, until: datetime | None) -> Change:
    """Return the change that pauses a job."""
    return Change({"is_active": False, "pause_reason": reason, "paused_until": until})


def resume() -> Change:
    """Return the change that resumes a job."""
    return Change({"is_active": True, "pause_reason": None, "paused_until": None})
