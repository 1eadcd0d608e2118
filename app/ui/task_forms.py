"""The form of a task: from its fields to the request that the API would get, and back."""

import math
from typing import Any, TypeVar

import msgspec

from app.db.stores.tasks import Task
from app.domain import strict_json
from app.domain.conversion import convert
from app.domain.errors import FieldError, InvalidInput
from app.domain.http_target import METHODS
from app.domain.labels import is_label
from app.domain.tasks import BUILTIN_NAMES, ResourceRequirements, TaskPatch, TaskRequest
from app.ui.forms import Form
from app.ui.limit_words import label_words
from app.ui.task_words import handler

T = TypeVar("T", bound=msgspec.Struct)

LABELS = "labels"
LIMITS = ("concurrency", "concurrency_limit")
WHOLE = ("memory_mb", "max_retries")
DECIMAL = ("timeout_seconds", "retry_delay_seconds", "retry_max_delay_seconds", "cpu_cores")
JSON_FIELDS = ("parameter_schema", "failure_rules")
BUILTINS = {
    "echo": "echo: its result is its parameters",
    "noop": "noop: does nothing",
    "sleep": "sleep: takes as long as its parameter `seconds` says",
    "fail": "fail: with the error that its parameters `message` and `type` say",
}
_DEFAULTS = ResourceRequirements()
_RESOURCE = "resource_requirements."


def new_task_form(kind: str) -> Form:
    """Return the form of a task that is to be made."""
    method = {"method": "POST"} if kind == "http" else {}
    return Form(values={"queue": "general", **_resource_texts(_DEFAULTS), **method})


def task_form(task: Task, kind: str) -> Form:
    """Return the form of a task as it is; `kind` may be another one than its handler's."""
    own = handler(task.execution_handler)
    values = {
        "name": task.name,
        "description": task.description,
        "queue": task.queue,
        "priority": str(task.priority),
        "parameter_schema": _pretty(task.parameter_schema) if task.parameter_schema else "",
        "failure_rules": _pretty(task.failure_rules) if task.failure_rules else "",
        "version": str(task.version),
        LABELS: ", ".join(label_words(task.labels)),
        **_limit_texts(task),
        **_resource_texts(task.resource_requirements),
    }
    method, _, url = own.target.partition(" ") if own.kind == "http" else ("POST", "", own.target)
    target = {"method": method, "execution_handler": url} if own.kind == kind else {"method": "POST"}
    return Form(values=values | target)


def read_new_task(form: Form, kind: str) -> TaskRequest:
    """Return the task that a form asks for. Raises `InvalidInput` with every field that cannot be read."""
    given = _definition(form, kind) | {"task_id": form.text("task_id") or "", "name": form.text("name")}
    return as_request(given, TaskRequest)


def read_change(form: Form, kind: str, task: Task) -> TaskPatch:
    """Return the change of a task that a form asks for; what the form has no field for stays as it is."""
    definition = _definition(form, kind) | {"name": form.text("name") or task.task_id}
    if definition["priority"] is None:
        del definition["priority"]
    return as_request(definition, TaskPatch)


def placed(error: InvalidInput) -> InvalidInput:
    """Return an error with what lies deep in a field that is JSON moved to that field."""
    return InvalidInput(error.detail, code=error.code, errors=tuple(map(_at_its_field, error.errors)))


def _at_its_field(error: FieldError) -> FieldError:
    field, _, inside = error.pointer.removeprefix("/").partition("/")
    if field not in JSON_FIELDS or not inside:
        return error
    return msgspec.structs.replace(error, pointer=f"/{field}", detail=f"/{inside}: {error.detail}")


def _definition(form: Form, kind: str) -> dict[str, Any]:
    read = _Reading(form)
    resources = {
        **{name: read.number(_RESOURCE + name, whole=True) for name in WHOLE},
        **{name: read.number(_RESOURCE + name) for name in DECIMAL},
        "retry_policy": form.text(_RESOURCE + "retry_policy"),
    }
    definition = {
        "description": form.values.get("description", "").strip(),
        "execution_handler": _handler_text(form, kind),
        "parameter_schema": read.json("parameter_schema", {}),
        "failure_rules": read.json("failure_rules", []),
        "queue": form.text("queue") or "general",
        "priority": read.number("priority", whole=True),
        "resource_requirements": {
            name: value for name, value in resources.items() if value is not None or name == "max_retries"
        },
        LABELS: read.labels(LABELS),
        "concurrency_key": form.text("concurrency_key"),
        **{name: read.number(name, whole=True) for name in LIMITS},
        "rate_limit": read.rate("rate_limit"),
    }
    read.require_all()
    return definition


