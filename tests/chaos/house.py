"""An onthedot under test: its processes, started and watched from outside."""

import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import psutil

from tests.chaos.effects import FOLDER
from tests.life.processes import ROOT, environment

TASK = {
    "task_id": "effect",
    "execution_handler": "python:effect",
    "resource_requirements": {"max_retries": 30, "retry_policy": "fixed", "retry_delay_seconds": 0.2},
}
READY_SECONDS = 90.0
POLL_SECONDS = 0.02


class House:
    """`onthedot serve` with its API, maintenance and workers; its journals and its log lie in `folder`."""

    def __init__(self, folder: Path, *, lease_seconds: float, workers: int, **settings: str) -> None:
        self.folder = folder
        self.key = secrets.token_hex(16)
        self.url = ""
        self._settings = {
            "PORT": "0",
            "DATA_DIR": str(folder / "data"),
            "ADMIN_API_KEY": self.key,
            "LEASE_SECONDS": str(lease_seconds),
            "WORKER_PROCESSES": str(workers),
            "CONCURRENCY": "100",
            "GRACE_SECONDS": "2",
            "TASK_MODULES": "tests.chaos.effects",
        } | settings
        self._serve: subprocess.Popen[str] | None = None
        self._others: list[subprocess.Popen[str]] = []
        self._log = (folder / "serve.log").open("a", encoding="utf-8")

    @property
    def pid(self) -> int:
        """Return the supervisor."""
        assert self._serve is not None
        return self._serve.pid

    @property
    def log(self) -> str:
        """Return what its processes have logged."""
        return (self.folder / "serve.log").read_text(encoding="utf-8")

    def start(self) -> None:
        """Start everything, also after all of it was killed; return when it is ready."""
        if self._serve is not None:
            self._serve.wait(timeout=READY_SECONDS)
        self._serve = self._run("serve")
        assert self._serve.stdout
        line = self._serve.stdout.readline()
        if not line.startswith("onthedot ready"):
            raise RuntimeError(f"onthedot did not start: see {self.folder / 'serve.log'}")
        self.url = line.split()[-1]

    def start_worker(self, **variables: str) -> None:
        """Start one more worker process, which nobody supervises, with these variables of the environment."""
        self._others.append(self._run("worker", **variables))

    def make_task(self) -> None:
        """Create the task of all jobs."""
        headers = {"Authorization": f"Bearer {self.key}"}
        httpx.post(f"{self.url}/api/v1/tasks", json=TASK, headers=headers, timeout=30).raise_for_status()

    def processes(self, name: str) -> list[int]:
        """Return the running processes of a kind: `worker`, `api`, `maintenance`."""
        return [process.pid for process in self._children() if process.cmdline()[-1:] == [name]]

    def children_of(self, pid: int) -> list[int]:
        """Return the processes that one of its processes has started."""
        with suppress(psutil.NoSuchProcess):
            return [process.pid for process in psutil.Process(pid).children(recursive=True)]
        return []

    def whole_tree(self) -> list[int]:
        """Return the supervisor and all that it has started."""
        return [self.pid, *(process.pid for process in self._children())]

    def stop(self) -> None:
        """Stop it in order."""
        for process in [self._serve, *self._others]:
            if process is not None:
                process.terminate()
                process.wait(timeout=60)
        self._serve, self._others = None, []

    def close(self) -> None:
        """Stop it, by force where it must be."""
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            for pid in self.whole_tree():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._log.close()

    def _run(self, name: str, **variables: str) -> "subprocess.Popen[str]":
        env = environment(**self._settings) | {FOLDER: str(self.folder / "effects")} | variables
        return subprocess.Popen(
            [sys.executable, "-m", "app", name],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE if name == "serve" else self._log,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )

    def _children(self) -> list[psutil.Process]:
        found = []
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    if child.status() != psutil.STATUS_ZOMBIE:
                        found.append(child)
        return found


def wait_for(holds, *, seconds: float) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001 - any condition
    """Return whether it becomes true in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
