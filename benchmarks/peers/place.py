"""A system in its place: installed, on a server of its own, its script and workers run and watched."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from benchmarks.house import ROOT
from benchmarks.peers import job
from benchmarks.peers.install import HERE, NotRun
from benchmarks.peers.spent import spent_seconds
from benchmarks.peers.systems import ONTHEDOT, System

WORKERS = 2
SCRIPT_SECONDS, STOP_SECONDS = 300, 15


class Run(NamedTuple):
    """What came of a load: when each job began, when all of it was over (None: it was not in time), and the processor
    time that was spent from the first start on.
    """

    starts: dict[int, float]
    over_at: float | None
    spent_seconds: float


class Place:
    """One system, ready to be loaded."""

    def __init__(self, system: System, command: list[str], environment: dict[str, str]) -> None:
        self.system = system
        self._command = command
        self._environment = environment
        self._folder = Path(environment["PEER_FOLDER"])
        self._errors = (self._folder / "errors").open("wb")
        self._workers: list[subprocess.Popen[bytes]] = []

    def do(self, *words: object) -> None:
        """Run the script of the system to its end."""
        script = self._start([*self._command, *map(str, words)])
        if not _has_ended(script, seconds=SCRIPT_SECONDS):
            raise NotRun(f"`{words[0]}` took longer than {SCRIPT_SECONDS} s")
        if script.returncode:
            raise NotRun(f"`{words[0]}` ended with {script.returncode}: {self._last_words()}")

    def analyze(self) -> None:
        """Let PostgreSQL know what the tables are like."""
        if self.system.unfinished:
            with psycopg.connect(self._environment["PEER_DSN"], autocommit=True) as connection:
                connection.execute("VACUUM (ANALYZE, SKIP_LOCKED)")

    @contextmanager
    def workers(self) -> Iterator[None]:
        """Run two worker processes."""
        self._workers = [self._start([*self._command, "work"]) for _ in range(WORKERS)]
        try:
            yield
        finally:
            self._stop()

    def wait(self, jobs: int, *, seconds: float) -> Run:
        """Wait until so many jobs have begun and none is left unfinished."""
        deadline = time.time() + seconds
        self._wait_until_begun(1, deadline)
        before = spent_seconds(self._folder)
        over_at = self._over_at(deadline) if self._wait_until_begun(jobs, deadline) else None
        spent = spent_seconds(self._folder) - before
        return Run(self._starts(), over_at, spent)

    def asked(self) -> dict[int, float]:
        """Return the instants from which lateness counts."""
        return dict(job.read(self._folder / "asked"))

    def _wait_until_begun(self, jobs: int, deadline: float) -> bool:
        while self._begun() < jobs and time.time() < deadline:
            if any(worker.poll() is not None for worker in self._workers):
                raise NotRun(f"a worker has ended: {self._last_words()}")
            time.sleep(0.005)
        return self._begun() >= jobs

    def _over_at(self, deadline: float) -> float | None:
        if not self.system.unfinished:
            return time.time()
        with psycopg.connect(self._environment["PEER_DSN"], autocommit=True) as connection:
            while connection.execute(self.system.unfinished).fetchone() != (False,):
                if time.time() > deadline:
                    return None
                time.sleep(0.005)
        return time.time()

    def _begun(self) -> int:
        return sum(book.stat().st_size for book in self._folder.glob("ran-*")) // job.RECORD.size

    def _starts(self) -> dict[int, float]:
        time.sleep(0.1)  # what has just begun is being written
        records = [record for book in self._folder.glob("ran-*") for record in job.read(book)]
        return {number: at for number, at in records if number >= 0}

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        folder = ROOT if self.system is ONTHEDOT else HERE
        return subprocess.Popen(  # noqa: S603 - our own commands
            command, cwd=folder, env=self._environment, stdout=self._errors, stderr=self._errors
        )

    def _stop(self) -> None:
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            _has_ended(worker, seconds=STOP_SECONDS)

    def _last_words(self) -> str:
        return (self._folder / "errors").read_text("utf-8", "replace").strip()[-300:]


def _has_ended(process: subprocess.Popen[bytes], *, seconds: float) -> bool:
    """Wait for a process; one that has not ended in time is killed."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True
