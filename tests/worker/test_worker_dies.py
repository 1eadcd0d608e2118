"""A worker that is killed leaves nothing running."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.life.processes import ROOT, eventually, has_ended

KILLS: dict[str, Callable[[int], None]] = {
    "alone": lambda pid: os.kill(pid, signal.SIGKILL),
    "with its group, as the supervisor does": lambda pid: os.killpg(pid, signal.SIGKILL),
}


@pytest.mark.parametrize("kill", KILLS.values(), ids=KILLS)
def test_what_it_has_launched_ends_with_it(kill: Callable[[int], None], tmp_path: Path) -> None:
    path = tmp_path / "pids"
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.worker.lone_launcher", str(path)], cwd=ROOT, start_new_session=True
    )
    with worker:
        eventually(lambda: path.exists() and len(path.read_text().split()) == 6)
        pids = {int(word) for word in path.read_text().split()}
        kill(worker.pid)

    assert len(pids) == 5  # the command, the function, a process of each, and their fork server
    for pid in pids:
        eventually(lambda pid=pid: has_ended(pid))  # type: ignore[misc]
    assert not any(psutil.pid_exists(pid) and not has_ended(pid) for pid in pids)
