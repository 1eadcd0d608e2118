"""The last runs of a job as a strip: a bar each, the newest at the right, coloured by result, high if it ran long."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from app.db.reads.job_runs import Run
from app.domain.statuses import Status

LEVELS = 10
"""Heights that are told apart in a list: fifty strips are much of its page, and more levels are more of it."""
FOOT = 3
"""What failed stands on a foot below the line: a colour alone tells nothing to those who do not see it."""
LOOKS: Mapping[Status, str] = {Status.COMPLETED: "good", Status.FAILED: "bad"}
"""Classes of bars; what was cancelled or skipped is neither."""


class Bar(NamedTuple):
    """A run as a bar of width 1 at `x`; `top` and `foot` count from the top."""

    run: Run
    look: str
    x: int
    top: int
    foot: int


class Shape(NamedTuple):
    """All bars of one look as the data of a single path."""

    look: str
    path: str


def run_bars(runs: Sequence[Run], *, slots: int, height: int, levels: int | None = None) -> list[Bar]:
    """Return the bars of the last `slots` runs from the left; the longest fills the height. `runs`: newest first."""
    shown = runs[:slots]
    longest = max((run.seconds or 0 for run in shown), default=0) or 1
    grain = height // (levels or height)
    bars = [_bar(run, slots - 1 - i, height, grain, longest) for i, run in enumerate(shown)]
    return bars[::-1]


def run_shapes(runs: Sequence[Run], *, slots: int, width: int, height: int) -> list[Shape]:
    """Return the same as few outlines, each bar `width` wide without a gap."""
    found: dict[str, str] = {}
    bars = run_bars(runs, slots=slots, height=height, levels=LEVELS)
    for look, group in groupby(bars, attrgetter("look")):
        alike = list(group)
        tops = "".join(f"V{bar.top}h{width}" for bar in alike)
        outline = f"M{alike[0].x * width} {alike[0].foot}{tops}V{alike[0].foot}z"
        found[look] = found.get(look, "") + outline
    return [Shape(look, path) for look, path in found.items()]


def strip_words(runs: Sequence[Run]) -> str:
    """Return what a strip shows for those who do not see it: `30 runs: 28 completed, 2 failed`."""
    if not runs:
        return "no runs"
    counts = Counter(run.status for run in runs)
    parts = [f"{counts[status]} {status.lower()}" for status in Status if status in counts]
    return f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}: {', '.join(parts)}"


def _bar(run: Run, x: int, height: int, grain: int, longest: float) -> Bar:
    look = LOOKS.get(run.status, "off")
    tall = max(1, round((run.seconds or 0) / longest * height / grain)) * grain
    foot = height + FOOT if look == "bad" else height
    return Bar(run, look, x, height - tall, foot)
