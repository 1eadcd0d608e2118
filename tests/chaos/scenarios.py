"""Workers that are killed, frozen and held up; everything killed; clocks that are wrong."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.chaos.effects import length_for
from tests.chaos.house import wait_for
from tests.chaos.journals import Effect, now, read
from tests.chaos.producer import Mix
from tests.chaos.scenario import NotRun, Result, Scenario
from tests.chaos.scene import Scene, Setup

MANY = Mix(seconds=(0.0, 0.02), failing=0.02)
LONG = Mix(seconds=(0.0, 4.0), ahead=0.2)
DAY_SECONDS = 86_400
WORKERS = "SELECT count(*) FROM onthedot.workers WHERE stopped_at IS NULL"
FAKETIME = "CHAOS_FAKETIME"
"""The variable that names libfaketime where it is not in its usual place."""


def nothing_more(_result: Result) -> Iterator[str]:
    """Promise what holds in each run, and no more."""
    yield from ()


def restarted_in_time(result: Result) -> Iterator[str]:
    """Promise that what lost its worker begins again within a lease, a reaper's turn and two seconds."""
    late = [each for each in result.verdict.violations if each.invariant == "I10"]
    if late:
        yield f"{len(late)} began again too late, the last after {result.longest_restart:.2f} s"


def kill_workers(scene: Scene) -> None:
    """Kill a worker, again and again."""
    scene.put_up()
    scene.begin_load()
    for _ in range(scene.times):
        scene.pause(1.0, 3.0)
        pid = scene.a_worker()
        with scene.struck("kill -9", pid):
            os.kill(pid, signal.SIGKILL)
    scene.pause(1.0, 2.0)


def freeze_workers(scene: Scene) -> None:
    """Stop a worker for longer than its leases, and let it go on."""
    scene.put_up()
    scene.begin_load()
    for _ in range(scene.times):
        scene.pause(1.0, 2.0)
        pid = scene.a_worker()
        with scene.struck("freeze", pid):
            os.kill(pid, signal.SIGSTOP)
            lease = scene.setup.lease_seconds
            scene.pause(1.3 * lease, 2.0 * lease)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    scene.pause(2.0, 3.0)


def hold_up(scene: Scene, how: str) -> None:
    """Let a handler hold up its process for two leases."""
    seconds = 2 * scene.setup.lease_seconds
    length = length_for(seconds) if how == "gil" else 0
    scene.put_up()
    scene.begin_load()
    for number in range(scene.times):
        scene.pause(0.5, 1.0)
        key = f"blocking-{number}"
        scene.create(key, seconds=seconds, blocks=how, length=length)
        wait_for(lambda key=key: _has_ended(scene.folder, key), seconds=20 * scene.setup.lease_seconds)
        for effect in _starts(scene.folder, key):
            scene.note(f"held up by {how}", f"pid {effect.pid}", began=effect.at, ended=now())
        scene.holds.append(_held_seconds(scene.folder, key))
    scene.pause(1.0, 2.0)


def hold_loop(scene: Scene) -> None:
    """Hold up the event loop."""
    hold_up(scene, "sleep")


def hold_interpreter(scene: Scene) -> None:
    """Hold up the interpreter, and so the thread that renews leases."""
    hold_up(scene, "gil")
    scene.notes.append(f"held for {min(scene.holds):.1f} s at least")
    if min(scene.holds) < scene.setup.lease_seconds:
        scene.missing = ("hold of the interpreter beyond a lease",)
    log = scene.house.log
    named = [
        event for event in ("lease_lost", "all_leases_lapsed", "settle_lost", "child_ended") if event in log
    ]
    scene.notes.append(f"logged: {', '.join(named) or 'nothing'}")


def no_duplicates(result: Result) -> Iterator[str]:
    """Promise that nothing began twice."""
    again = result.verdict.counts.duplicate_start_explained
    if again:
        yield f"{again} began again, though their leases could be renewed"


def fenced_and_named(result: Result) -> Iterator[str]:
    """Promise that whoever loses its lease is named."""
    for what in result.missing:
        yield f"there was no {what}"
    if not any(event in result.log for event in ("lease_lost", "settle_lost", "all_leases_lapsed")):
        yield "no log line names who lost a lease"


