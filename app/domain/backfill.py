"""Which instants of a schedule a backfill makes up for."""

from datetime import datetime, timedelta

from app.domain.errors import InvalidInput
from app.domain.schedule import Schedule, occurrences

MOST_INSTANTS = 1_000
"""Of one request, which is one transaction."""


def instants_of(schedule: Schedule, *, since: datetime, until: datetime, now: datetime) -> list[datetime]:
    """Return the instants from `since` to `until`, both included. Raises `InvalidInput`."""
    if until > now:
        raise InvalidInput("`to` lies in the future, which the schedule sees to itself", pointer="/to")
    if since > until:
        raise InvalidInput("`from` lies after `to`", pointer="/from")
    found = occurrences(schedule, after=since - timedelta.resolution, until=until, limit=MOST_INSTANTS + 1)
    if len(found) > MOST_INSTANTS:
        detail = f"more than {MOST_INSTANTS:,} instants; the last of so many is {found[-2].isoformat()}: go in pieces"
        raise InvalidInput(detail, pointer="/to")
    return found
