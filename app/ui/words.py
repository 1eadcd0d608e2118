"""What pages say: times, durations and errors in words."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from app.db.reads.audit import ChangeView
from app.db.reads.executions import ErrorView
from app.domain.timezones import Zone

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
_MONTH_SECONDS = 30 * 86_400
_ERROR_CHARACTERS = 200
_VALUE_CHARACTERS = 60
_MOST_DIFFERENCES = 50
_BESIDE_THE_POINT = frozenset({"version", "created_at", "is_active"})
"""Columns that say nothing about a change that the row does not say itself."""

_DEEDS = {"create": "created", "update": "changed", "delete": "deleted", "cancel": "cancelled", "retry": "ran again",
          "run": "ran", "replan": "planned anew"}  # fmt: skip


def rfc3339(instant: datetime) -> str:
    """Return an instant for machines: `2030-01-31T09:00:00.000Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def absolute(instant: datetime, zone: Zone) -> str:
    """Return an instant for people, to the second, with its zone: `2030-01-31 10:00:00 CET`."""
    return f"{instant.astimezone(zone.info):%Y-%m-%d %H:%M:%S %Z}"


def clock(instant: datetime, zone: Zone) -> str:
    """Return the time of day in a zone: `10:00:00`."""
    return f"{instant.astimezone(zone.info):%H:%M:%S}"


def weekday(instant: datetime, zone: Zone) -> str:
    """Return the day of the week in a zone: `Tue`."""
    return ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[instant.astimezone(zone.info).weekday()]


def capped(count: int, most: int) -> str:
    """Return a count that stopped at `most`: `1,000+`."""
    return f"{most:,}+" if count >= most else f"{count:,}"


def counted(count: int, noun: str, *, more: bool = False) -> str:
    """Return a count with its noun: `1 job`, `12 jobs`; `more` where it stopped there: `500+ jobs`."""
    return f"{count:,}{'+' if more else ''} {noun}{'' if count == 1 and not more else 's'}"


def percent(share: float) -> str:
    """Return a share in percent, never rounded to all or nothing: `99.9 %` of a million with one failure."""
    if share in {0, 1}:
        return f"{100 * share:.0f} %"
    return f"{min(max(100 * share, 0.1), 99.9):.1f} %"


def size(count: float) -> str:
    """Return a number of bytes, to two or three digits: `712 kB`, `1.2 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if count >= 9.95 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def pretty(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return JSON for people."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def relative(instant: datetime, now: datetime) -> str:
    """Return an instant seen from `now`: `12 s ago`, `in 5 min`; beyond a month the date."""
    seconds = (instant - now).total_seconds()
    if abs(seconds) >= _MONTH_SECONDS:
        return f"{instant.astimezone(UTC):%Y-%m-%d}"
    if abs(seconds) < 1:
        return "now"
    size, unit = next((pair for pair in _UNITS if abs(seconds) >= pair[0]), (1, "s"))
    count = int(abs(seconds)) // size
    return f"in {count} {unit}" if seconds > 0 else f"{count} {unit} ago"


def lateness(milliseconds: float) -> str:
    """Return how late something is, to two or three digits: `0.4 ms`, `12 ms`, `1.2 s`, `2 h 5 min`."""
    if milliseconds < 0.95:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1_000:.1f} s"
    return " ".join(_parts(milliseconds // 1_000)[:2])


def duration(seconds: float) -> str:
    """Return a duration exactly: `5 s`, `1 h 30 min`, `2.5 s`."""
    return " ".join(_parts(seconds)) or "0 s"


def short_id(any_id: UUID) -> str:
    """Return the end of an id: UUIDv7 begin alike when they are made at about the same time."""
    return f"…{any_id.hex[-8:]}"


def error_line(error: ErrorView) -> str:
    """Return an error's type and the first line of its message, bounded."""
    first = error.message.strip().partition("\n")[0]
    line = f"{error.type}: {first}" if first else error.type
    return line if len(line) <= _ERROR_CHARACTERS else line[: _ERROR_CHARACTERS - 1] + "…"


def actor(name: str) -> str:
    """Return who is behind a change: `ada`, `onthedot (resumer)`, `app by SQL`."""
    kind, _, rest = name.partition(":")
    return {"user": rest, "system": f"onthedot ({rest})", "sql": f"{rest} by SQL"}.get(kind, name)


def deed(action: str) -> str:
    """Return what somebody did: `job.update` is `changed`."""
    verb = action.rpartition(".")[2]
    return _DEEDS.get(verb, verb)


def told_deed(change: ChangeView) -> str:
    """Return what a change did; pausing and resuming are changes like others, and told as what they are."""
    match (change.after or {}).get("is_active") if change.before else None:
        case False:
            return "paused"
        case True:
            return "resumed"
    return deed(change.action)


def differences(change: ChangeView) -> list[tuple[str, str, str]]:
    """Return what a change of something changed: column, old value, new value. Of what is new or gone, nothing.

    Of objects, such as parameters, their fields that changed: `parameters.region`.
    """
    if change.before is None or change.after is None:
        return []
    before, after = (
        {k: v for k, v in side.items() if k not in _BESIDE_THE_POINT}
        for side in (change.before, change.after)
    )
    return [(name, _brief(old), _brief(new)) for name, old, new in _differing(before, after)][
        :_MOST_DIFFERENCES
    ]


def _differing(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from ((f"{name}.{inner}", one, other) for inner, one, other in _differing(old, new))
        elif old != new:
            yield name, old, new


def _brief(value: Any) -> str:  # noqa: ANN401 - any JSON value
    text = (
        value if isinstance(value, str) else "none" if value is None else msgspec.json.encode(value).decode()
    )
    return text if len(text) <= _VALUE_CHARACTERS else text[: _VALUE_CHARACTERS - 1] + "…"


def _parts(seconds: float) -> list[str]:
    """Return the days, hours, minutes and seconds of a duration, those that are not zero."""
    parts = []
    for size, unit in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count:.0f} {unit}")
    return [*parts, f"{seconds:g} s"] if seconds else parts
