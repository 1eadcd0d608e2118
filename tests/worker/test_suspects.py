"""What has ended two workers runs alone, one at a time, and nobody keeps a process for what is not there."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from app.child_process import ChildProcess
from app.db.pools import Pool
from app.db.stores.admissions import AdmissionStore, Claimant
from app.domain.admission import Host
from app.domain.statuses import Status
from app.tasks import Context, Handler
from app.worker.suspect_keeper import MOST_PROCESSES, SuspectKeeper
from tests.factories import make_execution, make_task
from tests.polling import eventually
from tests.worker.conftest import Bench

SUSPECT = {"status": Status.RETRYING, "attempt_number": 2, "worker_deaths": 2}
RUNNING = "SELECT count(*) FROM onthedot.executions WHERE status = 'RUNNING'"
STAND_IN = "import os, time; os.write(int(os.environ['LINE']), b'x' if READY else b''); time.sleep(600)"
"""A process that says that it is ready, or does not, and claims nothing."""


def counter(pool: Pool) -> Handler:
    """Return a handler that returns how many executions run while it does."""

    async def work(ctx: Context) -> int:
        del ctx
        running: int = await pool.fetchval(RUNNING)
        return running

    return work


async def test_suspects_run_one_after_the_other_and_others_do_not(
    bench: Bench, pool: Pool, register: dict[str, Handler]
) -> None:
    register["work"] = counter(pool)
    task_id = await bench.task("python:work")
    suspects = [await bench.job(task_id) for _ in range(5)]
    await pool.execute(
        "UPDATE onthedot.executions SET status = 'RETRYING', attempt_number = 2, worker_deaths = 2"
    )
    other = await bench.job(task_id)

    await bench.start_worker(alone=True, concurrency="1")

    ended = [await bench.ended(execution_id) for execution_id in suspects]
    assert {(each.status, each.attempt_number, each.worker_deaths) for each in ended} == {
        (Status.COMPLETED, 3, 2)
    }
    # Each has seen itself only: the one before was not only done, but recorded.
    assert {each.result for each in ended} == {1}
    assert (await bench.in_status(other, Status.PENDING)).attempt_number == 0


async def test_suspects_of_one_key_run_one_at_a_time_wherever_they_run(
    bench: Bench, pool: Pool, register: dict[str, Handler]
) -> None:
    """Also beside what is no suspect."""

    register["work"] = counter(pool)
    task_id = await bench.task("python:work", concurrency_key="one")
    suspects = [await bench.job(task_id) for _ in range(4)]
    await pool.execute(
        "UPDATE onthedot.executions SET status = 'RETRYING', attempt_number = 2, worker_deaths = 2"
    )
    others = [await bench.job(task_id) for _ in range(3)]
    for alone in (True, True, False):
        await bench.start_worker(alone=alone)

    ended = [await bench.ended(execution_id) for execution_id in suspects + others]
    assert [each.status for each in ended] == [Status.COMPLETED] * 7
    assert {each.result for each in ended} == {1}


class Keeping:
    """A keeper whose processes are stand-ins."""

    def __init__(self, pool: Pool, *, are_ready: bool, hears: bool) -> None:
        self.processes: list[ChildProcess] = []
        self.is_draining = False
        program = STAND_IN.replace("READY", str(are_ready))
        command = [sys.executable, "-c", program]

        def make() -> ChildProcess:
            environment = lambda line: {**os.environ, "LINE": str(line)}  # noqa: E731
            self.processes.append(ChildProcess("stand-in", command, environment=environment, until_done=True))
            return self.processes[-1]

        self.keeper = SuspectKeeper(
            admissions=AdmissionStore(pool, Claimant(uuid4(), Host("ant", 4.0, 4096), "{}")),
            queues=("general",),
            make_process=make,
            is_draining=lambda: self.is_draining,
            hears=lambda: hears,
            poll_seconds=1,
            patience_seconds=10,
            hurry=asyncio.Event(),
        )

    async def look(self, *, times: int = 1) -> int:
        """Let it look so many times; return how many processes there are."""
        for _ in range(times):
            assert not await self.keeper.tick()
        return len(self.processes)

    async def are_ready(self) -> bool:
        """Tell whether all of its processes are ready."""
        return all(process.is_ready for process in self.processes)


Keep = Callable[..., Keeping]


@pytest.fixture
async def keep(pool: Pool) -> AsyncIterator[Keep]:
    async with AsyncExitStack() as stack:

        def make(*, are_ready: bool = True, hears: bool = False) -> Keeping:
            keeping = Keeping(pool, are_ready=are_ready, hears=hears)
            stack.push_async_callback(keeping.keeper.stop)
            return keeping

        yield make


async def test_there_is_no_process_while_no_suspect_is_due_in_its_queues(keep: Keep, pool: Pool) -> None:
    keeping = keep()
    await make_execution(pool, status=Status.RETRYING, worker_deaths=1, due_in_seconds=-1)
    await make_execution(pool, **SUSPECT, due_in_seconds=600)
    await make_execution(pool, **SUSPECT, queue="bulk", due_in_seconds=-1)
    await make_task(pool, "train", labels='{"gpu": "a100"}')
    await make_execution(pool, **SUSPECT, task_id="train", limited=True, due_in_seconds=-1)

    assert await keeping.look(times=3) == 0

    await make_execution(pool, **SUSPECT, due_in_seconds=-1)
    assert await keeping.look() == 1


async def test_one_that_hears_looks_when_it_is_told(keep: Keep, pool: Pool) -> None:
    keeping = keep(hears=True)
    assert await keeping.look() == 0  # the first look, for what was due before it heard

    await make_execution(pool, **SUSPECT, due_in_seconds=-1)
    assert await keeping.look(times=3) == 0
    keeping.keeper.tell()
    assert await keeping.look() == 1
    await eventually(keeping.are_ready)
    assert await keeping.look() == 2  # it goes on looking while it finds some


async def test_one_that_is_on_its_way_is_waited_for(keep: Keep, pool: Pool) -> None:
    keeping = keep(are_ready=False)
    await make_execution(pool, **SUSPECT, due_in_seconds=-1)

    assert await keeping.look(times=3) == 1


async def test_others_begin_while_those_there_are_leave_some_and_not_without_end(
    keep: Keep, pool: Pool
) -> None:
    keeping = keep()
    await make_execution(pool, **SUSPECT, due_in_seconds=-1)

    for expected in (1, 2, 3, 4):
        assert await keeping.look(times=2) == expected
        await eventually(keeping.are_ready)
    assert await keeping.look(times=3) == MOST_PROCESSES == 4


async def test_a_worker_that_drains_begins_none_and_ends_those_it_has(keep: Keep, pool: Pool) -> None:
    keeping = keep()
    await make_execution(pool, **SUSPECT, due_in_seconds=-1)
    await keeping.look()
    await eventually(keeping.are_ready)
    keeping.is_draining = True

    assert await keeping.look(times=2) == 1

    await keeping.processes[0].ended()
    assert keeping.processes[0].has_ended


async def test_they_end_with_their_worker(keep: Keep, pool: Pool) -> None:
    keeping = keep()
    await make_execution(pool, **SUSPECT, due_in_seconds=-1)
    await keeping.look()
    await eventually(keeping.are_ready)

    await keeping.keeper.stop()

    assert keeping.processes[0].has_ended
