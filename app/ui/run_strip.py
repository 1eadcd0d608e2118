"""The last runs of a job as a strip: a bar each, the newest at the right, coloured by result, high if long."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.db.reads.job_runs import Run
from app.domain.statuses import Status

LEAST_HEIGHT = 2
FOOT = 3
"""What failed stands on a foot below the line: a colour alone tells nothing to those who do not see it."""
LOOKS: Mapping[Status, str] = {Status.COMPLETED: "good", Status.FAILED: "bad"}
"""Classes of bars; what was cancelled or skipped is neither."""


class Bar(NamedTuple):
    """A run as a bar; `x` is its middle, `top` and `foot` count from the top."""

    run: Run
    look: str
    x: float
    top: int
    foot: int


class Stroke(NamedTuple):
    """All bars of one look as the data of a single path."""

    look: str
    path: str


def run_bars(runs: Sequence[Run], *, slots: int, step: float, height: int) -> list[Bar]:
    """Return the bars of the last `slots` runs, which come newest first; the longest fills the height."""
    shown = runs[:slots]
    longest = max((run.seconds or 0 for run in shown), default=0) or 1
    return [_bar(run, slots - 1 - i, step, height, longest) for i, run in enumerate(shown)]


def run_strokes(runs: Sequence[Run], *, slots: int, step: float, height: int) -> list[Stroke]:
    """Return the same as few paths: a list shows fifty strips."""
    found: dict[str, str] = {}
    for bar in run_bars(runs, slots=slots, step=step, height=height):
        found[bar.look] = f"{found.get(bar.look, '')}M{bar.x:g} {bar.foot}V{bar.top}"
    return [Stroke(look, path) for look, path in found.items()]


def strip_words(runs: Sequence[Run]) -> str:
    """Return what a strip shows for those who do not see it: `30 runs: 28 completed, 2 failed`."""
    if not runs:
        return "no runs"
    counts = {status: sum(run.status is status for run in runs) for status in Status}
    parts = [f"{count} {status.lower()}" for status, count in counts.items() if count]
    return f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}: {', '.join(parts)}"


def _bar(run: Run, slot: int, step: float, height: int, longest: float) -> Bar:
    look = LOOKS.get(run.status, "off")
    tall = max(LEAST_HEIGHT, round(height * (run.seconds or 0) / longest))
    foot = height + FOOT if look == "bad" else height
    return Bar(run, look, round((slot + 0.5) * step, 2), height - tall, foot)
