"""Rows that are kept up to date where they stand: a page asks for those it shows, by their ids.

They are not moved, and none is pushed in from above: what is new is counted, and shown when somebody asks for it.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from litestar import Request

from app.db.reads.paging import Page
from app.domain.cursors import read_cursor, write_cursor
from app.domain.errors import InvalidInput
from app.ui.filters import PAGE_ROWS, ListQuery

AnyRequest = Request[Any, Any, Any]
T = TypeVar("T")
Place = tuple[datetime, UUID]
"""Where a row stands in a list that is read newest first."""


def rows_url(query: ListQuery, *, ids: Iterable[UUID], top: Place | None) -> str:
    """Return the address that answers with these rows, and with how many there are above `top`, the first one."""
    values = query.filters | {"ids": ",".join(map(str, ids))}
    if query.cursor:
        values["cursor"] = query.cursor
    elif top:
        values["top"] = write_cursor(*top, {})
    return f"{query.path}/rows?{urlencode(values, safe=',')}"


def asked_ids(request: AnyRequest) -> list[UUID]:
    """Return the ids that a page asks for. Raises `InvalidInput`."""
    texts = [text for text in request.query_params.get("ids", "").split(",") if text]
    try:
        return [UUID(text) for text in texts[: 2 * PAGE_ROWS]]
    except ValueError:
        raise InvalidInput("ids: a comma-separated list of ids", pointer="/ids") from None


def count_newer(request: AnyRequest, newest: Page[T], place_of: Callable[[T], Place]) -> int:
    """Count the rows of the newest page that stand above the one that the page shows first."""
    top = read_cursor(request.query_params.get("top"), {})
    if top is None:
        return len(newest.items)
    return sum(place_of(item) > (top.time, top.row_id) for item in newest.items)


def first_place(page: Page[T], place_of: Callable[[T], Place]) -> Place | None:
    """Return the place of the first row, if there is one."""
    return place_of(page.items[0]) if page.items else None
