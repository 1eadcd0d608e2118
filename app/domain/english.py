"""Small English: lists, ordinals, and how often."""

from collections.abc import Sequence
from itertools import pairwise

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_MOST = 120
"""Of one unit: 90 minutes, but 1 hour and 1 second."""


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return words as a list: `a, b and c`."""
    return " ".join(filter(None, (", ".join(words[:-1]), last if len(words) > 1 else "", words[-1])))


def ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `11th`."""
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def every(seconds: float) -> str:
    """Return how often something happens: `every minute`, `every 90 minutes`, `every 1 hour and 1 second`.

    A day is 24 hours here, and said as that where a day by the calendar could be meant.
    """
    for size, unit in _UNITS:
        count, rest = divmod(seconds, size)
        if rest == 0 and 1 <= count <= _MOST and (size, count) != (86_400, 1):
            return f"every {unit}" if count == 1 else f"every {count:.0f} {unit}s"
    return f"every {listed(_parts(seconds))}"


def step_of(values: Sequence[int]) -> int | None:
    """Return the distance between neighbours where it is the same for all; None where it is not."""
    steps = {right - left for left, right in pairwise(values)}
    return steps.pop() if len(steps) == 1 else None


def _parts(seconds: float) -> list[str]:
    parts = []
    for size, unit in _UNITS[:-1]:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count:.0f} {unit}{'' if count == 1 else 's'}")
    if seconds or not parts:
        parts.append(f"{round(seconds, 6):g} second{'' if seconds == 1 else 's'}")
    return parts
