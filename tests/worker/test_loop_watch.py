"""A handler that blocks the event loop cannot be interrupted; that it does is noticed from a thread."""

import asyncio
import sys
import threading
from contextlib import suppress

import pytest

from app.startup import START_AGAIN
from app.worker import loop_watch
from app.worker.loop_watch import LoopWatch
from tests.life.processes import ROOT, environment
from tests.worker.conftest import Bench

LOOK_SECONDS = 0.01
FEW = 5


@pytest.fixture(autouse=True)
def few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_watch, "STILL_LOOKS", FEW)


def block(until: threading.Event) -> None:
    """Stand still; the stack shows it."""
    until.wait(60)


async def test_a_blocked_loop_past_a_timeout_is_told_with_the_culprit() -> None:
    stacks, told = [], threading.Event()

    def note(stack: str) -> None:
        stacks.append(stack)
        told.set()

    watch = LoopWatch(is_overdue=lambda: True, on_blocked=note, look_every_seconds=LOOK_SECONDS)
    watch.start()
    block(told)

    assert len(stacks) == 1
    assert "in block" in stacks[0]


async def test_a_loop_that_keeps_nobody_waiting_is_left_alone_and_so_is_one_that_turns() -> None:
    told: list[str] = []
    enough, overdue = threading.Event(), False
    asked = iter(range(2 * FEW))

    def is_overdue() -> bool:
        if next(asked, None) is None:
            enough.set()
        return overdue

    watch = LoopWatch(is_overdue=is_overdue, on_blocked=told.append, look_every_seconds=LOOK_SECONDS)
    watch.start()
    block(enough)  # asked time and again, and no timeout had come
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()
    overdue = True
    asyncio.get_running_loop().call_later(3 * FEW * LOOK_SECONDS, watch.stop)
    await asyncio.to_thread(watch._thread.join)  # it turns all the while

    assert told == []


async def test_a_worker_knows_that_a_timeout_has_come_while_its_loop_stands_still(bench: Bench) -> None:
    seen: list[bool] = []
    late = threading.Event()

    async def blocks(_ctx: object) -> None:
        seen.append(worker.is_overdue())
        late.wait(0.2)
        seen.append(worker.is_overdue())

    bench.functions["blocks"] = blocks
    worker = await bench.start_worker()
    execution_id = await bench.job(await bench.task("python:blocks"), timeout_seconds=0.1)
    await bench.ended(execution_id)

    assert seen == [False, True]
    assert not worker.is_overdue()


IMPATIENT = """
from app.cli import main
from app.worker import loop_watch
loop_watch.STILL_LOOKS = 1
main()
"""


async def test_its_process_ends_says_why_and_wants_to_be_replaced(bench: Bench) -> None:
    settings = {"DATABASE_URL": bench.dsn, "TASK_MODULES": "tests.worker.stubborn_tasks"}
    await bench.job(await bench.task("python:blocking"), timeout_seconds=0.1)

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", IMPATIENT, "worker"),
        cwd=ROOT,
        env=environment(**settings),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            _, errors = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()

    assert process.returncode == START_AGAIN
    assert "in blocking" in errors.decode()
    row = await bench.pool.fetchrow("SELECT draining, drain_reason FROM onthedot.workers")
    assert row is not None
    assert row["draining"] is True
    assert "blocks the event loop" in row["drain_reason"]
