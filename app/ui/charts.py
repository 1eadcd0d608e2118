"""Geometry of charts that templates draw as SVG: no script, no inline style, and they print."""

from collections.abc import Sequence
from typing import NamedTuple


class Segment(NamedTuple):
    """A part of a column, from the chart's top left."""

    x: float
    y: float
    width: float
    height: float


class Column(NamedTuple):
    """A column of a stacked chart: its parts from the ground up, and the whole height to point at."""

    segments: list[Segment]
    x: float
    width: float


def bars(
    stacks: Sequence[Sequence[float]],
    *,
    width: float,
    height: float,
    most: float | None = None,
    gap: float = 0.25,
) -> list[Column]:
    """Return stacked columns side by side; the highest fills the height unless `most` does.

    What is more than nothing is at least a pixel high: one failure among a million must not vanish.
    """
    scale = height / (most or max((sum(stack) for stack in stacks), default=0) or 1)
    step = width / max(len(stacks), 1)
    return [
        Column(_stack(stack, i * step, step * (1 - gap), height, scale), round(i * step, 2), round(step, 2))
        for i, stack in enumerate(stacks)
    ]


def sparkline(values: Sequence[float], *, width: float, height: float) -> str:
    """Return the points of a polyline."""
    if not values:
        return ""
    scale = height / (max(values) or 1)
    step = width / max(len(values) - 1, 1)
    return " ".join(f"{i * step:.1f},{height - value * scale:.1f}" for i, value in enumerate(values))


def _stack(stack: Sequence[float], x: float, width: float, height: float, scale: float) -> list[Segment]:
    segments, top = [], height
    for value in stack:
        tall = max(1.0, value * scale) if value > 0 else 0.0
        top -= tall
        segments.append(Segment(round(x, 2), round(max(top, 0), 2), round(width, 2), round(tall, 2)))
    return segments
