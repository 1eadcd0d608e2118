"""Pages of steps: a workflow has up to 5,000, in a fixed order, so that a page is a number."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, Self, TypeAlias, TypeVar
from urllib.parse import urlencode

import msgspec
from litestar import Request

from app.domain.errors import InvalidInput
from app.ui.workflow_graph import MOST_DRAWN

AnyRequest = Request[Any, Any, Any]
T = TypeVar("T")
PAGE_STEPS = 100
"""Where there is a graph all of them are on one page, as its cards lead to their rows."""
Show: TypeAlias = Literal["active", "waiting", "failed", "completed", "other"]
SHOWN: Mapping[Show, tuple[str, frozenset[str]]] = {
    "active": ("Under way", frozenset({"RUNNING", "PENDING", "SCHEDULED", "RETRYING"})),
    "waiting": ("Waiting", frozenset({"BLOCKED"})),
    "failed": ("Failed", frozenset({"FAILED"})),
    "completed": ("Completed", frozenset({"COMPLETED"})),
    "other": ("Cancelled or skipped", frozenset({"CANCELLED", "SKIPPED"})),
}
"""Views of a run's steps: their words, and which statuses they show."""


class StepPage(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of steps, and the addresses of those beside it; empty: there is none."""

    items: Sequence[T]
    first: int
    """The number of the first one, from 1."""
    total: int
    previous_url: str
    next_url: str


class StepsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which steps of a run or a workflow a page shows."""

    show: Show | None = None
    page: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1

    @classmethod
    def read(cls, request: AnyRequest) -> Self:
        """Read the query of a request; what is empty is none. Raises `InvalidInput`."""
        given = {name: value for name, value in request.query_params.items() if value}
        try:
            return msgspec.convert(given, cls, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidInput(str(error)) from None

    def url(self, path: str, **changes: Any) -> str:  # noqa: ANN401 - values of the fields
        """Return an address with this query and these changes."""
        changed = msgspec.structs.replace(self, **changes)
        values = {"show": changed.show, "page": changed.page if changed.page > 1 else None}
        query = urlencode({name: value for name, value in values.items() if value})
        return f"{path}?{query}" if query else path

    def cut(self, path: str, steps: Sequence[T], *, among: int) -> StepPage[T]:
        """Return the page of these steps, which are some or all of those that there are."""
        size = PAGE_STEPS if among > MOST_DRAWN else MOST_DRAWN
        first = (self.page - 1) * size
        return StepPage(
            items=steps[first : first + size],
            first=first + 1,
            total=len(steps),
            previous_url=self.url(path, page=self.page - 1) if self.page > 1 else "",
            next_url=self.url(path, page=self.page + 1) if first + size < len(steps) else "",
        )

    def statuses(self) -> frozenset[str] | None:
        """Return which statuses are shown; None: all."""
        return SHOWN[self.show][1] if self.show else None

    def tabs(self, path: str, counts: Mapping[str, int]) -> list[tuple[str, str, str]]:
        """Return word, address and count of each view that has steps, or is the one that is shown."""
        found = [("All", self.url(path, show=None, page=1), f"{sum(counts.values()):,}")]
        for show, (word, statuses) in SHOWN.items():
            count = sum(counts.get(status, 0) for status in statuses)
            if count or show == self.show:
                found.append((word, self.url(path, show=show, page=1), f"{count:,}"))
        return found

    @property
    def tab(self) -> str:
        """Return the word of the view that is shown."""
        return SHOWN[self.show][0] if self.show else "All"
