"""When the clock on the wall of a zone is changed."""

from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from app.domain.timezones import Zone

_STEP = timedelta(days=3)
"""No zone changes twice within six days."""
_SECOND = timedelta(seconds=1)


class WallChange(msgspec.Struct, frozen=True):
    """A change of the clock at an instant: the wall times from `low` (included) to `high` are missing or doubled."""

    at: datetime
    low: datetime
    high: datetime
    is_gap: bool


def changes_between(zone: Zone, start: datetime, end: datetime) -> Iterator[WallChange]:
    """Yield the changes after `start` and up to `end`, ascending."""
    while start < end:
        stop = min(start + _STEP, end)
        if _offset(zone, start) != _offset(zone, stop):
            yield _change(zone, start, stop)
        start = stop


def _change(zone: Zone, start: datetime, stop: datetime) -> WallChange:
    """Search for the one change between two instants; clocks change at whole seconds."""
    first = start.replace(microsecond=0)
    before, after = _offset(zone, start), _offset(zone, stop)
    seconds = range((stop - first) // _SECOND + 1)
    changed = bisect_left(seconds, 1, key=lambda second: _offset(zone, first + second * _SECOND) != before)
    at = first + changed * _SECOND
    wall = zone.wall(at).replace(fold=0)
    other = wall - (after - before)
    return WallChange(at=at, low=min(wall, other), high=max(wall, other), is_gap=after > before)


def _offset(zone: Zone, instant: datetime) -> timedelta:
    return zone.wall(instant).replace(fold=0) - instant.replace(tzinfo=None)