def as_request(values: dict[str, Any], model: type[T]) -> T:
    """Return what a form says as a request of the API, checked as a body would be. Raises `InvalidInput`."""
    return convert(strict_json.loads(msgspec.json.encode(values)), model)


class _Reading:
    """Reads fields that hold more than text, and collects what is wrong with them."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._errors: list[FieldError] = []

    def number(self, place: str, *, whole: bool = False) -> float | None:
        """Return the number in a field; None where there is none."""
        text = self._form.text(place)
        if text is None:
            return None
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self._refuse(place, "write a whole number" if whole else "write a number")
            return None
        return value

    def labels(self, place: str) -> dict[str, str]:
        """Return the labels in a field: NAME=VALUE, divided by commas."""
        labels = {}
        for part in filter(None, map(str.strip, (self._form.text(place) or "").split(","))):
            name, _, value = map(str.strip, part.partition("="))
            if not is_label(name, value):
                self._refuse(
                    place, f"{part!r:.140} is no label: write NAME=VALUE, such as gpu=a100, region=eu"
                )
            labels[name] = value
        return labels

    def rate(self, place: str) -> dict[str, float] | None:
        """Return the rate limit in two fields; None where both are empty."""
        fields = {
            "per_second": self.number(f"{place}.per_second"),
            "burst": self.number(f"{place}.burst", whole=True),
        }
        given = {name: value for name, value in fields.items() if value is not None}
        if given.keys() == {"burst"}:
            self._refuse(f"{place}.per_second", "say how many may begin each second")
        return given or None

    def json(self, place: str, empty: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return what the JSON in a field says, which must be of the kind of `empty`; that where there is nothing."""
        try:
            return read_json(self._form.text(place), empty)
        except InvalidInput as error:
            self._refuse(place, error.detail)
            return empty

    def require_all(self) -> None:
        """Raise `InvalidInput` if any field could not be read."""
        if self._errors:
            raise InvalidInput(self._errors[0].detail, errors=tuple(self._errors))

    def _refuse(self, place: str, detail: str) -> None:
        self._errors.append(FieldError("/" + place.replace(".", "/"), InvalidInput.code, detail))


def read_json(text: str | None, empty: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Read JSON that somebody typed, of the kind of `empty`, which nothing stands for. Raises `InvalidInput`."""
    if text is None:
        return empty
    try:
        value = strict_json.loads(text.encode())
    except InvalidInput as error:
        where = f"{error.pointer}: " if error.pointer else ""
        raise InvalidInput(where + error.detail.replace("the body", "it", 1)) from None
    if not isinstance(value, type(empty)):
        raise InvalidInput(
            "write a JSON object: {…}" if isinstance(empty, dict) else "write a JSON list: […]"
        )
    return value


def _handler_text(form: Form, kind: str) -> str:
    target = form.text("execution_handler") or ""
    if kind == "http":
        return f"http:{form.text('method') or ''} {target}"
    return f"{kind}:{target}"


def _limit_texts(task: Task) -> dict[str, str]:
    rate = task.rate_limit
    values = {
        "concurrency": task.concurrency,
        "concurrency_key": task.concurrency_key,
        "concurrency_limit": task.concurrency_limit,
        "rate_limit.per_second": rate and rate.per_second,
        "rate_limit.burst": rate and rate.burst,
    }
    return {name: _number_text(value) for name, value in values.items() if value is not None}


def _resource_texts(resources: ResourceRequirements) -> dict[str, str]:
    values = msgspec.structs.asdict(resources)
    return {_RESOURCE + name: _number_text(value) for name, value in values.items() if value is not None}


def _number_text(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


METHOD_CHOICES = [(method, method) for method in METHODS]
BUILTIN_CHOICES = [
    (name, BUILTINS.get(name, name)) for name in sorted(BUILTIN_NAMES, key=list(BUILTINS).index)
]
