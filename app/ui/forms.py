"""Forms: what somebody typed, kept as they typed it, and what is wrong with it, beside the field and in a summary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from litestar import Request

from app.domain.errors import InvalidInput
from app.ui.sessions import local_path

AnyRequest = Request[Any, Any, Any]
MOST_SELECTED = 200
"""Rows of one bulk action: more than a page has, and no more than a request can do."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """Values by the names of their fields, as text; errors by the same names, those of no field in `summary`."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    summary: str | None = None

    @classmethod
    async def sent(cls, request: AnyRequest) -> Self:
        """Read the form of a request."""
        return cls(
            values={name: value for name, value in (await request.form()).items() if isinstance(value, str)}
        )

    def text(self, name: str) -> str | None:
        """Return what stands in a field without the spaces around it; None where that is nothing."""
        return self.values.get(name, "").strip() or None

    def refused(self, error: InvalidInput) -> Self:
        """Return the same form with what is wrong: `/schedule/expression` is the field `schedule.expression`."""
        named = {one.pointer.strip("/").replace("/", "."): one.detail for one in error.errors}
        return type(self)(
            values=self.values,
            errors={name: detail for name, detail in named.items() if name},
            summary=error.detail,
        )

    def back_to(self, page: str) -> str:
        """Return where the form leads back to: the page that it was opened from, else `page`."""
        return local_path(self.values["next"]) if self.values.get("next") else page


async def selected_ids(request: AnyRequest) -> list[UUID]:
    """Return the ids of the selected rows. Raises `InvalidInput` for none, too many, and what is no id."""
    texts = [text for text in (await request.form()).getall("ids", []) if isinstance(text, str)]
    if not 0 < len(texts) <= MOST_SELECTED:
        raise InvalidInput(f"select between 1 and {MOST_SELECTED} rows", pointer="/ids")
    try:
        return [UUID(text) for text in dict.fromkeys(texts)]
    except ValueError:
        raise InvalidInput("what was selected is no row of this list", pointer="/ids") from None
