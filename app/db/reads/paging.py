"""Pages of lists that are read newest first."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from sqlalchemy import ColumnElement, tuple_

from app.domain.cursors import Cursor

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list; `next_cursor` leads to the next, null at the end."""

    items: list[T]
    next_cursor: str | None


class Window(msgspec.Struct, frozen=True):
    """Which page to read: how many rows, from where, and the filters that its cursor is bound to."""

    limit: int
    cursor: Cursor | None
    filters: Mapping[str, Any]


def older_than(
    cursor: Cursor | None, time: ColumnElement[Any], row_id: ColumnElement[Any]
) -> Sequence[ColumnElement[bool]]:
    """Return the conditions under which a row comes after the cursor in a list ordered newest first."""
    if cursor is None:
        return ()
    return (tuple_(time, row_id) < (cursor.time, cursor.row_id),)
