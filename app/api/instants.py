"""Instants in queries and bodies: RFC 3339 or Unix seconds; without an offset UTC."""

from datetime import datetime

from app.domain import timezones
from app.domain.errors import InvalidInput
from app.domain.time_text import parse_instant


def read_instant(value: str | float | None, *, name: str) -> datetime | None:
    """Return the instant (UTC) that the parameter or field `name` says. Raises `InvalidInput`."""
    if value is None:
        return None
    try:
        return parse_instant(value, zone=timezones.resolve("UTC"))
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error.detail}", pointer=f"/{name}") from None
