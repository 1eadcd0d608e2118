"""What pages say of executions."""

from datetime import datetime

from app.db.reads.execution_list import ListedExecution
from app.domain.errors import InvalidInput
from app.domain.time_text import parse_instant
from app.domain.timezones import Zone


def listed_error(execution: ListedExecution) -> str:
    """Return an error's type and the first line of its message."""
    first = (execution.error_message or "").strip().partition("\n")[0]
    return f"{execution.error_type}: {first}" if first else execution.error_type or ""


def local_time(text: str | None, zone: Zone) -> str:
    """Return a time of a filter as a field for dates and times has it: wall time in the page's zone."""
    if text is None:
        return ""
    try:
        return f"{zone.wall(parse_instant(text, zone=zone)):%Y-%m-%dT%H:%M}"
    except InvalidInput:
        return ""


def precise(instant: datetime, zone: Zone) -> str:
    """Return the time of day to the millisecond: `10:00:00.123`."""
    return instant.astimezone(zone.info).strftime("%H:%M:%S.%f")[:-3]
