"""Two people edit one job: what each changed since the form was opened, put together.

The form carries a digest of each field as it was opened; with the job as it is now that is enough to tell who changed
what. Nothing that was typed is lost.
"""

import hashlib
from typing import NamedTuple

import msgspec

from app.domain import strict_json
from app.domain.errors import InvalidInput
from app.ui.job_input import FIELDS, Values

BASE = "base"
"""The hidden field with the digests."""
_BYTES = 6


class Difference(NamedTuple):
    """A field that somebody else has changed: what is stored now, and what the form says."""

    name: str
    stored: str
    yours: str
    both: bool
    """It was changed here, too: saving overwrites what is stored."""


class Merged(NamedTuple):
    """The form as it goes on: one's own changes on top of the others'."""

    values: dict[str, str]
    differences: list[Difference]


def digests_of(values: Values) -> str:
    """Return a digest of each field, as the form carries it."""
    return msgspec.json.encode({name: _digest(name, values.get(name, "")) for name in FIELDS}).decode()


def changed_since(values: Values) -> set[str]:
    """Return the fields that are no longer as the form was opened; all of them if it does not say how it was."""
    try:
        base = msgspec.json.decode(values.get(BASE, ""), type=dict[str, str])
    except msgspec.MsgspecError:
        base = {}
    return {name for name in FIELDS if name in values and base.get(name) != _digest(name, values[name])}


def merge(values: Values, stored: Values) -> Merged:
    """Put a form on top of the job as it is stored now."""
    now = {name: stored.get(name, "") for name in FIELDS if name in values}
    mine, theirs = changed_since(values), changed_since({**now, BASE: values.get(BASE, "")})
    merged = dict(values) | {name: value for name, value in now.items() if name not in mine}
    told = [
        Difference(name, value, values[name], both=name in mine)
        for name, value in now.items()
        if name in theirs and _plain(value) != _plain(values[name])
    ]
    return Merged(merged, told)


def _digest(name: str, text: str) -> str:
    plain = _same_json(text) if name == "parameters" else _plain(text)
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=_BYTES).hexdigest()


def _same_json(text: str) -> str:
    """Return JSON in one way of writing it: how it is laid out is no change."""
    try:
        value = strict_json.loads(text.encode("utf-8", "surrogatepass"))
    except InvalidInput:
        return _plain(text)
    return msgspec.json.encode(value, order="sorted").decode()


def _plain(text: str) -> str:
    """Browsers end the lines of a text with CR LF."""
    return text.replace("\r\n", "\n").strip()
