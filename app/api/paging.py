"""Query parameters that all lists share."""

import base64
from collections.abc import Mapping
from typing import Annotated, Literal

from litestar.params import QueryParameter

from app.db.reads.paging import Window
from app.domain.cursors import read_cursor
from app.domain.errors import InvalidCursor

MAX_LIMIT = 1000

DEFAULT_LIMIT = 50

Limit = Annotated[int, QueryParameter(ge=1, description="Rows of a page; more than 1000 means 1000")]
CursorText = Annotated[str | None, QueryParameter(description="`next_cursor` of the page before")]
FilterText = Annotated[
    str | None, QueryParameter(pattern=r"^[^\x00]*$", description="Only those with this value")
]
Include = Annotated[
    Literal["future"] | None, QueryParameter(description="Also executions whose instant has not come")
]


def window(limit: int, cursor: str | None, filters: Mapping[str, object]) -> Window:
    """Return which page to read. Raises `InvalidCursor`."""
    return Window(min(limit, MAX_LIMIT), read_cursor(cursor, filters), filters)


def write_text_cursor(last: str) -> str:
    """Write the cursor of a list that is ordered by a text id."""
    return base64.urlsafe_b64encode(last.encode()).decode().rstrip("=")


def read_text_cursor(cursor: str | None) -> str | None:
    """Read such a cursor. Raises `InvalidCursor`."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except ValueError:  # not base64, or not UTF-8
        text = ""
    if not text or "\0" in text:
        raise InvalidCursor(
            "this is no cursor of ours; use `next_cursor` of the same list", pointer="/cursor"
        )
    return text
