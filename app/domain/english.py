"""How often, in English."""

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_MOST = 120
"""Of one unit: 90 minutes, but 1 hour and 1 second."""


def every(seconds: float) -> str:
    """Return how often something happens: `every minute`, `every 90 minutes`, `every 1 hour and 1 second`.

    A day is 24 hours here, and said as that where a day by the calendar could be meant.
    """
    for size, unit in _UNITS:
        count, rest = divmod(seconds, size)
        if rest == 0 and 1 <= count <= _MOST and (size, count) != (86_400, 1):
            return f"every {unit}" if count == 1 else f"every {count:.0f} {unit}s"
    *others, last = _parts(seconds)
    return f"every {', '.join(others)} and {last}" if others else f"every {last}"


def _parts(seconds: float) -> list[str]:
    parts = []
    for size, unit in _UNITS[:-1]:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count:.0f} {unit}{'' if count == 1 else 's'}")
    if seconds or not parts:
        parts.append(f"{round(seconds, 6):g} second{'' if seconds == 1 else 's'}")
    return parts
