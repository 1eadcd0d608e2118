"""A onthedot of its own to measure: started in a folder, watched, stopped."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).parents[1]


class Spent(NamedTuple):
    """Seconds of processor time, by what has spent them."""

    api: float
    workers: float
    maintenance: float
    database: float

    def since(self, before: "Spent") -> "Spent":
        """Return what has been spent since then."""
        return Spent(*(now - then for now, then in zip(self, before, strict=True)))

    @property
    def whole(self) -> float:
        """Return all of it."""
        return sum(self)


class House:
    """The processes of a running onthedot."""

    def __init__(self, url: str, server: int, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.dsn = (folder / "dsn").read_text("utf-8").strip()
        self.key = (folder / "admin.key").read_text("utf-8").strip()
        [marker] = folder.glob("postgres/**/postmaster.pid")
        self._postgres = psutil.Process(int(marker.read_text("utf-8").split()[0]))
        self._server = psutil.Process(server)

    def spent(self) -> Spent:
        """Return what its processes have spent so far."""
        by_kind = dict.fromkeys(("api", "worker", "maintenance"), 0.0)
        for process in self._server.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                kind = next((kind for kind in by_kind if kind in process.cmdline()), None)
                if kind is not None:
                    by_kind[kind] += _seconds(process)
        database = sum(map(_seconds, [self._postgres, *self._postgres.children()]))
        return Spent(by_kind["api"], by_kind["worker"], by_kind["maintenance"], database)

    def memory_mb(self) -> float:
        """Return the memory that its processes have for themselves and their part of what they share, in MiB.

        Of PostgreSQL's shared buffers nothing.
        """
        own = [self._server, *self._server.children(recursive=True)]
        database = [self._postgres, *self._postgres.children()]
        return (sum(map(_pss, own)) + sum(map(_private, database))) / 2**20


@contextmanager
def house(folder: Path, **settings: str) -> Iterator[House]:
    """Run onthedot in a folder; give it once it is ready, and stop it at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # as root the embedded server runs as a user of its own
    own = {"DATA_DIR": str(folder), "PORT": "0"} | settings
    others = {name: value for name, value in os.environ.items() if not name.startswith("ONTHEDOT_")}
    command = [sys.executable, "-m", "app", "serve"]
    with (
        (folder / "log").open("w", encoding="utf-8") as log,
        subprocess.Popen(  # noqa: S603 - our own command
            command,
            cwd=ROOT,
            env=others | {f"ONTHEDOT_{name}": value for name, value in own.items()},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout  # noqa: S101 - it was asked for
        try:
            yield House(_ready(process.stdout), process.pid, folder)
        finally:
            process.terminate()


def _ready(lines: Iterator[str]) -> str:
    for line in lines:
        if line.startswith("onthedot ready"):
            return line.split()[-1]
    raise SystemExit("onthedot did not start")


def fsync_ms(folder: Path, *, times: int = 50) -> float:
    """Return how long the disk takes to have a page for good, in milliseconds: the median of some."""
    path, took = folder / "fsync", []
    with path.open("wb", buffering=0) as file:
        for _ in range(times):
            began = time.perf_counter()
            file.write(b"x" * 8192)
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    path.unlink()
    return 1000 * sorted(took)[times // 2]


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)


def _seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system


def _pss(process: psutil.Process) -> float:
    with suppress(psutil.Error, AttributeError):
        return float(process.memory_full_info().pss)
    return 0.0


def _private(process: psutil.Process) -> float:
    with suppress(psutil.Error, AttributeError):
        return float(process.memory_full_info().uss)
    return 0.0
