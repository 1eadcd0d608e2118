"""What a form says, as commands that do the same."""

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

_OPTIONS = {
    "name": "--name",
    "user_id": "--user",
    "queue": "--queue",
    "priority": "--priority",
    "expires_after_seconds": "--expires-after",
    "overlap": "--overlap",
    "concurrency_key": "--concurrency-key",
    "concurrency_limit": "--concurrency-limit",
}
_ELSEWHERE = {"task_id", "schedule", "parameters", *_OPTIONS}
_SHORT = {
    "RECURRING": ("expression", "--cron"),
    "ONCE": ("scheduled_time", "--at"),
    "INTERVAL": ("every", "--every"),
}
_IF_MATCH = """'If-Match: "%d"'"""

Document = Mapping[str, Any]


class Edited(NamedTuple):
    """The job that a form changes, at the version that was seen."""

    job_id: UUID
    version: int


def curl(document: Document, *, server: str, edited: Edited | None = None) -> str:
    """Return a `curl` that creates the job, or changes it if it still is of the version that was seen."""
    method, path = ("PATCH", f"/jobs/{edited.job_id}") if edited else ("POST", "/jobs")
    lines = [
        f"curl -X {method} {shlex.quote(f'{server}/api/v1{path}')}",
        '-H "Authorization: Bearer $KEY" -H "Content-Type: application/json"',
        *([f"-H {_IF_MATCH % edited.version}"] if edited else []),
        f"-d {shlex.quote(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())}",
    ]
    return " \\\n  ".join(lines)


def command_line(document: Document, *, edited: Edited | None = None) -> str:
    """Return the `onthedot job create` or `edit` that does the same."""
    if edited:
        parts = [f"onthedot job edit {edited.job_id}", *_set(document), f"--if-version {edited.version}"]
        return _lines(parts)
    parts = [f"onthedot job create {shlex.quote(document['task_id'])}", *_when(document["schedule"])]
    parts += [f"-p {_assigned(name, value)}" for name, value in document.get("parameters", {}).items()]
    parts += [f"{o} {shlex.quote(str(document[name]))}" for name, o in _OPTIONS.items() if name in document]
    return _lines(
        [*parts, *_set({name: value for name, value in document.items() if name not in _ELSEWHERE})]
    )


def _when(schedule: Document) -> list[str]:
    kind = schedule["type"]
    if kind == "IMMEDIATE":
        return ["--now"]
    name, option = _SHORT.get(kind, ("", ""))
    if name not in schedule or schedule.keys() - {"type", "timezone", name}:
        return _set({"schedule": schedule})
    zone = [f"--timezone {shlex.quote(schedule['timezone'])}"] if "timezone" in schedule else []
    return [f"{option} {shlex.quote(str(schedule[name]))}", *zone]


def _set(document: Document) -> list[str]:
    return [f"--set {_assigned(name, value)}" for name, value in document.items()]


def _assigned(name: str, value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return `name=value`. Text that would be read as JSON, such as `17`, is written as JSON itself."""
    text = value if isinstance(value, str) and not _is_json(value) else msgspec.json.encode(value).decode()
    return shlex.quote(f"{name}={text}")


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


def _lines(parts: list[str]) -> str:
    return " \\\n  ".join(parts)
