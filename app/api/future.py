"""Instants that must lie ahead."""

from datetime import datetime

from app.api.instants import read_instant
from app.domain.errors import InvalidInput


def read_future_instant(value: str | float | None, *, name: str, now: datetime) -> datetime | None:
    """Return the instant that the field `name` says. Raises `InvalidInput` where it is none, or has passed."""
    instant = read_instant(value, name=name)
    if instant is not None and instant <= now:
        detail = f"{name}: {instant.isoformat()} has passed; name a time ahead, or leave it out"
        raise InvalidInput(detail, pointer=f"/{name}")
    return instant
