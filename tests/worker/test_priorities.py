"""Reserved slots and interruptible queues, by a whole worker."""

import asyncio
import threading
from uuid import UUID

import pytest

from app.domain.hints import Ready
from app.domain.ids import shard_of
from app.domain.statuses import Status
from app.tasks import Context, Handler
from app.worker.attempt import Stop
from app.worker.yielding import Yielding
from tests.polling import eventually
from tests.worker.attempts import attempt_of
from tests.worker.claims import claim
from tests.worker.conftest import Bench

Register = dict[str, Handler]
NO_ATTEMPT_TO_SPARE = {"max_retries": 0}


class Gate:
    """A handler that holds its slot until it is opened, and knows who passed."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self.inside: list[UUID] = []
        self.most_inside = 0

    async def __call__(self, ctx: Context) -> None:
        """Hold the slot."""
        self.inside.append(ctx.execution_id)
        self.most_inside = max(self.most_inside, len(self.inside))
        try:
            await self._open.wait()
        finally:
            self.inside.remove(ctx.execution_id)

    def open(self) -> None:
        """Let all of them end."""
        self._open.set()

    async def holds(self, count: int) -> None:
        """Wait until so many hold a slot."""
        await eventually(lambda: _soon(len(self.inside) == count))


async def _soon(value: bool) -> bool:  # noqa: FBT001 - a probe
    return value


@pytest.fixture
def gate(register: Register) -> Gate:
    """Return the handler `python:hold`."""
    gate = Gate()

    async def hold(ctx: Context) -> None:
        await gate(ctx)

    register["hold"] = hold
    return gate


@pytest.fixture
def once_held(register: Register) -> list[UUID]:
    """Register `python:hold_once`, whose first attempt never ends by itself; return who had begun one."""
    begun: list[UUID] = []

    async def hold_once(ctx: Context) -> None:
        if ctx.attempt_number == 1:
            begun.append(ctx.execution_id)
            await asyncio.Event().wait()

    register["hold_once"] = hold_once
    return begun


async def outcomes(bench: Bench, execution_id: UUID) -> list[str | None]:
    """Return what the attempts of an execution came to."""
    return [attempt.outcome for attempt in await bench.attempts(execution_id)]


async def test_critical_work_starts_while_bulk_holds_every_other_slot(bench: Bench, gate: Gate) -> None:
    bulk = await bench.task("python:hold", queue="bulk", priority=3)
    critical = await bench.task("builtin:noop", queue="critical", priority=3)
    for _ in range(12):
        await bench.job(bulk)
    worker = await bench.start_worker(concurrency="4")
    await gate.holds(2)

    for _ in range(10):
        execution_id = await bench.job(critical)
        worker.on_hints([Ready(shard_of(execution_id), "critical", 3, bench.clock.now())])
        assert (await bench.ended(execution_id)).status is Status.COMPLETED
    assert (await bench.ended(await bench.job(critical))).status is Status.COMPLETED, (
        "no hint came of that one"
    )

    assert gate.most_inside == 2, "half of four are reserved"
    waiting = await bench.pool.fetchval("SELECT count(*) FROM onthedot.executions WHERE status = 'PENDING'")
    assert waiting == 10, "nobody claims what it has no slot for"
    gate.open()


async def test_what_falls_due_fills_no_reserved_slot(bench: Bench, gate: Gate) -> None:
    bulk = await bench.task("python:hold", queue="bulk", priority=3)
    critical = await bench.task("builtin:noop", queue="critical", priority=0)
    for _ in range(12):
        await bench.job(bulk, in_seconds=1.5)
    await bench.start_worker(concurrency="4")
    execution_id = await bench.job(critical, in_seconds=1.8)

    execution = await bench.ended(execution_id)

    assert execution.status is Status.COMPLETED
    assert gate.most_inside == 2
    leased = "SELECT count(*) FROM onthedot.executions WHERE queue = 'bulk' AND worker_id IS NOT NULL"
    assert await bench.pool.fetchval(leased) == 2, "nobody leases ahead what it has no slot for"
    gate.open()


async def test_what_fires_into_a_full_pool_takes_no_reserved_slot(bench: Bench, gate: Gate) -> None:
    """However urgent it is, and however many of it wait for a slot: critical's are critical's."""
    bulk = await bench.task("python:hold", queue="bulk", priority=0)
    critical = await bench.task("builtin:noop", queue="critical", priority=3)
    ahead = [await bench.job(bulk, in_seconds=1.8) for _ in range(2)]
    await bench.start_worker(concurrency="4")
    for execution_id in ahead:
        await bench.in_status(execution_id, "SCHEDULED")
    for _ in range(2):
        await bench.job(bulk)
    await gate.holds(2)
    for execution_id in ahead:
        await bench.in_status(execution_id, "RUNNING")

    in_time = await bench.job(critical, in_seconds=1.0)
    assert (await bench.ended(await bench.job(critical))).status is Status.COMPLETED
    assert (await bench.ended(in_time)).status is Status.COMPLETED

    assert gate.most_inside == 2
    gate.open()
    for execution_id in ahead:
        assert (await bench.ended(execution_id)).status is Status.COMPLETED


async def test_interruptible_work_yields_and_runs_again(bench: Bench, once_held: list[UUID]) -> None:
    upkeep = await bench.task("python:hold_once", queue="maintenance", priority=3, **NO_ATTEMPT_TO_SPARE)
    yielding = await bench.job(upkeep)
    await bench.start_worker(concurrency="1")
    await eventually(lambda: _soon(once_held == [yielding]))

    urgent = await bench.ended(await bench.job(await bench.task("builtin:noop")))
    execution = await bench.ended(yielding)

    assert urgent.status is Status.COMPLETED
    assert execution.status is Status.COMPLETED
    assert execution.error is None
    assert (execution.attempt_number, execution.max_attempts) == (2, 2)
    assert await outcomes(bench, yielding) == ["interrupted", "completed"]


async def test_an_instant_that_comes_interrupts_too(bench: Bench, once_held: list[UUID]) -> None:
    upkeep = await bench.task("python:hold_once", queue="maintenance", priority=3)
    yielding = await bench.job(upkeep)
    await bench.start_worker(concurrency="1")
    await eventually(lambda: _soon(once_held == [yielding]))

    urgent = await bench.ended(await bench.job(await bench.task("builtin:noop"), in_seconds=1.5))

    assert urgent.status is Status.COMPLETED
    assert (await bench.ended(yielding)).status is Status.COMPLETED
    assert await outcomes(bench, yielding) == ["interrupted", "completed"]


async def test_one_yields_for_each_that_waits_the_youngest_of_the_less_urgent(
    bench: Bench, gate: Gate, once_held: list[UUID]
) -> None:
    upkeep = await bench.task("python:hold_once", queue="maintenance", priority=3)
    as_urgent = await bench.task("python:hold", queue="maintenance", priority=2)
    general = await bench.task("builtin:noop", queue="general", priority=2)
    kept = await bench.job(as_urgent)
    for _ in range(2):
        await bench.job(upkeep)
    await bench.start_worker(concurrency="3", grace_seconds="0", queues="maintenance,general")
    await gate.holds(1)
    await eventually(lambda: _soon(len(once_held) == 2))
    older, younger = once_held

    assert (await bench.ended(await bench.job(general))).status is Status.COMPLETED
    assert (await bench.ended(younger)).status is Status.COMPLETED

    assert await outcomes(bench, younger) == ["interrupted", "completed"]
    assert await outcomes(bench, older) == [None]
    gate.open()
    await bench.ended(kept)
    assert await outcomes(bench, kept) == ["completed"]


async def test_a_function_in_a_thread_is_left_alone(bench: Bench, register: Register, gate: Gate) -> None:
    release, was_asked = threading.Event(), threading.Event()

    def stubborn(ctx: Context) -> None:
        release.wait()
        if ctx.cancelled:
            was_asked.set()

    register["stubborn"] = stubborn
    bench.stack.callback(release.set)
    in_thread = await bench.job(await bench.task("python:stubborn", queue="maintenance", priority=3))
    in_loop = await bench.job(
        await bench.task("python:hold", task_id="upkeep", queue="maintenance", priority=3)
    )
    await bench.start_worker(concurrency="2", queues="maintenance,general")
    await gate.holds(1)
    await bench.in_status(in_thread, "RUNNING")
    general = await bench.task("python:hold", priority=2)

    first, second = await bench.job(general), await bench.job(general)
    await eventually(lambda: _soon(first in gate.inside or second in gate.inside))
    waits = second if first in gate.inside else first
    release.set()
    await bench.ended(in_thread)
    gate.open()

    assert not was_asked.is_set()
    assert await outcomes(bench, in_thread) == ["completed"]
    thread, late = await bench.ended(in_thread), await bench.ended(waits)
    assert thread.completed_at is not None
    assert late.claimed_at is not None
    assert late.claimed_at >= thread.completed_at, "it was claimed when there was a slot for it, not before"
    assert (await bench.ended(in_loop)).status is Status.COMPLETED


async def test_a_cancel_goes_before_an_interruption() -> None:
    attempt = attempt_of(claim("maintenance", 3))
    attempt.end(Stop.INTERRUPTED)
    attempt.end(Stop.CANCELLED)
    attempt.end(Stop.INTERRUPTED)

    assert attempt.stop is Stop.CANCELLED


async def test_only_less_urgent_work_yields_that_has_run_for_a_while_and_can_be_stopped() -> None:
    yielding = Yielding(least_run_seconds=0.0)
    older, younger, in_thread, ended = (attempt_of(claim("maintenance", 3)) for _ in range(4))
    urgent = attempt_of(claim("maintenance", 1))
    in_thread.in_thread = True
    for attempt in (older, younger, in_thread, ended, urgent):
        yielding.began(attempt)
    yielding.ended(ended)

    assert yielding.willing(2) == [younger, older]
    assert yielding.willing(0) == [urgent, younger, older]
    assert yielding.willing(3) == []
    yielding.interrupt(younger)
    assert yielding.willing(2) == [older]
    assert yielding.stopping() == 1
    yielding.ended(younger)
    assert yielding.stopping() == 0


async def test_what_has_just_begun_does_not_yield() -> None:
    yielding = Yielding(least_run_seconds=3600.0)
    yielding.began(attempt_of(claim("maintenance", 3)))

    assert yielding
    assert yielding.willing(0) == []