def no_overlap(result: Result) -> Iterator[str]:
    """Promise that nothing begins again while its first run goes on."""
    if result.verdict.counts.overlapping_runs:
        yield f"{result.verdict.counts.overlapping_runs} ran twice at the same time"


def skew_clocks(scene: Scene) -> None:
    """Run workers whose clocks are a day ahead and a day behind."""
    library = faketime()
    scene.put_up()
    for days in (1, -1):
        scene.house.start_worker(
            LD_PRELOAD=str(library), FAKETIME=f"{days * DAY_SECONDS:+d}", FAKETIME_DONT_FAKE_MONOTONIC="1"
        )
    assert wait_for(lambda: scene.server.query(WORKERS) == [(2,)], seconds=60), "the workers do not start"
    scene.begin_load()
    scene.pause(8.0, 10.0)
    effects = read(scene.folder / "effects", Effect)
    off = {round((each.wall - each.at - (time.time() - now())) / DAY_SECONDS) for each in effects}
    if off != {1, -1}:
        raise RuntimeError(f"workers' clocks are {off} days off, not 1 and -1")
    scene.notes.append("clocks were 1 and -1 days off")


def faketime() -> Path:
    """Return the library. Raises `NotRun`."""
    if sys.platform != "linux":
        raise NotRun("libfaketime is used on Linux only")
    usual = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    named = os.environ.get(FAKETIME)
    for path in [Path(named)] if named else usual:
        if path.exists():
            return path
    raise NotRun("libfaketime is not installed (Debian: apt install libfaketime)")


def _starts(folder: Path, key: str) -> list[Effect]:
    return [each for each in read(folder / "effects", Effect) if each.key == key and each.phase == "start"]


def _held_seconds(folder: Path, key: str) -> float:
    """Return how long its first run took."""
    mine = [each for each in read(folder / "effects", Effect) if each.key == key]
    first = min(mine, key=lambda each: each.at)
    ends = [each.at for each in mine if each.token == first.token and each.phase != "start"]
    return min(ends, default=now()) - first.at


def _has_ended(folder: Path, key: str) -> bool:
    """Tell whether its first run has ended: that is the one that holds things up."""
    mine = [each for each in read(folder / "effects", Effect) if each.key == key]
    return any(each.attempt == 1 and each.phase != "start" for each in mine)


SCENARIOS = [
    Scenario(
        name="workers killed (kill -9)",
        bar="0 lost; resumed within lease + reaper + 2 s",
        full=50,
        sample=4,
        setup=Setup(mix=Mix(seconds=(0.0, 0.5))),
        act=kill_workers,
        judge=restarted_in_time,
    ),
    Scenario(
        name="workers killed under 2,000 jobs/s",
        bar="0 lost; resumed within lease + reaper + 2 s",
        full=50,
        sample=2,
        setup=Setup(mix=MANY, per_second=2000, batch=100),
        act=kill_workers,
        judge=restarted_in_time,
    ),
    Scenario(
        name="workers frozen past the lease",
        bar="0 stale accepted",
        full=20,
        sample=2,
        setup=Setup(mix=LONG, per_second=25),  # what one worker alone has slots for
        act=freeze_workers,
        judge=restarted_in_time,
    ),
    Scenario(
        name="event loop held up for 2 leases",
        bar="no duplicate",
        full=5,
        sample=1,
        setup=Setup(mix=Mix(seconds=(0.0, 1.0)), per_second=20),
        act=hold_loop,
        judge=no_duplicates,
    ),
    Scenario(
        name="interpreter held up for 2 leases",
        bar="fenced and named",
        full=5,
        sample=1,
        setup=Setup(mix=Mix(seconds=(0.0, 1.0)), per_second=20),
        act=hold_interpreter,
        judge=fenced_and_named,
    ),
    Scenario(
        name="workers' clocks a day off",
        bar="nothing changes",
        full=1,
        sample=1,
        setup=Setup(house={"ROLES": "api,materializer"}),
        act=skew_clocks,
        judge=no_duplicates,
    ),
]
