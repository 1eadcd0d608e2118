"""Helpers for tests that watch processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 60


def eventually(holds: Callable[[], bool]) -> None:
    """Return as soon as `holds()`; fail the test if it does not within the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.01)


def environment(**settings: str) -> dict[str, str]:
    """Return this process's variables with these settings of onthedot, and no others; `PORT` is `ONTHEDOT_PORT`."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("ONTHEDOT_")}
    return others | {f"ONTHEDOT_{name}": value for name, value in settings.items()}


@contextmanager
def serving(**settings: str) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """Run `onthedot serve` with these settings; give it and its ready line once it is ready, stop it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "serve"],
        cwd=ROOT,
        env=environment(**settings),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout
        try:
            yield process, process.stdout.readline()
        finally:
            stop(process)


def stop(process: "subprocess.Popen[str]") -> None:
    """Stop a process that leads a session of its own; one that does not end in time is a failure, and killed."""
    process.terminate()
    try:
        process.wait(timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def has_ended(pid: int) -> bool:
    """Tell whether the process is gone; a zombie that nobody has reaped yet counts as gone."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
