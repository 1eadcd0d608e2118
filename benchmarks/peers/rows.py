"""What is measured, a function a row."""

import argparse
import time
from collections.abc import Callable

from benchmarks.peers.figures import Figure
from benchmarks.peers.install import NotRun
from benchmarks.peers.job import WARM_UPS
from benchmarks.peers.place import Place

SPREAD_JOBS, SPREAD_SECONDS = 1000, 20
IDLE_JOBS, IDLE_GAP_MS = 300, 50
SETTLE_SECONDS = 3.0
PATIENCE_SECONDS = 45.0
"""How long, after the last job was given, all may take to begin."""

Row = Callable[[Place, argparse.Namespace], list[Figure]]


def drain(place: Place, given: argparse.Namespace) -> list[Figure]:
    """What waits is drained by workers that are started then: from the first start to nothing being left."""
    place.do("fill", given.jobs)
    place.analyze()
    with place.workers():
        run = place.wait(given.jobs, seconds=given.patience)
    if not run.starts:
        raise NotRun(f"no job began within {given.patience:g} s")
    took = (run.over_at or max(run.starts.values())) - min(run.starts.values())
    note = "" if run.over_at else f"cut off after {len(run.starts):,} jobs"
    name, number = place.system.name, len(run.starts)
    bar, spent = place.system.drain_bar, 1e6 * run.spent_seconds / number
    return [
        Figure(row="drain", system=name, what="drain", value=number / took, unit="/s", bar=bar, note=note),
        Figure(row="drain", system=name, what="drain: processor time", value=spent, unit="µs/job"),
    ]


def spread(place: Place, _given: argparse.Namespace) -> list[Figure]:
    """A thousand jobs over 20 seconds, each due on its own instant."""
    late = _lateness_ms(place, "spread", SPREAD_JOBS, SPREAD_SECONDS)
    return _quantiles(place, "spread", "late", late, bar=place.system.spread_bar)


def idle(place: Place, _given: argparse.Namespace) -> list[Figure]:
    """One job each 50 ms while nothing else happens: from before it is given to its start."""
    return _quantiles(place, "idle", "to start", _lateness_ms(place, "idle", IDLE_JOBS, IDLE_GAP_MS))


ROWS: dict[str, Row] = {"drain": drain, "spread": spread, "idle": idle}


def _lateness_ms(place: Place, load: str, jobs: int, spacing: int) -> list[float]:
    with place.workers():
        time.sleep(SETTLE_SECONDS)
        place.do(load, jobs, spacing)
        run = place.wait(jobs + WARM_UPS, seconds=PATIENCE_SECONDS)
    if len(run.starts) < jobs:
        raise NotRun(f"{jobs - len(run.starts)} of {jobs} jobs did not begin in time")
    return sorted(1000 * (run.starts[number] - at) for number, at in place.asked().items())


def _quantiles(
    place: Place, row: str, what: str, values: list[float], *, bar: float | None = None
) -> list[Figure]:
    """Return median and 99th percentile, with a bar for the latter."""
    return [
        Figure(
            row=row,
            system=place.system.name,
            what=f"{row}: p{percent} {what}",
            value=values[len(values) * percent // 100],
            unit="ms",
            bar=bar if percent == 99 else None,
        )
        for percent in (50, 99)
    ]
