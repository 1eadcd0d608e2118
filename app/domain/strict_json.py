"""Reads JSON so strictly that what is stored, and what a worker sees, is exactly what was sent."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import accumulate
from typing import Final, TypeVar

from app.domain.errors import InvalidBody

MAX_DEPTH: Final = 64
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_LONGEST_NUMBER = 400
"""Characters. Beyond it lies no number that a float holds exactly and somebody would write."""

# A body is looked at closely only where these find something; what they find inside of strings is harmless.
# 15 digits always survive a 64-bit float (C's DBL_DIG): only longer numbers and exponents need a look.
_NUMBER_SHAPES = bytes(
    ord("0") if byte in b"0123456789.+-" else ord("e") if byte in b"eE" else ord(" ") for byte in range(256)
)
_LONG_NUMBER, _EXPONENT = b"0" * 17, b"0e0"
_NUL_OR_SURROGATE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_STRING_WITHOUT_ESCAPES = re.compile(rb'"[^"]*"')
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_BRACKETS_AS_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: one up, one down
_UNSTORABLE = re.compile(r"[\0\ud800-\udfff]")

_NOT_STORABLE = "holds NUL or half of a surrogate pair, which cannot be stored; leave it out"

Source = TypeVar("Source")


class _Refused(ValueError):
    """Something in the body cannot be kept; `pointer` leads on from the value to a member of it."""

    def __init__(self, detail: str, *, pointer: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.pointer = pointer


def loads(body: bytes, *, max_depth: int = MAX_DEPTH) -> object:
    """Return what the JSON text `body` (UTF-8) says: dict, list, str, int, float, bool or None.

    Raises `InvalidBody`, where possible with the JSON pointer of the flaw, for anything that cannot be kept
    as sent: bad UTF-8 or syntax, a key twice in an object, NUL or a lone surrogate in a string or key, NaN
    and infinities (also 1e400), integers beyond signed 64 bit, decimals of more digits than a 64-bit float
    holds, and arrays and objects nested deeper than `max_depth`.
    """
    text = _decode(body)
    shapes = body.translate(_NUMBER_SHAPES)
    careful = _LONG_NUMBER in shapes or _EXPONENT in shapes
    try:
        value = _parse(_CAREFUL if careful else _QUICK, text, max_depth)
    except _Refused as refusal:
        _refuse_first_flaw(_parse(_marking_decoder(), text, max_depth), max_depth)
        raise InvalidBody(refusal.detail) from None  # its marked place was under a key that appears twice
    if _NUL_OR_SURROGATE.search(body) is not None or _is_deeper(body, max_depth):
        _refuse_first_flaw(value, max_depth)
    return value


def _decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InvalidBody(f"the body is not UTF-8 (byte {error.start}); encode it as UTF-8") from None


def _parse(decoder: json.JSONDecoder, text: str, max_depth: int) -> object:
    try:
        value: object = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidBody(_syntax_detail(text, error)) from None
    except RecursionError:
        raise InvalidBody(_depth_detail(max_depth)) from None
    return value


def _syntax_detail(text: str, error: json.JSONDecodeError) -> str:
    if not text.strip():
        return "the body is empty; send a JSON document"
    if text.startswith("\ufeff"):
        return "the body begins with a byte order mark; leave it out"
    return (
        f"the body is not JSON: {error.msg.removesuffix(' at')} at line {error.lineno}, column {error.colno}"
    )


def _depth_detail(max_depth: int) -> str:
    return f"arrays and objects are nested deeper than {max_depth}; flatten them"


def _is_deeper(body: bytes, max_depth: int) -> bool:
    """Tell whether valid JSON is nested deeper. By its text: walking 16 MiB of small arrays takes seconds."""
    if body.count(b"[") + body.count(b"{") <= max_depth:
        return False
    strings_end_at_quotes = body.replace(rb"\\", b"").replace(rb"\"", b"")
    outside_strings = _STRING_WITHOUT_ESCAPES.sub(b"", strings_end_at_quotes)
    steps = outside_strings.translate(_BRACKETS_AS_STEPS, _NO_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b")), default=0) > max_depth


def _refuse_first_flaw(value: object, max_depth: int) -> None:
    for pointer, detail in _flaws(value, "", max_depth):
        raise InvalidBody(detail, pointer=pointer)


def _flaws(value: object, pointer: str, max_depth: int) -> Iterator[tuple[str, str]]:
    """Yield (JSON pointer, detail) of each flaw, in document order.

    A key that cannot be stored is pointed at by its object: with the key in it, the answer to the client
    could not be encoded either.
    """
    if isinstance(value, _Refused):
        yield pointer + value.pointer, value.detail
    elif isinstance(value, str):
        if _UNSTORABLE.search(value) is not None:
            yield pointer, f"the string {_NOT_STORABLE}"
    elif isinstance(value, dict | list):
        if pointer.count("/") == max_depth:
            yield pointer, _depth_detail(max_depth)
            return
        for token, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _member_flaws(token, child, pointer, max_depth)


def _member_flaws(token: str | int, child: object, pointer: str, max_depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(token, str) and _UNSTORABLE.search(token) is not None:
        yield pointer, f"the key {token[:80]!r} {_NOT_STORABLE}"
    elif isinstance(child, str | dict | list | _Refused):
        yield from _flaws(child, _below(pointer, token), max_depth)


def _below(pointer: str, token: str | int) -> str:
    return f"{pointer}/{str(token).replace('~', '~0').replace('/', '~1')}"


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        pointer = _below("", twice) if _UNSTORABLE.search(twice) is None else ""
        raise _Refused(f"the key {twice[:80]!r} appears more than once; send it once", pointer=pointer)
    return members


def _integer(text: str) -> int:
    if len(text) < 19:
        return int(text)
    if len(text) > 20 or not _SMALLEST <= int(text) <= _LARGEST:
        raise _Refused(f"the integer {_short(text)} does not fit in 64 bits; send it as a string")
    return int(text)


def _decimal(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _Refused(f"the number {_short(text)} is too large for a 64-bit float; send it as a string")
    if not _is_kept(text, value):
        raise _Refused(f"a 64-bit float cannot hold {_short(text)} exactly; send it as a string")
    return value


def _is_kept(text: str, value: float) -> bool:
    """Tell whether the float, written in its shortest form or with 17 digits, is `text`'s number again."""
    if len(text) > _LONGEST_NUMBER:
        return False
    if value == 0:
        return not text.lower().partition("e")[0].strip("-0.")
    return Decimal(text) in (Decimal(repr(value)), Decimal(f"{value:.17g}"))


def _constant(name: str) -> float:
    raise _Refused(f"{name} is not JSON; send null or a string")


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}… ({len(text)} characters)"


def _marking_decoder() -> json.JSONDecoder:
    """Return a decoder that leaves its first refusal in the tree, where `_flaws` finds it and its pointer."""
    found: list[_Refused] = []

    def marking(hook: Callable[[Source], object]) -> Callable[[Source], object]:
        def mark(source: Source) -> object:
            if found:  # a body of a million flaws must not cost a million exceptions
                return dict(source) if isinstance(source, list) else None
            try:
                return hook(source)
            except _Refused as refusal:
                found.append(refusal)
                return refusal

        return mark

    return json.JSONDecoder(
        object_pairs_hook=marking(_object),
        parse_constant=marking(_constant),
        parse_int=marking(_integer),
        parse_float=marking(_decimal),
    )


_QUICK = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
_CAREFUL = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_decimal
)
