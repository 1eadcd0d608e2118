"""Tasks as people define them."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from app.domain.command import parse_command
from app.domain.errors import InvalidInput
from app.domain.failure_rules import FailureRules
from app.domain.http_target import parse_http_target
from app.domain.jobs import MaxRetries, Name, Priority, TimeoutSeconds
from app.domain.labels import Labels
from app.domain.limits import ConcurrencyKey, Most, RateLimit
from app.domain.retry import RetryPolicy

TaskId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_.-]{0,127}$(?!\n)")]
DelaySeconds = Annotated[float, msgspec.Meta(ge=0, le=31 * 86_400)]
CpuCores = Annotated[float, msgspec.Meta(ge=0, le=1024)]
MemoryMb = Annotated[int, msgspec.Meta(ge=0, le=2**20)]
Description = Annotated[str, msgspec.Meta(max_length=10_000)]
HandlerText = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=4_000,
        description="python:NAME, http:METHOD URL, shell:COMMAND (where commands are allowed) or builtin:NAME",
        examples=[
            "python:sync.customers",
            "http:POST https://example.com/hook",
            "shell:tar -czf /b.tgz /etc",
        ],
    ),
]

BUILTIN_NAMES = ("noop", "echo", "sleep", "fail")


class ResourceRequirements(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What an execution needs, how long it may take, and how often it is tried."""

    cpu_cores: CpuCores = 0.0
    memory_mb: MemoryMb = 0
    timeout_seconds: TimeoutSeconds = 3600.0
    retry_policy: RetryPolicy = RetryPolicy.EXPONENTIAL
    max_retries: MaxRetries | None = None
    """None: the queue's."""
    retry_delay_seconds: DelaySeconds = 1.0
    retry_max_delay_seconds: DelaySeconds = 3600.0


class TaskRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A task as people ask for it."""

    task_id: TaskId
    name: Name | None = None
    """Defaults to the id."""
    description: Description = ""
    execution_handler: HandlerText
    parameter_schema: dict[str, Any] = {}
    resource_requirements: ResourceRequirements = ResourceRequirements()
    failure_rules: FailureRules = []
    queue: str = "general"
    priority: Priority | None = None
    """Defaults to the queue's."""
    labels: Labels = {}
    """What a worker must offer to run it."""
    concurrency: Most | None = None
    """How many of its executions run at once, over all workers."""
    concurrency_key: ConcurrencyKey | None = None
    """A job's own wins."""
    concurrency_limit: Most | None = None
    """How many with the same key run at once; null: one."""
    rate_limit: RateLimit | None = None
    """Of each concurrency_key where there is one, else of the task as a whole."""


class TaskReplacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole new definition of a task; its id stands in the address."""

    name: Name | None = None
    description: Description = ""
    execution_handler: HandlerText
    parameter_schema: dict[str, Any] = {}
    resource_requirements: ResourceRequirements = ResourceRequirements()
    failure_rules: FailureRules = []
    queue: str = "general"
    priority: Priority | None = None
    labels: Labels = {}
    """What a worker must offer to run it."""
    concurrency: Most | None = None
    """How many of its executions run at once, over all workers."""
    concurrency_key: ConcurrencyKey | None = None
    """A job's own wins."""
    concurrency_limit: Most | None = None
    """How many with the same key run at once; null: one."""
    rate_limit: RateLimit | None = None
    """Of each concurrency_key where there is one, else of the task as a whole."""


class ResourcePatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The resource requirements to change."""

    cpu_cores: CpuCores | UnsetType = UNSET
    memory_mb: MemoryMb | UnsetType = UNSET
    timeout_seconds: TimeoutSeconds | UnsetType = UNSET
    retry_policy: RetryPolicy | UnsetType = UNSET
    max_retries: MaxRetries | UnsetType | None = UNSET
    retry_delay_seconds: DelaySeconds | UnsetType = UNSET
    retry_max_delay_seconds: DelaySeconds | UnsetType = UNSET


class TaskPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parts of a task to change; what is left out stays."""

    name: Name | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    execution_handler: HandlerText | UnsetType = UNSET
    parameter_schema: dict[str, Any] | UnsetType = UNSET
    resource_requirements: ResourcePatch | UnsetType = UNSET
    failure_rules: FailureRules | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    labels: Labels | UnsetType = UNSET
    concurrency: Most | UnsetType | None = UNSET
    concurrency_key: ConcurrencyKey | UnsetType | None = UNSET
    concurrency_limit: Most | UnsetType | None = UNSET
    rate_limit: RateLimit | UnsetType | None = UNSET


def check_handler(text: str, *, allow_private_targets: bool, allow_shell: bool) -> None:
    """Refuse an `execution_handler` that no worker could ever run. Raises `InvalidInput`.

    Whether a `python:` name is registered and a command is installed is known to the workers only.
    """
    kind, _, rest = text.partition(":")
    match kind:
        case "builtin" if rest in BUILTIN_NAMES:
            return
        case "builtin":
            raise _invalid(f"there is no builtin:{rest}; use one of {', '.join(BUILTIN_NAMES)}")
        case "python" if rest.isidentifier() or (rest and all(p.isidentifier() for p in rest.split("."))):
            return
        case "python":
            raise _invalid("write python:NAME with the name that the function is registered under")
        case "http":
            parse_http_target(rest, allow_private=allow_private_targets)
        case "shell":
            parse_command(rest)
            if not allow_shell:
                raise _invalid("commands are not allowed here; start onthedot with ONTHEDOT_ALLOW_SHELL=true")
        case _:
            raise _invalid(f"{text!r:.100}: use python:NAME, http:METHOD URL, shell:COMMAND or builtin:NAME")


def _invalid(detail: str) -> InvalidInput:
    return InvalidInput(detail, pointer="/execution_handler", code="invalid_handler")
