"""Processor time: what other work on the machine changes least."""

from contextlib import suppress
from pathlib import Path

import psutil


def spent_seconds(folder: Path) -> float:
    """Return what all that runs for a system has spent so far: our children, and the PostgreSQL in its folder."""
    roots = [
        psutil.Process(int(file.read_text().split()[0])) for file in folder.glob("postgres/postmaster.pid")
    ]
    below = [child for process in (psutil.Process(), *roots) for child in process.children(recursive=True)]
    return sum(map(_seconds, {*roots, *below}))


def _seconds(process: psutil.Process) -> float:
    """Return its own time and that of children that have ended."""
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return times.user + times.system + times.children_user + times.children_system
    return 0.0
