"""Limits as people set them."""

import re
from typing import Annotated, Any

import msgspec

from app.domain.errors import InvalidInput

Most = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
"""How many at once."""
ConcurrencyKey = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=200,
        description="Of executions with the same key only so many run at once. {{parameters.NAME}} stands for a "
        "parameter's value",
        examples=["tenant:{{parameters.tenant}}"],
    ),
]
_REFERENCE = re.compile(r"\{\{\s*parameters\.[A-Za-z0-9_.-]+\s*\}\}")
"""As the database reads it (onthedot.render_key)."""


class RateLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How many executions may begin: so many each second on average, and `burst` at once after a rest."""

    per_second: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]
    burst: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """Null: as many as a second brings, at least one."""


def check_key(template: str | None) -> None:
    """Refuse a concurrency_key that would not be rendered as it looks. Raises `InvalidInput`."""
    rest = _REFERENCE.sub("", template or "")
    if "{{" in rest or "}}" in rest or "\x00" in rest or "\x1f" in rest:
        raise InvalidInput(
            f"{template!r:.220}: write {{{{parameters.NAME}}}} for the value of a parameter, such as "
            "tenant:{{parameters.tenant}}",
            pointer="/concurrency_key",
        )


def rate_columns(values: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of what may hold a `rate_limit`."""
    columns = dict(values)
    if "rate_limit" in columns:
        rate = columns.pop("rate_limit")
        columns |= {"rate_per_second": rate and rate.per_second, "rate_burst": rate and rate.burst}
    return columns


def rate_limit(columns: dict[str, Any]) -> RateLimit | None:
    """Take a rate limit out of columns."""
    per_second, burst = columns.pop("rate_per_second"), columns.pop("rate_burst")
    return None if per_second is None else RateLimit(per_second=per_second, burst=burst)
