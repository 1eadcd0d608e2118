"""A job as the fields of its form, and what the fields say as the API takes it.

Fields are named by JSON pointer with dots: `/schedule/expression` is `schedule.expression`.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from app.db.reads.jobs import JobView
from app.domain import strict_json
from app.domain.admission import Overlap
from app.domain.errors import Conflict, FieldError, InvalidInput, UnknownTask
from app.domain.jobs import Tag
from app.domain.schedule_spec import ScheduleType
from app.domain.timezones import Fold, Gap, Zone, resolve
from app.ui.words import pretty

IN_SCHEDULE = "schedule."
FITTING: Mapping[str, tuple[str, ...]] = {
    ScheduleType.IMMEDIATE: (),
    ScheduleType.ONCE: ("scheduled_time", "timezone", "gap", "fold"),
    ScheduleType.INTERVAL: ("every", "timezone", "starts_at", "ends_at", "misfire", "misfire_grace_seconds"),
    ScheduleType.RECURRING: (
        "expression", "timezone", "gap", "fold", "starts_at", "ends_at", "misfire", "misfire_grace_seconds",
    ),
}  # fmt: skip
"""What a schedule of each type says. The other fields keep their values in the form and are not sent."""
SCHEDULE_FIELDS = tuple(dict.fromkeys(["type", *(name for names in FITTING.values() for name in names)]))
PLAIN_FIELDS = (
    "task_id",
    "user_id",
    "name",
    "tags",
    "parameters",
    "queue",
    "priority",
    "max_retries",
    "timeout_seconds",
    "expires_after_seconds",
    "overlap",
    "concurrency_key",
    "concurrency_limit",
)
FIELDS = (*PLAIN_FIELDS, *(IN_SCHEDULE + name for name in SCHEDULE_FIELDS), "every_unit")

UNITS = (("seconds", 1), ("minutes", 60), ("hours", 3_600), ("days", 86_400))
_ISO_UNITS = {"seconds": "PT{}S", "minutes": "PT{}M", "hours": "PT{}H", "days": "P{}D"}
_WHOLE = re.compile(r"-?\d{1,15}", re.ASCII)
_DECIMAL = re.compile(r"-?\d{1,15}\.\d{1,15}", re.ASCII)
_ISO_DURATION = re.compile(r"[Pp].*")
_INPUT = re.compile(r"p\d{1,3}", re.ASCII)
"""A field of one parameter."""
_NAME_LENGTH = 200
MOST_PARAMETERS = 16_000
"""Characters. A form has 64 kB, and sends some characters as three; larger parameters stay out of it as they are."""

DEFAULTS: Mapping[str, str] = {
    "parameters": "{}",
    "schedule.type": ScheduleType.RECURRING,
    "schedule.expression": "0 2 * * *",
    "schedule.every": "15",
    "schedule.timezone": "UTC",
    "schedule.gap": Gap.RUN_AFTER_GAP,
    "schedule.fold": Fold.FIRST,
    "schedule.misfire": "run_once",
    "schedule.misfire_grace_seconds": "60",
    "every_unit": "minutes",
    "overlap": Overlap.ALLOW,
}

Values = Mapping[str, str]


def document_of(values: Values) -> dict[str, Any]:
    """Return what a form says, as `POST /jobs` takes it; empty fields are left out.

    Raises `InvalidInput` for text that means nothing in its field, with all such fields.
    """
    errors: list[FieldError] = []
    found = {name: _read(values, name, read, errors) for name, read in _READERS.items()}
    if found["task_id"] is None and not values.get("task_id", "").strip():
        errors.append(FieldError("/task_id", UnknownTask.code, "choose what it runs"))
    document = {
        name: value for name, value in found.items() if value is not None and value != _LEFT_OUT.get(name)
    }
    document["schedule"] = schedule_of(values, errors)
    if errors:
        raise InvalidInput(errors[0].detail, errors=tuple(errors))
    return document


def parameters_of(values: Values) -> Any:  # noqa: ANN401 - any JSON
    """Return the parameters that a form says. Raises `InvalidInput` for what is no JSON."""
    return _parameters(values, "parameters")


def schedule_of(values: Values, errors: list[FieldError]) -> dict[str, Any]:
    """Return the schedule that a form says, without what its type does not take; what is no value joins `errors`."""
    kind = values.get("schedule.type", "").strip()
    schedule: dict[str, Any] = {"type": kind}
    for name in FITTING.get(kind, ()):
        value = _read(values, IN_SCHEDULE + name, _SCHEDULE_READERS.get(name, _text), errors)
        if value is not None and str(value) != _LEFT_OUT.get(name):
            schedule[name] = value
    return schedule


def changes_of(values: Values, changed: set[str]) -> dict[str, Any]:
    """Return what a form changes, as `PATCH /jobs/{id}` takes it: an emptied field gives its override back."""
    document = document_of(values)
    names = {"schedule" if name.startswith(IN_SCHEDULE) or name == "every_unit" else name for name in changed}
    emptied: dict[str, Any] = {"tags": [], "parameters": {}, "overlap": Overlap.ALLOW.value}
    return {name: document.get(name, emptied.get(name)) for name in sorted(names)}


def values_of(job: JobView) -> dict[str, str]:
    """Return a job as the values of its form; times are wall times of the schedule's zone."""
    schedule, zone = job.schedule, resolve(job.schedule.timezone)
    every, unit = _interval(schedule.every)
    parameters = pretty(job.parameters)
    given = {
        "task_id": job.task_id,
        "name": job.name,
        "tags": " ".join(job.tags),
        "parameters": parameters if len(parameters) <= MOST_PARAMETERS else None,
        "queue": job.queue,
        "priority": job.priority,
        "max_retries": job.max_retries,
        "timeout_seconds": _plain(job.timeout_seconds),
        "expires_after_seconds": _plain(job.expires_after_seconds),
        "overlap": job.overlap,
        "concurrency_key": job.concurrency_key,
        "concurrency_limit": job.concurrency_limit,
        "schedule.type": schedule.type,
        "schedule.expression": schedule.expression,
        "schedule.scheduled_time": _wall(schedule.scheduled_time, zone),
        "schedule.every": every,
        "every_unit": unit,
        "schedule.timezone": schedule.timezone_requested,
        "schedule.gap": schedule.gap,
        "schedule.fold": schedule.fold,
        "schedule.starts_at": _wall(schedule.starts_at, zone),
        "schedule.ends_at": _wall(schedule.ends_at, zone),
        "schedule.misfire": schedule.misfire,
        "schedule.misfire_grace_seconds": _plain(schedule.misfire_grace_seconds),
    }
    defaults = {name: value for name, value in DEFAULTS.items() if name in {"schedule.every", "every_unit"}}
    return defaults | {name: str(value) for name, value in given.items() if value is not None}


