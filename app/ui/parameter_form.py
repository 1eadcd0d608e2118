"""Parameters as a form: a field for each that the schema of a task names, or all of them as JSON.

It only reads what somebody typed; whether that is valid, the intake decides by the schema itself.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from app.domain import strict_json
from app.domain.errors import FieldError, InvalidInput
from app.domain.schema_outline import SchemaField, outline
from app.ui.forms import Form

MOST_INPUTS = 40
"""Beyond, people write JSON."""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the form. Its name is its number: what parameters are called may be anything."""

    name: str
    label: str
    kind: str
    """`text`, `number`, `choice` or `json`."""
    required: bool
    help: str
    options: list[tuple[str, str]]
    default: str


def inputs_of(schema: Any) -> list[Input]:  # noqa: ANN401 - whatever stands in the column
    """Return a field for each parameter at the top of a schema; none where only JSON will do."""
    top = [field for field in outline(schema).fields if len(field.keys) == 1]
    return [_input(number, field) for number, field in enumerate(top)] if len(top) <= MOST_INPUTS else []


def read_parameters(form: Form, inputs: list[Input]) -> dict[str, Any]:
    """Return the parameters of a form; what is left empty is left out. Raises `InvalidInput`."""
    found: dict[str, Any] = {}
    errors: list[FieldError] = []
    for one in inputs:
        text = form.values.get(one.name, "")
        if not text.strip():
            continue
        try:
            found[one.label] = _value(one.kind, text)
        except InvalidInput as error:
            errors.append(FieldError(f"/{one.name}", error.code, error.detail))
    if errors:
        raise InvalidInput(errors[0].detail, errors=tuple(errors))
    return found


def beside_inputs(error: InvalidInput, inputs: list[Input]) -> InvalidInput:
    """Return an error about parameters with its places moved to the fields that hold them."""
    places = {f"/parameters/{_escaped(one.label)}": f"/{one.name}" for one in inputs}
    return InvalidInput(
        error.detail, code=error.code, errors=tuple(_moved(one, places) for one in error.errors)
    )


def as_one_field(error: InvalidInput) -> InvalidInput:
    """Return an error about parameters that were written as JSON: all of it stands beside the one field."""
    lines = [f"{one.pointer.removeprefix('/parameters') or 'in all'}: {one.detail}" for one in error.errors]
    return InvalidInput(error.detail, errors=(FieldError("/parameters", error.code, "; ".join(lines)),))


def _moved(error: FieldError, places: Mapping[str, str]) -> FieldError:
    for place, name in places.items():
        if error.pointer == place:
            return msgspec.structs.replace(error, pointer=name)
        if error.pointer.startswith(f"{place}/"):
            inside = error.pointer.removeprefix(place)
            return msgspec.structs.replace(error, pointer=name, detail=f"{inside}: {error.detail}")
    return error  # that one is missing says its object: `"region" is a required property`


def _input(number: int, field: SchemaField) -> Input:
    kind, options = _kind(field)
    notes = [field.description, *(["" if kind == "choice" else ", ".join(field.limits)])]
    if kind == "json":
        notes.append(f"as JSON ({field.type})" if field.type != "any" else 'as JSON: text stands in "quotes"')
    return Input(
        name=f"p{number}",
        label=field.keys[0],
        kind=kind,
        required=field.required,
        help="; ".join(filter(None, notes)),
        options=options,
        default=_default(kind, field),
    )


def _kind(field: SchemaField) -> tuple[str, list[tuple[str, str]]]:
    if field.choices is not None:
        return "choice", [(_json(choice), _plain(choice)) for choice in field.choices]
    if field.type == "boolean":
        return "choice", [("true", "yes"), ("false", "no")]
    if field.type == "string":
        return "text", []
    return ("number" if field.type in {"integer", "number"} else "json"), []


def _default(kind: str, field: SchemaField) -> str:
    if not field.has_default:
        return ""
    return str(field.default) if kind == "text" else _json(field.default)


def _value(kind: str, text: str) -> Any:  # noqa: ANN401 - any JSON value
    if kind == "text":
        return text
    try:
        return strict_json.loads(text.strip().encode())
    except InvalidInput as error:
        detail = "write a number" if kind == "number" else error.detail.replace("the body", "it", 1)
        raise InvalidInput(detail) from None


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _plain(value: object) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
