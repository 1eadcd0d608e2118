"""A task's `parameter_schema` as a table of fields, for people; it decides nothing.

What is valid, `ParameterSchema` decides. A schema that came by SQL may be anything: what has no outline is left out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

MOST_FIELDS = 200
MOST_DEPTH = 4
_MOST_REFERENCES = 8
"""From one definition to the next: some point to themselves."""

_LIMITS = (
    ("minimum", "≥ {}"),
    ("exclusiveMinimum", "> {}"),
    ("maximum", "≤ {}"),
    ("exclusiveMaximum", "< {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("pattern", "matches {}"),
    ("format", "{}"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
)


class SchemaField(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the parameters."""

    keys: tuple[str, ...]
    """The way to it from the top."""
    type: str
    """In the words of JSON Schema: `string`, `array of integer`, `string or null`; `any` where nothing is said."""
    required: bool
    description: str
    choices: list[Any] | None
    """The values that it may have, where they are listed."""
    default: Any = msgspec.UNSET
    limits: list[str]

    @property
    def name(self) -> str:
        """Return the way to it in one word."""
        return ".".join(self.keys)

    @property
    def has_default(self) -> bool:
        """Tell whether something is said of what it is when it is left out; that may be null."""
        return self.default is not msgspec.UNSET


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """What a schema says of the parameters."""

    fields: list[SchemaField]
    others: bool
    """Parameters that are not listed are accepted."""
    cut: bool
    """There are more fields than these."""


def outline(schema: Any) -> Outline:  # noqa: ANN401 - whatever stands in the column
    """Return the fields of a schema: those of objects within after their object, to a depth of `MOST_DEPTH`."""
    root = schema if isinstance(schema, dict) else {}
    top = _resolved(root, root)
    fields: list[SchemaField] = []
    for field in _fields(top, root, ()):
        if len(fields) == MOST_FIELDS:
            return Outline(fields=fields, others=_open(top), cut=True)
        fields.append(field)
    return Outline(fields=fields, others=_open(top), cut=False)


def _fields(
    parent: Mapping[str, Any], root: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[SchemaField]:
    properties, named = parent.get("properties"), parent.get("required")
    required = named if isinstance(named, list) else []
    found = properties if isinstance(properties, dict) else {}
    # The database does not keep the order in which they were written: what must be there comes first.
    for key in sorted(found, key=lambda key: key not in required):
        said = _resolved(found[key], root)
        keys = (*above, key)
        yield _field(keys, said, root, required=key in required)
        if len(keys) < MOST_DEPTH:
            yield from _fields(said, root, keys)


def _field(
    keys: tuple[str, ...], said: Mapping[str, Any], root: Mapping[str, Any], *, required: bool
) -> SchemaField:
    description, choices = said.get("description"), said.get("enum")
    if "const" in said:
        choices = [said["const"]]
    return SchemaField(
        keys=keys,
        type=_type(said, root),
        required=required,
        description=description if isinstance(description, str) else "",
        choices=choices if isinstance(choices, list) else None,
        default=said.get("default", msgspec.UNSET),
        limits=[words.format(said[name]) for name, words in _LIMITS if _plain(said.get(name))],
    )


def _resolved(raw: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ANN401 - `true` is a schema, too
    """Follow references within the schema; what stands beside a reference counts as well."""
    said = raw if isinstance(raw, dict) else {}
    for _ in range(_MOST_REFERENCES):
        reference = said.get("$ref")
        if not isinstance(reference, str):
            break
        beside = {name: value for name, value in said.items() if name != "$ref"}
        said = {**_pointed_at(reference, root), **beside}
    return said


def _pointed_at(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, dict) else None
    return found if reference.startswith("#") and isinstance(found, dict) else {}


def _type(said: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    kind = said.get("type")
    if isinstance(kind, list):
        return " or ".join(str(one) for one in kind)
    if kind == "array":
        items = _resolved(said.get("items"), root).get("type")
        return f"array of {items}" if isinstance(items, str) else "array"
    if isinstance(kind, str):
        return kind
    for several in ("anyOf", "oneOf"):
        parts = said.get(several)
        if isinstance(parts, list):
            kinds = [_resolved(part, root).get("type") for part in parts]
            return " or ".join(dict.fromkeys(one for one in kinds if isinstance(one, str))) or "any"
    return "any"


def _open(top: Mapping[str, Any]) -> bool:
    return top.get("additionalProperties", True) is not False


def _plain(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(value, int | float | str) and not isinstance(value, bool)