def values_of_copy(job: JobView) -> dict[str, str]:
    """Return the values of a form for a job like this one. Raises `Conflict` where a form cannot hold them."""
    values = values_of(job)
    if "parameters" not in values:
        raise Conflict("the parameters of this job are too large for a form; copy it by POST /api/v1/jobs")
    if job.name:
        values["name"] = f"{job.name[: _NAME_LENGTH - 5]} copy"
    if job.schedule.type == ScheduleType.INTERVAL and job.schedule.starts_at == job.created_at:
        values.pop("schedule.starts_at", None)  # it counts from its creation, as its copy will from its own
    return values


def place(error: InvalidInput, values: Values) -> dict[str, str]:
    """Return what is wrong by the names of the fields that it stands beside; empty for what is in none."""
    found: dict[str, list[str]] = {}
    for one in error.errors:
        name = _field_at(one.pointer, values)
        found.setdefault(name, []).append(_told(one, name))
    return {name: "; ".join(details) for name, details in found.items()}


def _field_at(pointer: str, values: Values) -> str:
    steps = pointer.strip("/").split("/")
    while steps:
        name = ".".join(steps)
        if name in FIELDS or _INPUT.fullmatch(name):
            return name
        steps.pop()
    if pointer.startswith("/schedule"):
        kind = {"ONCE": "scheduled_time", "INTERVAL": "every"}.get(
            values.get("schedule.type", ""), "expression"
        )
        return IN_SCHEDULE + kind
    return ""


