"""The words of a job's form."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from app.domain.timezones import Zone
from app.ui.words import relative

LABELS: Mapping[str, str] = {
    "task_id": "Task",
    "user_id": "Owner",
    "name": "Name",
    "tags": "Tags",
    "parameters": "Parameters",
    "schedule.type": "When it runs",
    "schedule.expression": "Cron expression",
    "schedule.scheduled_time": "Time",
    "schedule.every": "Every",
    "every_unit": "Unit",
    "schedule.timezone": "Time zone",
    "schedule.gap": "If the clock jumps over its time",
    "schedule.fold": "If the clock shows its time twice",
    "schedule.starts_at": "Not before",
    "schedule.ends_at": "Not after",
    "schedule.misfire": "Runs that were missed",
    "schedule.misfire_grace_seconds": "Missed means later than",
    "queue": "Queue",
    "priority": "Priority",
    "max_retries": "Retries",
    "timeout_seconds": "Time-out",
    "expires_after_seconds": "Begin within",
    "overlap": "If an earlier run is still under way",
    "concurrency_key": "Concurrency key",
    "concurrency_limit": "At once under this key",
}
HELP: Mapping[str, str] = {
    "task_id": "What it runs.",
    "user_id": "Whose job it is; yours unless said.",
    "name": "What people call it; the task's name unless said.",
    "tags": "Separated by blanks.",
    "parameters": "A JSON object.",
    "schedule.expression": "Minute, hour, day of month, month, day of week. Six fields: seconds first. "
    "Several are divided by ;",
    "schedule.scheduled_time": "2030-01-31 09:00 in the time zone, or with an offset; or Unix seconds.",
    "schedule.every": "From its creation or “not before” on; nothing makes it drift.",
    "schedule.timezone": "A name such as Europe/Berlin.",
    "schedule.gap": "When summer time begins.",
    "schedule.fold": "When summer time ends.",
    "schedule.starts_at": "2030-01-31 09:00 in the time zone.",
    "schedule.ends_at": "The last moment at which it may run.",
    "schedule.misfire": "While no scheduler was there to plan them.",
    "schedule.misfire_grace_seconds": "Seconds.",
    "queue": "Its workers and limits.",
    "priority": "What waits with a lower number goes first.",
    "max_retries": "After a failed attempt, at most so many more.",
    "timeout_seconds": "Seconds that an attempt may take.",
    "expires_after_seconds": "Seconds. What has not begun so long after its instant never runs.",
    "overlap": "One that is to be tried again is under way, too.",
    "concurrency_key": "Runs of any job with the same key wait for each other. {{parameters.NAME}} is a value.",
    "concurrency_limit": "How many of them run at the same time.",
}
LIVE = ("task_id", "schedule.expression", "schedule.scheduled_time", "schedule.every", "schedule.timezone",
        "schedule.starts_at", "schedule.ends_at", "schedule.misfire_grace_seconds")  # fmt: skip
"""Fields that are looked at while somebody types. The parameters are, too."""
KINDS = (("RECURRING", "Cron"), ("INTERVAL", "At an interval"), ("ONCE", "Once"), ("IMMEDIATE", "Now"))
GAPS = (("run_after_gap", "run when the clock goes on"), ("skip", "skip that run"))
FOLDS = (("first", "run the first time"), ("second", "run the second time"), ("both", "run both times"))
MISFIRES = (
    ("run_once", "make up for them by one run"),
    ("skip", "leave them out"),
    ("run_all", "make up for each"),
)
OVERLAPS = (
    ("allow", "Run beside it", "Both run. This is the default."),
    ("queue", "Wait for it", "It begins when the earlier one has ended; none is left out."),
    (
        "skip",
        "Skip the new run",
        "It never runs, and the history says so. A run that somebody asks for by hand waits.",
    ),
    (
        "cancel_running",
        "Stop the earlier run",
        "The new one begins when that has stopped; of several only the newest.",
    ),
)
"""What becomes of a run that is due while another one of its job is under way: value, choice, what follows."""


class Preset(NamedTuple):
    """A schedule that many want."""

    name: str
    word: str
    expression: str


PRESETS = (
    Preset("quarter", "Every 15 min", "*/15 * * * *"),
    Preset("hourly", "Hourly", "0 * * * *"),
    Preset("daily", "Daily 02:00", "0 2 * * *"),
    Preset("weekdays", "Weekdays 09:00", "0 9 * * MON-FRI"),
    Preset("weekly", "Mondays 06:00", "0 6 * * MON"),
    Preset("monthly", "1st of the month", "0 0 1 * *"),
)


def preset(name: str) -> dict[str, str]:
    """Return the values that a preset gives the form; nothing for none."""
    found = next((one for one in PRESETS if one.name == name), None)
    return {"schedule.type": "RECURRING", "schedule.expression": found.expression} if found else {}


def wall(instant: datetime, zone: Zone) -> str:
    """Return what calendar and clock of a zone show: `Mon 2030-01-31 09:00`, with seconds where there are some."""
    shown = instant.astimezone(zone.info)
    return (
        f"{shown:%a %Y-%m-%d %H:%M:%S}" if shown.second or shown.microsecond else f"{shown:%a %Y-%m-%d %H:%M}"
    )


def ahead(instant: datetime, now: datetime) -> str:
    """Return how far ahead an instant lies, in days however many they are: the date stands beside it."""
    days = (instant - now).days
    return f"in {days:,} d" if days >= 30 else relative(instant, now)
