"""Makes any value recordable: what an execution returned must never be why it fails."""

import math
from typing import Final

import msgspec

from app.domain.json_writer import MAX_DEPTH, JsonWriter
from app.domain.text import clean_text, storable_text

__all__ = ["RESULT_LIMIT_BYTES", "Recorded", "clean_text", "recordable", "storable_text"]

RESULT_LIMIT_BYTES: Final = 256 * 1024
PREVIEW_CHARACTERS: Final = 4096


class Recorded(msgspec.Struct, frozen=True):
    """A value as JSON text that PostgreSQL's `jsonb` accepts.

    `truncated`: the value was over the limit and a preview stands in its place. `note`: what had to be
    changed, in words, or None.
    """

    json_text: str
    truncated: bool = False
    note: str | None = None


_NULL = Recorded("null")


def recordable(value: object, *, limit_bytes: int = RESULT_LIMIT_BYTES) -> Recorded:
    """Return `value` as recordable JSON. Never raises, whatever the value's own code does.

    Dates, UUIDs, decimals, enums, dataclasses, sets, bytes and paths take their usual JSON form, anything
    else its `repr`. NaN and infinities become null, what is nested too deeply or contains itself becomes
    text, NUL becomes U+2400 and a lone surrogate U+FFFD. A text of more than `limit_bytes` becomes
    `{"truncated": true, "bytes": N, "preview": "its first 4,096 characters"}`, where N leaves out what
    lies beyond the first 150,000 values.
    """
    if value is None:
        return _NULL
    plain = _plain_json(value, limit_bytes)
    return Recorded(plain) if plain is not None else _written(value, limit_bytes)


def _plain_json(value: object, limit_bytes: int) -> str | None:
    """Return the JSON text of a value that needs no care (a few microseconds), or None."""
    try:
        if not _is_plain(value, limit_bytes):
            return None
        encoded = msgspec.json.encode(value)
    except Exception:  # noqa: BLE001 - a lone surrogate, a dict that another thread changes: look closer
        return None
    # A backslash followed by the text `u0000` looks the same: it only costs the closer look.
    return None if len(encoded) > limit_bytes or b"\\u0000" in encoded else encoded.decode()


def _is_plain(value: object, limit_bytes: int) -> bool:
    """Tell whether `value` is made of JSON's own types, not too deep and not plainly over the limit."""
    level, size = [value], 0
    for _ in range(MAX_DEPTH + 1):
        below: list[object] = []
        for item in level:
            kind = type(item)
            if kind is str or kind is dict or kind is list or kind is tuple:
                size += len(item)  # type: ignore[arg-type]  # mypy does not narrow by `kind`
                if size > limit_bytes or not _take_members(item, below):
                    return False
            elif not _is_plain_scalar(item):
                return False
        if not below:
            return True
        level = below
    return False


def _take_members(item: object, below: list[object]) -> bool:
    """Add a container's members to `below`; False if it has a key that is not text."""
    if isinstance(item, dict):
        below.extend(item.values())
        return all(type(key) is str for key in item)
    if isinstance(item, list | tuple):
        below.extend(item)
    return True


def _is_plain_scalar(item: object) -> bool:
    if type(item) is int:
        return -(2**63) <= item < 2**63
    if type(item) is float:
        return math.isfinite(item)
    return item is None or type(item) is bool


def _written(value: object, limit_bytes: int) -> Recorded:
    writer = JsonWriter(limit_bytes)
    try:
        writer.write(value)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the value's own code ran
        writer = JsonWriter(limit_bytes)
        writer.write(f"<{type(value).__name__} that cannot be read: {type(error).__name__}>")
    note = "; ".join(writer.notes) or None
    if writer.size_bytes <= limit_bytes:
        return Recorded(writer.text(), note=note)
    preview = {"truncated": True, "bytes": writer.size_bytes, "preview": writer.text()[:PREVIEW_CHARACTERS]}
    return Recorded(msgspec.json.encode(preview).decode(), truncated=True, note=note)
