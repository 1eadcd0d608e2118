"""A worker beside limits: what it begins, what it leaves, and that it comes back for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import pytest

from app.db.stores.effects import HandlerTransaction
from app.db.stores.executions import Settlement
from app.db.stores.limits import LimitStore
from app.domain.ids import new_job_id
from app.domain.statuses import Status
from app.loop import Loop
from app.maintenance.limits import LimitKeeper
from app.tasks import Context
from app.worker.pace import Pace
from tests.factories import make_executions
from tests.polling import eventually
from tests.worker.conftest import Bench


class Crowd:
    """A handler that counts how many of it run at once. The first ones stay until as many run as may."""

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._is_full = asyncio.Event()
        self.running = 0
        self.most = 0

    async def run(self, _context: Context) -> None:
        """Run for a moment."""
        self.running += 1
        self.most = max(self.most, self.running)
        if self.running >= self._allowed:
            self._is_full.set()
        await self._is_full.wait()
        await asyncio.sleep(0.01)  # for others to come, if they could
        self.running -= 1


async def all_ended(bench: Bench) -> bool:
    """Tell whether nothing is left, and nothing counts any more."""
    live = await bench.pool.fetchval("SELECT count(*) FROM onthedot.executions")
    held = await bench.pool.fetchval("SELECT count(*) FROM onthedot.limit_holders")
    return (live, held) == (0, 0)


async def test_of_one_key_two_workers_run_one_at_a_time_and_all_in_the_end(bench: Bench) -> None:
    crowd = Crowd(1)
    bench.functions["crowd"] = crowd.run
    task = await bench.task("python:crowd", concurrency_key="tenant:{{parameters.tenant}}")
    for _ in range(2):
        await bench.start_worker()
    for _ in range(8):
        await bench.job(task, parameters={"tenant": "acme"})
    await eventually(lambda: all_ended(bench))

    assert crowd.most == 1


async def test_a_queue_runs_as_many_as_it_says(bench: Bench) -> None:
    crowd = Crowd(3)
    bench.functions["crowd"] = crowd.run
    await bench.pool.execute("UPDATE onthedot.queues SET max_concurrency = 3 WHERE queue = 'general'")
    task = await bench.task("python:crowd")
    for _ in range(12):
        await bench.job(task)
    await bench.start_worker()
    await eventually(lambda: all_ended(bench))

    assert crowd.most == 3


async def test_what_is_due_later_begins_on_its_instant_though_nothing_leases_it_ahead(bench: Bench) -> None:
    task = await bench.task("builtin:noop", concurrency=5)
    await bench.start_worker()
    made = [await bench.job(task, in_seconds=0.3 + 0.1 * i) for i in range(3)]
    ended = [await bench.ended(one) for one in made]

    assert [one.status for one in ended] == [Status.COMPLETED] * 3
    assert all(one.lateness_ms is not None and 0 <= one.lateness_ms < 500 for one in ended)


async def test_ten_of_one_user_do_not_wait_behind_a_thousand_of_another(bench: Bench) -> None:
    order: list[str] = []

    async def note(context: Context) -> None:
        order.append(context.parameters["of"])
        await asyncio.sleep(0.002)

    bench.functions["note"] = note
    task = await bench.task("python:note")
    row = {"task_id": task, "job_id": new_job_id(0), "due_in_seconds": -60.0, "parameters": '{"of": "ada"}'}
    await make_executions(bench.pool, [row | {"run_key": f"a{i}"} for i in range(1000)])
    late = row | {"user_id": "bob", "due_in_seconds": -2.0, "parameters": '{"of": "bob"}'}
    await make_executions(bench.pool, [late | {"run_key": f"b{i}"} for i in range(10)])
    await bench.start_worker(concurrency="4")
    await eventually(lambda: all_ended(bench))

    assert max(i for i, of in enumerate(order) if of == "bob") < 200


async def test_the_next_one_of_a_job_has_what_runs_stopped(bench: Bench) -> None:
    stopped: list[UUID] = []

    async def wait(context: Context) -> None:
        if context.parameters == {}:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                stopped.append(context.execution_id)
                raise

    bench.functions["wait"] = wait
    task = await bench.task("python:wait")
    first = await bench.job(task, overlap="cancel_running")
    await bench.start_worker()
    job_id = (await bench.in_status(first, "RUNNING")).job_id
    row = {"task_id": task, "job_id": job_id, "limited": True, "overlap": "cancel_running", "user_id": "t"}
    (second,) = await make_executions(bench.pool, [row | {"parameters": '{"short": true}'}])

    assert (await bench.ended(second)).status == Status.COMPLETED
    assert (await bench.ended(first)).status == Status.CANCELLED
    assert stopped == [first]


async def test_work_for_other_labels_is_left_alone_and_does_not_stand_in_the_way(bench: Bench) -> None:
    gpu = await bench.task("builtin:echo", labels='{"gpu": "a100"}')
    plain = await bench.task("builtin:noop", cpu_cores=0.5)
    waiting = [await bench.job(gpu) for _ in range(3)]
    await bench.start_worker(labels="region=eu")
    assert (await bench.ended(await bench.job(plain))).status == Status.COMPLETED
    for one in waiting:
        await bench.in_status(one, "PENDING")

    await bench.start_worker(labels="region=eu,gpu=a100")
    assert [(await bench.ended(one)).status for one in waiting] == [Status.COMPLETED] * 3


async def test_cores_are_not_given_twice_to_workers_of_one_host(bench: Bench) -> None:
    crowd = Crowd(2)
    bench.functions["crowd"] = crowd.run
    task = await bench.task("python:crowd", cpu_cores=2.0, memory_mb=100)
    for _ in range(2):
        await bench.start_worker(cpu_cores="4.5", memory_mb="1000")
    for _ in range(8):
        await bench.job(task)
    await eventually(lambda: all_ended(bench))

    assert crowd.most == 2


async def test_what_it_waits_for_a_limit_is_no_lateness(bench: Bench) -> None:
    task = await bench.task("builtin:sleep", concurrency=1)
    await bench.start_worker()
    first = await bench.job(task, parameters={"seconds": 2.0})
    await bench.in_status(first, "RUNNING")
    second = await bench.ended(await bench.job(task, parameters={"seconds": 0}))
    unlimited = await bench.ended(first)

    assert second.started_at is not None
    assert second.throttled_ms is not None
    assert second.lateness_ms is not None
    waited_ms = (second.started_at - second.due_at).total_seconds() * 1000
    assert second.throttled_ms > 300  # of two seconds, less one until it was looked for without a hint
    assert abs(second.lateness_ms + second.throttled_ms - waited_ms) < 1
    assert unlimited.throttled_ms == 0


SELL = "INSERT INTO shop VALUES ('apple')"


def _lose_the_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every commit succeed, and nobody hear of it."""
    commit = HandlerTransaction.commit_with

    async def commit_with(self: HandlerTransaction, row: Settlement) -> bool:
        await commit(self, row)
        raise ConnectionResetError

    monkeypatch.setattr(HandlerTransaction, "commit_with", commit_with)


