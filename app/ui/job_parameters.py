"""The parameters of a job's form: a field for each that the task's schema names, or one text of JSON.

Either way what counts is `parameters`, the JSON text: fields are read into it, and filled in from it.
`parameters_for` says whose fields are shown; it is empty where JSON is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from app.domain import strict_json
from app.domain.errors import InvalidInput
from app.ui.forms import Form
from app.ui.parameter_form import Input, inputs_of, read_parameters
from app.ui.words import pretty

SHOWN_FOR = "parameters_for"
WANTED = "parameters_as"
EMPTY = "{}"

Values = Mapping[str, str]


def inputs_shown(values: Values, task_id: str, schema: Any) -> list[Input]:  # noqa: ANN401 - whatever stands in the column
    """Return the fields that the form was sent with; none where JSON was."""
    return inputs_of(schema) if values.get(SHOWN_FOR) == task_id else []


def read_into_json(values: Values, inputs: Sequence[Input]) -> dict[str, str]:
    """Return the form with its fields read into `parameters`. Raises `InvalidInput` that points to the fields."""
    if not inputs:
        return dict(values)
    return dict(values) | {"parameters": pretty(read_parameters(Form(values=values), list(inputs)))}


def fill_fields(values: Values, task_id: str, inputs: Sequence[Input], *, defaults: bool) -> dict[str, str]:
    """Return the form with fields for the parameters if they are wanted and can hold what stands in `parameters`.

    `defaults`: those that the schema names fill in what nobody has said yet.
    """
    wanted = values.get(WANTED, "fields") == "fields" and bool(inputs)
    if wanted and values.get(SHOWN_FOR) == task_id:
        return dict(values)  # as they were typed
    held = _held(values.get("parameters", EMPTY), inputs) if wanted else None
    if held is None:
        return dict(values) | {SHOWN_FOR: "", WANTED: "json" if inputs else values.get(WANTED, "fields")}
    if defaults and not held:
        held = {one.name: one.default for one in inputs}
    return (
        dict(values)
        | {one.name: held.get(one.name, "") for one in inputs}
        | {SHOWN_FOR: task_id, WANTED: "fields"}
    )


def missing(values: Values, inputs: Sequence[Input]) -> dict[str, str]:
    """Return the fields that must be filled in and are not."""
    return {
        one.name: "this one is required"
        for one in inputs
        if one.required and not values.get(one.name, "").strip()
    }


def _held(text: str, inputs: Sequence[Input]) -> dict[str, str] | None:
    """Return parameters as the texts of fields; None where some would not come back as they are."""
    try:
        parameters = strict_json.loads((text.strip() or EMPTY).encode("utf-8", "surrogatepass"))
    except InvalidInput:
        return None
    by_label = {one.label: one for one in inputs}
    if not isinstance(parameters, dict) or parameters.keys() - by_label.keys():
        return None
    texts = {by_label[label].name: _text_of(by_label[label], value) for label, value in parameters.items()}
    return None if None in texts.values() else {name: text or "" for name, text in texts.items()}


def _text_of(one: Input, value: object) -> str | None:
    if one.kind == "text":
        return value if isinstance(value, str) and value.strip() and value.isprintable() else None
    text = msgspec.json.encode(value).decode()
    if one.kind == "choice":
        return text if text in dict(one.options) else None
    if one.kind == "number":
        return text if isinstance(value, int | float) and not isinstance(value, bool) else None
    return text
