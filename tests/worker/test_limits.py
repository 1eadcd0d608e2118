"""A worker beside limits: what it begins, what it leaves, and that it comes back for it."""

import asyncio
from uuid import UUID

from app.domain.ids import new_job_id
from app.domain.statuses import Status
from app.tasks import Context
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
