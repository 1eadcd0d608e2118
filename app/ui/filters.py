"""Lists and their addresses: what a list is narrowed to stands in the query of its page's address.

So links, bookmarks and the back button keep it, and a form with method GET changes it without a script.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, TypeAlias
from urllib.parse import urlencode

import msgspec
from litestar import Request

from app.db.reads.paging import Window
from app.domain.cursors import read_cursor
from app.domain.errors import InvalidInput

AnyRequest = Request[Any, Any, Any]
FilterText: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*$", max_length=200)]
"""Something to look for; PostgreSQL has no text with NUL."""
PAGE_ROWS = 50


class Chip(msgspec.Struct, frozen=True):
    """A filter in force: its name for people, its value, and the address of the list without it."""

    name: str
    value: str
    without: str


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a list's address. A list adds its filters as fields: `status: Status | None = None`.

    `PATH` is the list's page, `NAMES` what its filters are called where their fields are called otherwise.
    """

    PATH: ClassVar[str]
    NAMES: ClassVar[Mapping[str, str]] = {}

    cursor: str | None = None

    @classmethod
    def read(cls, request: AnyRequest) -> Self:
        """Read the query of a request; what is empty is none. Raises `InvalidInput`."""
        given = {name: value for name, value in request.query_params.items() if value}
        try:
            return msgspec.convert(given, cls, strict=False)
        except msgspec.ValidationError as error:
            detail, _, place = str(error).partition(" - at `$.")
            name = place.rstrip("`")
            raise InvalidInput(f"{name}: {detail}", pointer=f"/{name}") from None

    @property
    def path(self) -> str:
        """Return the path of the list's page; a list within the page of one thing says its own."""
        return self.PATH

    @property
    def filters(self) -> dict[str, Any]:
        """Return the filters in force, by the names of their fields."""
        fields = msgspec.structs.asdict(self)
        return {
            name: value for name, value in fields.items() if name != "cursor" and value not in {None, False}
        }

    @property
    def chips(self) -> list[Chip]:
        """Return the filters in force, for people."""
        return [
            Chip(self.NAMES.get(name, name), str(value), self.url(**{name: None, "cursor": None}))
            for name, value in self.filters.items()
        ]

    def url(self, **changes: Any) -> str:  # noqa: ANN401 - values of the fields
        """Return the address of the list with these changes."""
        changed = msgspec.structs.replace(self, **changes)
        values = changed.filters | ({"cursor": changed.cursor} if changed.cursor else {})
        return f"{self.path}?{urlencode(values)}" if values else self.path

    def window(self, limit: int = PAGE_ROWS) -> Window:
        """Return which page of the list to read. Raises `InvalidCursor`."""
        return Window(limit, read_cursor(self.cursor, self._bound), self._bound)

    @property
    def _bound(self) -> dict[str, Any]:
        return {"list": self.path, **self.filters}
