"""Values of the API as text: for a cell of a table, and for a field of a line."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Column:
    """A column of a list: its heading, and the field it shows (`schedule.type` is a field of a field)."""

    heading: str
    field: str


def lookup(item: Mapping[str, Any], field: str) -> object:
    """Return a field of an item; None where there is none."""
    value: Any = item
    for name in field.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def flattened(item: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield every field under its whole name; an empty object stands for itself."""
    for name, value in item.items():
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def text_of(value: object) -> str:
    """Return a value for a line of tab-separated fields: times as the API writes them, nothing for null."""
    if isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()):
        value = [f"{name}={item}" for name, item in value.items()]
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.3f}".rstrip("0").rstrip(".")
        case [*items] if all(isinstance(item, str | int) for item in items):
            return ",".join(text_of(item) for item in items)
        case _:
            return msgspec.json.encode(value).decode()


def shown(value: object) -> str:
    """Return a value for people: times in their zone, with its offset."""
    text = text_of(value)
    if value is None or value == {}:
        return "-"
    if _TIME.fullmatch(text):
        return datetime.fromisoformat(text).astimezone().isoformat(" ", "seconds")
    return text


def one_line(text: str) -> str:
    """Return text with its control characters made visible: one line stays one, and no terminal obeys it."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
