"""Plain JSON values as the structs that people's requests are; what does not fit is pointed at."""

import re
from typing import TypeVar

import msgspec

from app.domain.errors import InvalidInput

T = TypeVar("T", bound=msgspec.Struct)

_MESSAGE = re.compile(r"(?P<detail>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_FIELD = re.compile(r"Object (?:contains unknown|missing required) field `(.{1,100})`", re.DOTALL)
_LONGEST_DETAIL = 300
"""Characters. What somebody sent is repeated in part only."""


def convert(value: object, model: type[T]) -> T:
    """Return plain JSON values as `model`. Raises `InvalidInput` with a pointer to what does not fit."""
    try:
        return msgspec.convert(value, model, strict=True)
    except msgspec.ValidationError as error:
        match = _MESSAGE.fullmatch(str(error))
        detail, path = (match["detail"], match["path"] or "") if match else (str(error), "")
        pointer = _pointer(path, detail)
        where = f"a name in {pointer or 'the body'}" if match and match["key"] else pointer or "the body"
        detail = f"{where}: {detail[:_LONGEST_DETAIL]}"
        raise InvalidInput(detail, pointer=pointer) from None


def _pointer(path: str, detail: str) -> str:
    """Turn msgspec's `.schedule.tags[2]` into the JSON pointer `/schedule/tags/2`.

    A field that is missing or unknown is named by the detail only; its object is what the path leads to.
    """
    steps = [name or index for name, index in _STEP.findall(path)]
    if field := _FIELD.fullmatch(detail):
        steps.append(field[1])
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
