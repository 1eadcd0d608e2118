"""Schedules in words: `every day at 02:30 (America/New_York)`.

`rhythm` says how often, for lists that show the zone apart; `describe` is the whole sentence.
"""

from datetime import datetime

from app.domain.english import every
from app.domain.expression_words import expression_words
from app.domain.schedule import Immediate, Interval, Once, Recurring, Schedule
from app.domain.timezones import Zone


def rhythm(expression: str | None, every_seconds: float | None) -> str:
    """Return how often a repeating schedule fires; an expression that has no short and true words stays as it is."""
    if expression is not None:
        return " and ".join(_words(one.strip()) for one in expression.split(";"))
    return every(every_seconds or 0)


def _words(expression: str) -> str:
    return expression_words(expression) or f"cron {expression}"


def describe(schedule: Schedule, zone: Zone) -> str:
    """Return a schedule as a sentence; its times are those of `zone`."""
    match schedule:
        case Immediate():
            return "once, at once"
        case Once(scheduled_time=time):
            return f"once at {_wall(time, zone)} ({zone.resolved})"
        case Interval():
            bounds = f" from {_wall(schedule.anchor, zone)}" + _until(schedule.ends_at, zone)
            return f"{rhythm(None, schedule.every_seconds)}, counted{bounds} ({zone.resolved})"
        case Recurring():
            start = f", from {_wall(schedule.starts_at, zone)}" if schedule.starts_at else ""
            end = _until(schedule.ends_at, zone)
            comma = "," if end and not start else ""
            return f"{rhythm(schedule.text, None)} ({zone.resolved}){start}{comma}{end}"


def _until(end: datetime | None, zone: Zone) -> str:
    return f" until {_wall(end, zone)}" if end else ""


def _wall(instant: datetime, zone: Zone) -> str:
    """Return a wall time, its seconds only where it has some."""
    wall = zone.wall(instant)
    return f"{wall:%Y-%m-%d %H:%M:%S}" if wall.second or wall.microsecond else f"{wall:%Y-%m-%d %H:%M}"
