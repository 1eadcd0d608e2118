"""The network between onthedot and PostgreSQL: silent, slow, and losing replies after the commit."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from tests.chaos.journals import now
from tests.chaos.producer import Mix
from tests.chaos.proxy import Loss
from tests.chaos.scenario import Result, Scenario
from tests.chaos.scenarios import restarted_in_time
from tests.chaos.scene import Scene, Setup

WAYS = (frozenset({"up", "down"}), frozenset({"up"}), frozenset({"down"}))
LOSS_SECONDS = 20.0
RECURS_SECONDS = 5.0
TRIES = 4
STATEMENTS = (
    "create_jobs", "claim_due", "claim_ahead", "arm", "renew", "settle", "retry", "release", "reap_running",
    "cancel_waiting", "materialize",
)  # fmt: skip


def fall_silent(scene: Scene) -> None:
    """Let nothing through for a while: in both directions, or in one."""
    scene.put_up()
    scene.begin_load()
    assert scene.proxy
    longest = 60.0 if scene.times > 3 else 8.0
    for number in range(scene.times):
        scene.pause(3.0, 4.0)
        ways = WAYS[number % len(WAYS)]
        with scene.broken("black hole", "database", detail="+".join(sorted(ways))):
            scene.proxy.silent = ways
            scene.pause(3.0, longest if number % 4 == 0 else 8.0)
            scene.proxy.silent = frozenset()
    scene.pause(5.0, 6.0)


def reset_connections(scene: Scene) -> None:
    """Reset every connection at once."""
    scene.put_up()
    scene.begin_load()
    assert scene.proxy
    for _ in range(scene.times):
        scene.pause(1.5, 2.5)
        with scene.broken("reset", "database"):
            scene.proxy.reset()
    scene.pause(3.0, 4.0)


def lose(scene: Scene, what: str) -> None:
    """Lose the reply to each statement of the hot path once it is committed, or the statement itself."""
    scene.put_up()
    scene.begin_load()
    lost = dict.fromkeys(STATEMENTS, 0)
    for _ in range(scene.times):
        for statement in scene.random.sample(STATEMENTS, len(STATEMENTS)):
            scene.pause(0.3, 0.7)
            lost[statement] += _lose_one(scene, statement, what)
    scene.notes.append(", ".join(f"{statement} {times}" for statement, times in lost.items()))
    scene.missing = tuple(statement for statement, times in lost.items() if times < scene.times)
    scene.pause(1.5 * scene.setup.lease_seconds, 2 * scene.setup.lease_seconds)


def _lose_one(scene: Scene, statement: str, what: str) -> bool:
    assert scene.proxy
    began = now()
    loss = scene.proxy.lose(f"-- {statement}:", what)
    done = PROVOKED[statement](scene, loss) if statement in PROVOKED else loss.done.wait(LOSS_SECONDS)
    if done:
        # Whatever the reply told nobody knows until it is found out: by looking again, or when leases run out.
        scene.note(f"{what} of {statement} lost", "database", began=began, ended=now())
    scene.proxy.loss = None
    return done


def _end_workers(scene: Scene, loss: Loss, *, by: signal.Signals, kind: str) -> bool:
    """End workers until one statement comes by that this leads to."""
    for _ in range(TRIES):
        for pid in scene.house.processes("worker")[:1]:
            with scene.struck(kind, pid), suppress(ProcessLookupError):
                os.kill(pid, by)
            if loss.done.wait(LOSS_SECONDS / TRIES):
                return True
    return False


def _plan(scene: Scene, loss: Loss) -> bool:
    """Create a job that recurs for a while."""
    begins = time.time()
    schedule = {"type": "INTERVAL", "every": 1, "starts_at": begins, "ends_at": begins + RECURS_SECONDS}
    scene.create(f"recurring-{loss.what}-{begins}", schedule=schedule)
    return loss.done.wait(LOSS_SECONDS)


PROVOKED = {
    "release": partial(_end_workers, by=signal.SIGTERM, kind="worker stopped"),
    "reap_running": partial(_end_workers, by=signal.SIGKILL, kind="kill -9"),
    "materialize": _plan,
}
"""How to bring about what does not come by itself: giving back, taking what was lost, planning."""


def as_promised(result: Result) -> Iterator[str]:
    """Promise that leases are as promised: whoever lost one, others have it in time."""
    yield from restarted_in_time(result)


def _losing(what: str) -> Scenario:
    return Scenario(
        name=f"{what} lost at every statement",
        bar="0 lost, 0 doubled",
        full=5,
        sample=1,
        setup=Setup(
            per_second=40,
            proxied=True,
            mix=Mix(seconds=(0.0, 1.5), ahead=0.5, failing=0.2),
        ),
        act=partial(lose, what=what),
        judge=nothing_doubled,
    )


def nothing_doubled(result: Result) -> Iterator[str]:
    """Promise that nothing is created or completed twice; what runs again had not been known to run."""
    for statement in result.missing:
        yield f"not every {statement} that was to be lost came by"
    if result.verdict.counts.duplicate_completion:
        yield f"{result.verdict.counts.duplicate_completion} completed twice"
    if result.verdict.counts.overlapping_runs:
        yield f"{result.verdict.counts.overlapping_runs} ran twice at the same time"


SCENARIOS = [
    Scenario(
        name="black hole",
        bar="leases as promised",
        full=20,
        sample=2,
        setup=Setup(proxied=True, per_second=30),
        act=fall_silent,
        judge=as_promised,
    ),
    Scenario(
        name="connections reset",
        bar="0 lost, 0 doubled",
        full=20,
        sample=2,
        setup=Setup(proxied=True, per_second=30),
        act=reset_connections,
        judge=nothing_doubled,
    ),
    _losing("reply"),
    _losing("request"),
]
