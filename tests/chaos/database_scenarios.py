"""PostgreSQL killed, stopped, away for long, out of disk; and everything killed at once."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psycopg

from app.db.server_account import EmbeddedServerError
from tests.chaos.figures import most
from tests.chaos.house import wait_for
from tests.chaos.producer import Mix
from tests.chaos.scenario import NotRun, Result, Scenario
from tests.chaos.scenarios import no_overlap, nothing_more
from tests.chaos.scene import Scene, Setup
from tests.chaos.server import ChaosServer

FIRST_START_SECONDS, FULL_RATE_SECONDS = 2.0, 10.0
DISK = "600m"
DISK_SECONDS = 6.0
"""How long the disk stays full."""


def interrupt(scene: Scene, how: Callable[[ChaosServer], None], kind: str) -> None:
    """End the server in some way and start it again, again and again."""
    scene.put_up()
    scene.begin_load()
    for _ in range(scene.times):
        scene.pause(4.5, 6.0)
        with scene.broken(kind, "database"):
            how(scene.server)
            scene.server.start()
    scene.let_recover(seconds=FULL_RATE_SECONDS + 1)


def back_in_time(result: Result) -> Iterator[str]:
    """Promise a first start within 2 s, and 90 % of the rate within 10 s."""
    first, full = (
        most([getattr(each, name) for each in result.returns]) for name in ("first_start", "full_rate")
    )
    if first is None or first > FIRST_START_SECONDS:
        yield f"the first start came after {first or float('inf'):.2f} s"
    if full is None or full > FULL_RATE_SECONDS:
        yield f"90 % of the rate came after {full or float('inf'):.2f} s"


def stay_away(scene: Scene) -> None:
    """Let the server be away for three leases, while handlers run."""
    scene.put_up()
    scene.begin_load()
    for _ in range(scene.times):
        scene.pause(3.0, 4.0)
        with scene.broken("outage", "database"):
            scene.server.stop()
            time.sleep(3 * scene.setup.lease_seconds)
            scene.server.start()
    scene.pause(2 * scene.setup.lease_seconds, 3 * scene.setup.lease_seconds)


def kill_everything(scene: Scene) -> None:
    """Kill the supervisor, its processes and its own PostgreSQL at once, and start `onthedot serve` again."""
    scene.put_up_embedded()
    for _ in range(scene.times):
        scene.begin_load()
        scene.pause(2.0, 4.0)
        with scene.broken("everything killed", "all"):
            for pid in [*scene.house.whole_tree(), scene.server.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            scene.abandon_load()
            scene.house.start()
    scene.begin_load()
    scene.pause(2.0, 3.0)


def fill_disk(scene: Scene) -> None:
    """Let the disk of the server be full for a while."""
    directory = mounted(scene)
    server = ChaosServer.create(directory / "server")
    scene.callback(server.destroy)
    scene.put_up(server)
    scene.begin_load()
    for _ in range(scene.times):
        scene.pause(2.0, 3.0)
        with scene.broken("disk full", "database"):
            filler = _fill(directory)
            time.sleep(DISK_SECONDS)
            filler.unlink()
            assert wait_for(partial(_is_back, server), seconds=60), "the server does not come back"
    scene.let_recover(seconds=FULL_RATE_SECONDS)
    scene.notes.append(f"PostgreSQL crashed: {'PANIC' in _server_log(server)}")


def mounted(scene: Scene) -> Path:
    """Return a small disk of its own. Raises `NotRun`."""
    directory = scene.folder / "disk"
    directory.mkdir()
    options = f"size={DISK},mode=711"
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        raise NotRun("only root may mount a small disk")
    if subprocess.run([mount, "-t", "tmpfs", "-o", options, "chaos", directory], check=False).returncode:
        raise NotRun("a small disk cannot be mounted here")
    scene.callback(partial(subprocess.run, ["umount", directory], check=False))
    return directory


def unavailable_and_back(result: Result) -> Iterator[str]:
    """Promise that the API says 503 meanwhile."""
    if not result.answers.unavailable:
        yield "the API never said 503"


def _fill(directory: Path) -> Path:
    filler = directory / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):  # to the last page
            with suppress(OSError):
                while file.write(b"\0" * size) == size:
                    pass
    return filler


def _is_back(server: ChaosServer) -> bool:
    with suppress(EmbeddedServerError, psycopg.OperationalError):
        server.start()
        server.query("CREATE TEMP TABLE probe ()")
        return True
    return False


def _server_log(server: ChaosServer) -> str:
    return "".join(path.read_text(errors="replace") for path in (server.cluster.folder / "log").glob("*.log"))


STEADY = Setup(lease_seconds=30.0, mix=Mix(seconds=(0.0, 0.1)))
"""Its leases outlive a restart, as the usual ones do; what outlives a lease is another row."""
WAYS = {
    "PostgreSQL kill -9": ChaosServer.kill,
    "PostgreSQL immediate stop": ChaosServer.stop_at_once,
    "PostgreSQL restart": ChaosServer.stop,
}
SCENARIOS = [
    *(
        Scenario(
            name=name,
            bar="0 lost; first start <= 2 s, 90 % rate <= 10 s after it is back",
            full=10,
            sample=1,
            setup=STEADY,
            act=partial(interrupt, how=how, kind=name),
            judge=back_in_time,
        )
        for name, how in WAYS.items()
    ),
    Scenario(
        name="outage of 3 leases",
        bar="no duplicate of a live execution",
        full=3,
        sample=1,
        setup=Setup(mix=Mix(seconds=(0.0, 12.0)), per_second=10),
        act=stay_away,
        judge=no_overlap,
    ),
    Scenario(
        name="whole tree killed",
        bar="resumes by itself",
        full=10,
        sample=1,
        setup=Setup(mix=Mix(seconds=(0.0, 0.5))),
        act=kill_everything,
        judge=nothing_more,
    ),
    Scenario(
        name="disk full, then freed",
        bar="503s, recovery, 0 lost",
        full=3,
        sample=1,
        setup=STEADY,
        act=fill_disk,
        judge=unavailable_and_back,
    ),
]
