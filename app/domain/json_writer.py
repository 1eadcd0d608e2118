"""Writes any Python value as JSON text, within bounds of size, depth and work."""

import dataclasses
import math
import numbers
import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Final
from uuid import UUID

import msgspec

from app.domain.text import clean_text, storable_text, utf8_length

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 150_000
"""Values looked at before the writer gives up (about 0.4 s); 256 KiB of JSON hold 131,072 at most."""
_MAX_REPR_CHARACTERS: Final = 4096
_MAX_INT_BITS: Final = 14_000
"""Just under 4,300 digits, from where on Python refuses to print or read an integer (quadratic time)."""

_NOT_A_NUMBER = "NaN and infinite numbers were stored as null"
_TOO_DEEP = f"what is nested deeper than {MAX_DEPTH} was stored as text"
_CYCLE = "what contains itself was stored as text"
_HUGE_INTEGER = "integers of more than 4,300 digits were stored as text"
_TOO_MANY = f"only the first {MAX_VALUES:,} values were looked at"


class _TooMany(Exception):
    """The value is too big to walk through."""


class JsonWriter:
    """Writes one value. Text beyond `limit_bytes` is counted (`size_bytes`), not kept.

    `write` raises what the value's own code raises (a property, a mapping's iterator).
    """

    def __init__(self, limit_bytes: int) -> None:
        self.size_bytes = 0
        self.notes: dict[str, None] = {}
        """What had to be changed, in words, each once and in order of appearance."""
        self._limit = limit_bytes
        self._parts: list[str] = []
        self._values = 0
        self._path: list[int] = []

    def text(self) -> str:
        """Return what was written; whole JSON if `size_bytes` is within the limit."""
        return "".join(self._parts)

    def write(self, value: object) -> None:
        """Write `value`; call it once."""
        try:
            self._write(value)
        except _TooMany:
            self._note(_TOO_MANY)
            self.size_bytes = max(self.size_bytes, self._limit + 1)

    def _write(self, value: object) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise _TooMany
        if isinstance(value, str):
            self._write_text(str.__str__(value))
        elif isinstance(value, bytes | bytearray | memoryview):
            self._write_bytes(value)
        elif isinstance(value, Mapping | Sequence | Set | ValuesView):
            self._write_container(value)
        elif value is None or isinstance(value, bool | int | float):
            self._write_scalar(value)
        else:
            self._write(_simpler(value))

    def _write_scalar(self, value: float | None) -> None:
        if value is None or isinstance(value, bool):
            self._emit({None: "null", True: "true", False: "false"}[value])
        elif isinstance(value, int):
            self._write_integer(value)
        elif math.isfinite(value):
            self._emit(float.__repr__(value))
        else:
            self._note(_NOT_A_NUMBER)
            self._emit("null")

    def _write_integer(self, value: int) -> None:
        bits = value.bit_length()
        if bits <= _MAX_INT_BITS:
            self._emit(int.__repr__(value))
            return
        self._note(_HUGE_INTEGER)
        self._write_text(f"{value:#x}" if bits <= self._limit else f"<integer of {bits} bits>")

    def _write_text(self, text: str) -> None:
        head = text if len(text) <= self._limit else text[: self._limit]
        self._emit(msgspec.json.encode(storable_text(head)).decode())
        if head is not text:
            self.size_bytes += utf8_length(text) - utf8_length(head)

    def _write_bytes(self, value: bytes | bytearray | memoryview) -> None:
        octets = value.tobytes() if isinstance(value, memoryview) else value
        head = octets[: self._limit]
        self._write_text(head.decode("utf-8", "replace"))
        self.size_bytes += len(octets) - len(head)

    def _write_container(self, value: Mapping[object, object] | Iterable[object]) -> None:
        if id(value) in self._path or len(self._path) >= MAX_DEPTH:
            self._note(_CYCLE if id(value) in self._path else _TOO_DEEP)
            self._write_text(_bounded_repr(value))
            return
        self._path.append(id(value))
        if isinstance(value, Mapping):
            self._write_members("{}", self._keyed(value))
        else:
            self._write_members("[]", value)
        self._path.pop()

    def _keyed(self, mapping: Mapping[object, object]) -> Iterator[object]:
        """Yield the values, each after its key has been written."""
        for key, value in mapping.items():
            self._write_text(str.__str__(key) if isinstance(key, str) else str(key))
            self._emit(":")
            yield value

    def _write_members(self, brackets: str, members: Iterable[object]) -> None:
        self._emit(brackets[0])
        start = self.size_bytes
        for member in members:
            self._write(member)
            self._emit(",")
        if self.size_bytes > start:
            self._drop_last_comma()
        self._emit(brackets[1])

    def _emit(self, text: str) -> None:
        if self.size_bytes <= self._limit:
            self._parts.append(text)
        self.size_bytes += utf8_length(text)

    def _drop_last_comma(self) -> None:
        self.size_bytes -= 1
        if self.size_bytes <= self._limit:
            self._parts.pop()

    def _note(self, sentence: str) -> None:
        self.notes[sentence] = None


def _simpler(value: object) -> object:
    """Return the usual JSON form of a value that is none of JSON's own kinds."""
    simpler: object
    match value:
        case datetime() | date() | time() | timedelta() | UUID() | Decimal():
            simpler = msgspec.to_builtins(value)
        case Enum():
            simpler = value.value
        case msgspec.Struct():
            simpler = msgspec.structs.asdict(value)
        case os.PathLike():
            simpler = os.fspath(value)
        case numbers.Integral():  # NumPy's integers, for one
            simpler = int(value)
        case numbers.Real():
            simpler = float(value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            simpler = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        case _:
            simpler = _bounded_repr(value)
    return simpler


def _bounded_repr(value: object) -> str:
    """Return `repr(value)`, short also for large containers; the type's name if it raises."""
    shortener = reprlib.Repr()
    shortener.maxlevel = 2
    shortener.maxstring = shortener.maxother = shortener.maxlong = _MAX_REPR_CHARACTERS
    try:
        return clean_text(shortener.repr(value), _MAX_REPR_CHARACTERS)
    except (Exception, SystemExit):  # noqa: BLE001 - the value's own code; even one that asks to exit
        return f"<{type(value).__name__}>"