def _told(error: FieldError, name: str) -> str:
    """Return what is wrong without the pointer, which the place tells; of the parameters, with the way to it."""
    detail = error.detail.removeprefix(f"{error.pointer}: ")
    if name == "parameters" and (path := error.pointer.removeprefix("/parameters").strip("/")):
        return f"{path}: {detail}"
    return detail


def _read(values: Values, name: str, read: Callable[[Values, str], Any], errors: list[FieldError]) -> Any:  # noqa: ANN401 - JSON
    try:
        return read(values, name)
    except InvalidInput as error:
        errors.extend(error.within("/" + name.replace(".", "/")).errors)
        return None


def _text(values: Values, name: str) -> str | None:
    text = values.get(name, "").strip()
    if "\0" in text:
        raise InvalidInput("the character NUL cannot be kept")
    return text or None


def _number(values: Values, name: str) -> float | None:
    text = _text(values, name)
    if text is None:
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    raise InvalidInput(f"{text!r:.40} is not a number")


def _tags(values: Values, name: str) -> list[str] | None:
    tags = [tag for tag in re.split(r"[,\s]+", values.get(name, "")) if tag]
    for tag in tags:
        try:
            msgspec.convert(tag, Tag)
        except msgspec.ValidationError:
            raise InvalidInput(
                f"{tag!r:.80} is no tag: letters, digits and _ . : / @ -, at most 64"
            ) from None
    return tags or None


def _parameters(values: Values, name: str) -> Any:  # noqa: ANN401 - any JSON; what is no object is refused with the rest
    return strict_json.loads((_text(values, name) or "{}").encode("utf-8", "surrogatepass"))


def _every(values: Values, name: str) -> str | float | None:
    """Return an interval as an ISO 8601 duration in the unit that was chosen; what is no number stays as it is."""
    text, unit = _text(values, name), values.get("every_unit", "seconds")
    if text is None or _ISO_DURATION.match(text):
        return text
    count = _number(values, name)
    return (
        _ISO_UNITS.get(unit, "PT{}S").format(count)
        if unit == "seconds" or isinstance(count, int)
        else _seconds(count, unit)
    )


def _seconds(count: float | None, unit: str) -> float:
    return (count or 0) * dict(UNITS).get(unit, 1)


_READERS: Mapping[str, Callable[[Values, str], Any]] = dict.fromkeys(PLAIN_FIELDS, _text) | {
    "tags": _tags,
    "parameters": _parameters,
    "priority": _number,
    "max_retries": _number,
    "timeout_seconds": _number,
    "expires_after_seconds": _number,
    "concurrency_limit": _number,
}
_SCHEDULE_READERS: Mapping[str, Callable[[Values, str], Any]] = {
    "every": _every,
    "misfire_grace_seconds": _number,
}
_LEFT_OUT = {
    "gap": "run_after_gap",
    "fold": "first",
    "misfire": "run_once",
    "misfire_grace_seconds": "60",
    "timezone": "UTC",
    "overlap": "allow",
}
"""Defaults that go without saying."""


def _interval(seconds: float | None) -> tuple[str | None, str | None]:
    """Return an interval as a count of the largest unit that it is a whole number of."""
    if seconds is None:
        return None, None
    unit, size = next(pair for pair in reversed(UNITS) if seconds % pair[1] == 0 or pair[1] == 1)
    return _plain(seconds / size), unit


def _plain(number: float | None) -> str | None:
    return None if number is None else f"{number:.15g}"


def _wall(instant: datetime | None, zone: Zone) -> str | None:
    """Return a time as somebody would write it; with its offset where the wall time alone is not enough."""
    if instant is None:
        return None
    wall = zone.wall(instant).replace(fold=0)
    shown = wall.isoformat(sep=" ").removesuffix(":00")
    if len(zone.instants(wall, fold=Fold.BOTH)) == 1:
        return shown
    return instant.astimezone(zone.info).isoformat(sep=" ")