@pytest.mark.parametrize(
    ("times", "lose", "status"),
    [(1, False, Status.COMPLETED), (1, True, Status.COMPLETED), (2, False, Status.FAILED)],
    ids=["committed", "the reply is lost", "rolled back"],
)
async def test_what_commits_with_its_completion_leaves_its_place_to_the_next_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, times: int, lose: bool, status: Status
) -> None:
    """By the worker itself: nobody sweeps here."""
    crowd = Crowd(1)

    async def sell(ctx: Context) -> None:
        await crowd.run(ctx)
        async with ctx.transaction() as connection:
            await connection.execute("DELETE FROM shop")
            for _ in range(times):
                await connection.execute(SELL)  # twice is refused at the commit

    if lose:
        _lose_the_reply(monkeypatch)
    bench.functions["sell"] = sell
    await bench.pool.execute("CREATE TABLE shop (item text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
    task = await bench.task("python:sell", concurrency_key="till", max_retries=1, retry_delay_seconds=0.01)
    for _ in range(2):
        await bench.start_worker()
    made = [await bench.job(task) for _ in range(4)]

    assert [(await bench.ended(one)).status for one in made] == [status] * 4
    await eventually(lambda: all_ended(bench))
    assert crowd.most == 1


async def test_a_worker_that_stops_gives_back_the_places_of_what_it_has_not_begun(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: while it drains, with leases of half a minute, and nobody who sweeps."""
    monkeypatch.setattr(Pace, "prefetch", lambda _: 5)
    begun, may_end = list[UUID](), asyncio.Event()

    async def hold(context: Context) -> None:
        begun.append(context.execution_id)
        await may_end.wait()

    bench.functions["hold"] = hold
    task = await bench.task("python:hold", concurrency=3)
    leaving = await bench.start_worker(concurrency="1")
    for _ in range(4):
        await bench.job(task)

    async def has_claimed_all_it_may() -> bool:
        held: int = await bench.pool.fetchval("SELECT count(*) FROM onthedot.limit_holders")
        return held == 3

    await eventually(has_claimed_all_it_may)
    assert len(begun) == 1
    await bench.start_worker(concurrency="3")
    stopping = asyncio.create_task(leaving.stop())
    await eventually(lambda: _is(lambda: len(begun) == 3))
    assert not stopping.done()

    may_end.set()
    await stopping
    await eventually(lambda: all_ended(bench))
    assert len(set(begun)) == 4 == len(begun)


class Hall:
    """Executions that run until they are let go."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._limits = LimitStore(bench.pool)
        self._leaving = asyncio.Semaphore(0)
        self.begun = 0
        self.running = 0

    async def run(self, _context: Context) -> None:
        """Run until somebody is to leave."""
        self.begun += 1
        self.running += 1
        await self._leaving.acquire()
        self.running -= 1

    def let_go(self, count: int) -> None:
        """Have so many end."""
        for _ in range(count):
            self._leaving.release()

    async def becomes(self, *, running: int, begun: int) -> None:
        """Wait until so many run and have begun, and what counts is what runs."""

        async def is_so() -> bool:
            await (
                self._limits.sweep()
            )  # as maintenance does: what began before there was a limit is freed by it alone
            return (self.running, self.begun) == (running, begun)

        await eventually(is_so)

    async def set_quota(self, most: int | None) -> None:
        """Set how many may run, as the API does."""
        await self._bench.pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = $1", most)
        await self._limits.apply_new(within_seconds=5)

    async def set_paused(self, *, paused: bool) -> None:
        """Pause the queue, or resume it."""
        await self._bench.pool.execute(
            "UPDATE onthedot.queues SET paused_at = CASE WHEN $1 THEN now() END WHERE queue = 'general'",
            paused,
        )


@pytest.fixture
async def _keeping(bench: Bench) -> AsyncIterator[None]:
    """Keep limits true, as maintenance does: it frees what began before there was a limit."""
    loop = Loop("limits", LimitKeeper(LimitStore(bench.pool)).tick, interval_seconds=0.1)
    loop.start()
    yield
    await loop.stop()


async def _is(holds: Callable[[], Any]) -> bool:
    return bool(holds())


@pytest.mark.usefixtures("_keeping")
async def test_a_limit_that_changes_while_work_runs_holds_at_once_and_nothing_stands_still(
    bench: Bench,
) -> None:
    hall = Hall(bench)
    bench.functions["hall"] = hall.run
    task = await bench.task("python:hall")
    other = await bench.task("builtin:noop", queue="critical")
    for _ in range(2):
        await bench.start_worker()
    for _ in range(3):
        await bench.job(task)
    await hall.becomes(running=3, begun=3)
    await hall.set_quota(2)  # below what runs
    for _ in range(20):
        await bench.job(task)
    hall.let_go(1)
    await hall.becomes(running=2, begun=3)
    hall.let_go(1)
    await hall.becomes(running=2, begun=4)
    await hall.set_quota(5)
    await hall.becomes(running=5, begun=7)
    await hall.set_quota(1)
    hall.let_go(4)
    await hall.becomes(running=1, begun=7)
    await hall.set_paused(paused=True)
    hall.let_go(1)
    await hall.becomes(running=0, begun=7)
    for _ in range(3):  # meanwhile the workers look around
        await bench.ended(await bench.job(other))
    await hall.becomes(running=0, begun=7)
    await hall.set_paused(paused=False)
    await hall.becomes(running=1, begun=8)
    await hall.set_quota(None)
    await hall.becomes(running=16, begun=23)
    hall.let_go(16)
    await eventually(lambda: all_ended(bench))
