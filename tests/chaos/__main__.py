"""`python -m tests.chaos`: break an onthedot in all ways there are, and judge what it made of it.

    python -m tests.chaos                  a sample of each, in some minutes
    python -m tests.chaos --full           as often as is promised
    python -m tests.chaos --only killed    rows whose name has this in it
    python -m tests.chaos --seed 4711      the same plan again

The journals of a row that failed stay where the row says.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import msgspec

from tests.chaos.database_scenarios import SCENARIOS as DATABASE
from tests.chaos.failover import SCENARIOS as FAILOVER
from tests.chaos.network_scenarios import SCENARIOS as NETWORK
from tests.chaos.scenario import NotRun, Scenario, failures, judged, measured
from tests.chaos.scenarios import SCENARIOS as WORKERS
from tests.chaos.scene import Scene
from tests.chaos.session_scenarios import SCENARIOS as SESSIONS

FOLDER = "CHAOS_FOLDER"
RATE = "CHAOS_RATE"
"""Jobs a second, of all scenarios, instead of what each says."""
PASS, FAIL, NOT_RUN = "pass", "FAIL", "not run"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table."""

    name: str
    verdict: str
    times: int
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
        return "\n".join([*lines, *(f"        ! {why}" for why in self.why)])


def main() -> int:
    """Run what is asked for; return 1 if a row failed."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # takes down what stands, as Ctrl-C does
    folder = Path(os.environ.get(FOLDER) or tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}; journals in {folder}", flush=True)
    chosen = [
        each for each in (*WORKERS, *DATABASE, *SESSIONS, *NETWORK, *FAILOVER) if options.only in each.name
    ]
    rows = []
    for number, scenario in enumerate(chosen):
        rows.append(_run(scenario, folder / f"{seed}-{number:02}", seed=seed + number, full=options.full))
        print(rows[-1], flush=True)
    failed = [row.name for row in rows if row.verdict == FAIL]
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in (PASS, FAIL, NOT_RUN)}
    print(", ".join(f"{verdict}: {number}" for verdict, number in count.items()), flush=True)
    if failed:
        print(f"failed with seed {seed}: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


def _run(scenario: Scenario, folder: Path, *, seed: int, full: bool) -> Row:
    began, times = time.monotonic(), scenario.full if full else scenario.sample
    row = Row(name=scenario.name, verdict=NOT_RUN, times=times, bar=scenario.bar)
    shutil.rmtree(folder, ignore_errors=True)  # the same plan again
    folder.mkdir()
    folder.chmod(0o711)
    try:
        row = _judge(scenario, folder, row, seed=seed)
    except NotRun as why:
        row = msgspec.structs.replace(row, why=(str(why),))
    except Exception:  # noqa: BLE001 - the other rows are worth running
        said = (traceback.format_exc(limit=-3), f"journals: {folder}")
        row = msgspec.structs.replace(row, verdict=FAIL, why=said)
    if row.verdict == PASS:
        shutil.rmtree(folder, ignore_errors=True)
    return msgspec.structs.replace(row, seconds=time.monotonic() - began)


def _judge(scenario: Scenario, folder: Path, row: Row, *, seed: int) -> Row:
    rate = os.environ.get(RATE)
    setup = msgspec.structs.replace(scenario.setup, per_second=float(rate)) if rate else scenario.setup
    with Scene(folder, setup, seed=seed, times=row.times) as scene:
        scenario.act(scene)
        scene.end_load()
        came_to_rest = scene.come_to_rest()
        if not came_to_rest:
            scene.house.stop()  # or what still runs is in one journal and not in another
        scene.take_down()
    result = judged(scene, came_to_rest=came_to_rest)
    why = failures(scenario, result)
    kept = (f"journals: {folder}",) if why else ()
    return msgspec.structs.replace(
        row, verdict=FAIL if why else PASS, measured=measured(result), why=(*why, *kept)
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Break it, and judge.")
    parser.add_argument("--full", action="store_true", help="as often as is promised, not a sample")
    parser.add_argument("--seed", type=int, help="of the whole plan; printed at the beginning")
    parser.add_argument("--only", default="", help="rows with this in their name")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
