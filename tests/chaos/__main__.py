"""`python -m tests.chaos`: break an onthedot in all ways there are, and judge what it made of it.

    python -m tests.chaos                  a sample of each, in some minutes
    python -m tests.chaos --full           as often as is promised, one row after another
    python -m tests.chaos --only killed    rows whose name has this in it
    python -m tests.chaos --seed 4711      the same plan again

A row that failed says how to run it again, and where its journals are.
"""

import argparse
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import msgspec

from tests.chaos.database_scenarios import SCENARIOS as DATABASE
from tests.chaos.failover import SCENARIOS as FAILOVER
from tests.chaos.limit_scenarios import SCENARIOS as LIMITS
from tests.chaos.network_scenarios import SCENARIOS as NETWORK
from tests.chaos.scenario import NotRun, Scenario, failures, judged, measured
from tests.chaos.scenarios import SCENARIOS as WORKERS
from tests.chaos.scene import Scene
from tests.chaos.session_scenarios import SCENARIOS as SESSIONS

FOLDER = "CHAOS_FOLDER"
RATE = "CHAOS_RATE"
"""Jobs a second, of all scenarios, instead of what each says."""
PASS, FAIL, NOT_RUN = "pass", "FAIL", "not run"
TOO_LATE = re.compile(
    r"^(I9|I10): |^the first start |^90 % of the rate came |began again too late|^an answer took "
)
"""What a row says of time; anything else that it says is wrong however fast the machine is."""
SCENARIOS = (*WORKERS, *LIMITS, *DATABASE, *SESSIONS, *NETWORK, *FAILOVER)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A row that is to be run."""

    scenario: Scenario
    seed: int
    times: int
    folder: Path


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table."""

    name: str
    verdict: str
    times: int
    seed: int
    bar: str
    measured: str = ""
    why: tuple[str, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [
            f"{self.verdict:8}{self.name} ({self.times} times, {self.seconds:.0f} s)",
            f"        bar: {self.bar}",
        ]
        lines += [f"        measured: {self.measured}"] if self.measured else []
        lines += [f"        ! {why}" for why in self.why]
        return "\n".join(lines)


def main() -> int:
    """Run what is asked for; return 1 if a row failed."""
    options = _options(sys.argv[1:])
    signal.signal(signal.SIGTERM, _end)
    folder = Path(os.environ.get(FOLDER) or tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}; journals in {folder}", flush=True)
    began, rows = time.monotonic(), []
    plans, at_once = list(_plans(options, folder, seed)), options.at_once or (1 if options.full else 2)
    for row in _rows(plans, at_once=at_once):
        rows.append(row)
        _print(row, full=options.full)
    if at_once > 1:
        rows = [_alone(row, plans) if row.verdict == FAIL and is_about_time(row.why) else row for row in rows]
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in (PASS, FAIL, NOT_RUN)}
    print(
        ", ".join(f"{verdict}: {number}" for verdict, number in count.items()),
        f"in {time.monotonic() - began:.0f} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors",
        flush=True,
    )
    return 1 if count[FAIL] else 0


def is_about_time(why: Sequence[str]) -> bool:
    """Tell whether all that a row failed for came too late: the row beside it may have been what it waited for."""
    return all(TOO_LATE.search(each) or each.startswith("journals: ") for each in why)


def _alone(row: Row, plans: list[Plan]) -> Row:
    """Run a row once more, with nothing beside it."""
    [plan] = [plan for plan in plans if (plan.scenario.name, plan.seed) == (row.name, row.seed)]
    again = _run(plan)
    _print(msgspec.structs.replace(again, name=f"{row.name}, alone"), full=False)
    return again


def _print(row: Row, *, full: bool) -> None:
    print(row, flush=True)
    if row.verdict == FAIL:
        command = f"python -m tests.chaos --only {row.name!r} --seed {row.seed}{' --full' if full else ''}"
        print(f"        again: {command}", flush=True)


def _plans(options: argparse.Namespace, folder: Path, seed: int) -> Iterator[Plan]:
    chosen = [each for each in SCENARIOS if options.only in each.name]
    number = 0
    for scenario in chosen:
        times = scenario.full if options.full else scenario.sample
        rows, times = (times, 1) if scenario.once_a_stage else (1, times)
        for _ in range(rows):
            place = folder / f"{seed}-{number:02}"
            yield Plan(scenario=scenario, seed=seed + number, times=times, folder=place)
            number += 1


def _rows(plans: list[Plan], *, at_once: int) -> Iterator[Row]:
    """Run rows, each in a process of its own unless they come one after another."""
    if at_once == 1:
        yield from map(_run, plans)
        return
    with ProcessPoolExecutor(at_once, mp_context=multiprocessing.get_context("fork")) as pool:
        for running in as_completed([pool.submit(_run, plan) for plan in plans]):
            yield running.result()


def _end(*_: object) -> None:
    """Take down what stands, here and in the processes of rows, as Ctrl-C does."""
    for child in multiprocessing.active_children():
        child.terminate()
    sys.exit(143)


def _run(plan: Plan) -> Row:
    began, scenario = time.monotonic(), plan.scenario
    row = Row(name=scenario.name, verdict=NOT_RUN, times=plan.times, seed=plan.seed, bar=scenario.bar)
    shutil.rmtree(plan.folder, ignore_errors=True)  # the same plan again
    plan.folder.mkdir()
    plan.folder.chmod(0o711)
    try:
        row = _judge(plan, row)
    except NotRun as why:
        row = msgspec.structs.replace(row, why=(str(why),))
    except Exception:  # noqa: BLE001 - the other rows are worth running
        said = (traceback.format_exc(limit=-3), f"journals: {plan.folder}")
        row = msgspec.structs.replace(row, verdict=FAIL, why=said)
    if row.verdict == PASS:
        shutil.rmtree(plan.folder, ignore_errors=True)
    return msgspec.structs.replace(row, seconds=time.monotonic() - began)


def _judge(plan: Plan, row: Row) -> Row:
    scenario, rate = plan.scenario, os.environ.get(RATE)
    setup = msgspec.structs.replace(scenario.setup, per_second=float(rate)) if rate else scenario.setup
    with Scene(plan.folder, setup, seed=plan.seed, times=plan.times) as scene:
        scenario.act(scene)
        scene.end_load()
        came_to_rest = scene.come_to_rest()
        if not came_to_rest:
            scene.house.stop()  # or what still runs is in one journal and not in another
        scene.take_down()
    result = judged(scene, came_to_rest=came_to_rest)
    why = failures(scenario, result)
    kept = (f"journals: {plan.folder}",) if why else ()
    return msgspec.structs.replace(
        row, verdict=FAIL if why else PASS, measured=measured(result), why=(*why, *kept)
    )


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Break it, and judge.")
    parser.add_argument("--full", action="store_true", help="as often as is promised, not a sample")
    parser.add_argument("--seed", type=int, help="of the whole plan; printed at the beginning")
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--at-once", type=int, help="rows side by side; 2, and 1 with --full")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
