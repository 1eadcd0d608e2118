"""Threads cannot be killed: a worker in which too many ignore their timeout is replaced."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from app.domain.statuses import Status
from app.startup import START_AGAIN
from app.tasks import Context, Handler
from app.worker.handlers import threads as threads_module
from app.worker.handlers.threads import TaskThreads
from tests.life.processes import ROOT, environment
from tests.polling import eventually
from tests.worker.conftest import Bench

WHY = "functions go on in their threads after their timeouts, and a thread cannot be killed: 1"
GRACE_SECONDS = 0.2


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_module, "STOP_GRACE_SECONDS", GRACE_SECONDS)


@contextmanager
def task_threads(concurrency: int) -> Iterator[tuple[TaskThreads, list[int], threading.Event]]:
    """Give threads, the numbers that they have complained of, and what lets go those that wait."""
    threads, told, release = TaskThreads(concurrency), [], threading.Event()
    threads.when_too_many(told.append)
    try:
        yield threads, told, release
    finally:
        release.set()
        threads.close()


async def give_up_on(threads: TaskThreads, release: threading.Event) -> None:
    """Run a function that waits to be released, and stop waiting for it."""
    began = threading.Event()

    def call() -> None:
        began.set()
        release.wait(60)

    work = asyncio.ensure_future(threads.run(call))
    await asyncio.to_thread(began.wait)
    work.cancel()
    await asyncio.wait([work])


@pytest.mark.usefixtures("short_grace")
async def test_a_tenth_of_the_slots_is_too_many() -> None:
    with task_threads(30) as (threads, told, release):

        async def stuck() -> int:
            return len(threads._stuck)

        await give_up_on(threads, release)
        await give_up_on(threads, release)
        await eventually(lambda: _is(2, stuck))
        assert told == []

        await give_up_on(threads, release)
        await eventually(lambda: _is(3, stuck))
        assert told == [3]


@pytest.mark.usefixtures("short_grace")
async def test_who_stops_within_the_grace_or_later_is_not_stuck() -> None:
    with task_threads(1) as (threads, told, release):
        polite = threading.Event()
        await give_up_on(threads, polite)
        polite.set()
        await give_up_on(threads, release)

        async def complaints() -> list[int]:
            return told

        assert await eventually(complaints) == [1]  # the second one; it is looked at after the first one
        assert await threads.run(lambda: 7) == 7


async def _is(number: int, count: Callable[[], Awaitable[int]]) -> bool:
    return await count() == number


async def test_such_a_worker_says_why_claims_nothing_more_and_wants_to_end(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()
    register: dict[str, Handler] = bench.functions

    def deaf(_ctx: Context) -> None:
        release.wait(60)

    register["deaf"] = deaf
    worker = await bench.start_worker(concurrency="10")
    task = await bench.task("python:deaf", max_retries=0)
    await bench.ended(await bench.job(task, timeout_seconds=0.1))

    async with asyncio.timeout(30):
        await bench.to_end.wait()
    after = await bench.job(await bench.task("builtin:noop"))
    await worker.stop()  # while the thread is still stuck

    assert worker.has_retired
    assert [record.getMessage() for record in caplog.records if "to be replaced" in record.message] == [
        f"this worker is to be replaced: {WHY}"
    ]
    row = await bench.pool.fetchrow("SELECT draining, drain_reason FROM onthedot.workers")
    assert row is not None
    assert row["draining"] is True
    assert row["drain_reason"] == WHY
    assert (await bench.in_status(after, "PENDING")).status is Status.PENDING
    release.set()


async def test_its_process_ends_whatever_its_threads_do(bench: Bench) -> None:
    """And the status says that a new one is wanted, to whoever starts it."""
    settings = {
        "DATABASE_URL": bench.dsn,
        "TASK_MODULES": "tests.worker.stubborn_tasks",
        "CONCURRENCY": "5",
        "GRACE_SECONDS": "0",
    }
    task = await bench.task("python:stubborn", max_retries=0)
    await bench.job(task, timeout_seconds=0.1)

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", "worker"), cwd=ROOT, env=environment(**settings)
    )
    try:
        async with asyncio.timeout(60):
            status = await process.wait()
    finally:
        with suppress(ProcessLookupError):
            process.kill()

    assert status == START_AGAIN
