"""Opaque cursors of lists: where the last page ended, bound to the list's filters."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from app.domain.errors import InvalidCursor

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_REMEDY = "use `next_cursor` of the same list with the same filters, or leave the cursor out"


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The last row of a page: its time (exact to the microsecond: rows of one INSERT share it) and its id."""

    microseconds: int
    row_id: UUID
    filters: bytes

    @property
    def time(self) -> datetime:
        """Return the row's time."""
        return _EPOCH + self.microseconds * _MICROSECOND


def write_cursor(time: datetime, row_id: UUID, filters: Mapping[str, object]) -> str:
    """Write the cursor that continues after a row."""
    cursor = Cursor((time - _EPOCH) // _MICROSECOND, row_id, _digest(filters))
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def read_cursor(text: str | None, filters: Mapping[str, object]) -> Cursor | None:
    """Read a cursor. Raises `InvalidCursor` for one that is not ours or was made for other filters."""
    if text is None:
        return None
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        cursor = msgspec.msgpack.decode(packed, type=Cursor)
        cursor.time  # noqa: B018 - out of range where the number was tampered with
    except (binascii.Error, msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        raise InvalidCursor(f"this is no cursor of ours; {_REMEDY}", pointer="/cursor") from None
    if cursor.filters != _digest(filters):
        raise InvalidCursor(f"the filters have changed; {_REMEDY}", pointer="/cursor", code="cursor_mismatch")
    return cursor


def _digest(filters: Mapping[str, object]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(sorted(filters.items()), order="sorted")).digest()[:6]
