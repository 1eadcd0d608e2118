"""The lookout wakes whoever has something to do, and nobody else."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from app.db.pools import Pool, open_pool
from app.db.stores.work_to_do import WorkToDo
from app.domain.ids import new_job_id, shard_of
from app.domain.statuses import Status
from app.maintenance.lookout import Lookout
from tests.factories import insert, make_execution, make_job, make_task, now_of

Make = Callable[[Pool], Awaitable[Any]]


@pytest.fixture
async def sessions(dsn: str) -> AsyncIterator[Pool]:
    """Return sessions as the lookout has them."""
    async with await open_pool(dsn, size=1, application_name="lookout", by_index_only=True) as own:
        yield own


async def _jobs(pool: Pool, **columns: str) -> None:
    """Make a job, the given columns of which are SQL expressions."""
    job_id = await make_job(pool)
    given = ", ".join(f"{name} = {value}" for name, value in ({"materialize_at": "NULL"} | columns).items())
    await pool.execute(f"UPDATE onthedot.jobs SET {given} WHERE job_id = $1", job_id)  # noqa: S608 - ours


async def _with_deadline(pool: Pool) -> None:
    await make_execution(pool, expires_at=await now_of(pool), due_in_seconds=-60)


async def _that_counts(pool: Pool) -> None:
    row = {"key": "user:ada", "execution_id": uuid4(), "shard": 1, "lease_epoch": 1}
    await insert(pool, "limit_holders", [row])


async def _quota(pool: Pool) -> None:
    ada = {"user_id": "ada", "name": "ada", "role": "operator"}
    await insert(pool, "users", [ada])
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 1")


async def _paused_queue(pool: Pool) -> None:
    await pool.execute("UPDATE onthedot.queues SET paused_at = now(), paused_until = now()")


async def _suspect(pool: Pool) -> None:
    await make_execution(pool, status=Status.RETRYING, worker_deaths=2, attempt_number=2, due_in_seconds=-1)


WORK: dict[str, tuple[Make, str]] = {
    "a schedule to be planned": (lambda pool: _jobs(pool, materialize_at="now()"), "materializer"),
    "a start deadline": (_with_deadline, "expirer"),
    "what counts against a limit": (_that_counts, "limits"),
    "a new limit": (_quota, "limits"),
    "one that waits for other jobs and is due soon": (
        lambda pool: make_execution(pool, status=Status.BLOCKED, due_in_seconds=5),
        "dependencies",
    ),
    "a job's pause that is over": (
        lambda pool: _jobs(pool, is_active="false", pause_reason="''", paused_until="now()"),
        "resumer",
    ),
    "a queue's pause that is over": (_paused_queue, "resumer"),
    "a suspect": (_suspect, "suspects"),
}
NO_WORK: dict[str, Make] = {
    "a schedule that is planned": lambda pool: _jobs(pool, materialize_at="now() + interval '1 min'"),
    "work for workers": lambda pool: make_execution(pool, due_in_seconds=-1),
    "one that waits for other jobs, for long": lambda pool: make_execution(
        pool, status=Status.BLOCKED, due_in_seconds=60
    ),
    "a pause": lambda pool: _jobs(
        pool, is_active="false", pause_reason="''", paused_until="now() + interval '1 min'"
    ),
    "a suspect that is to be tried later": lambda pool: make_execution(
        pool, status=Status.RETRYING, worker_deaths=2, attempt_number=2, due_in_seconds=60
    ),
}


@pytest.mark.parametrize("what", WORK)
async def test_it_wakes_whoever_has_something_to_do(pool: Pool, sessions: Pool, what: str) -> None:
    make, name = WORK[what]
    await make_task(pool)
    await make(pool)
    woken: list[str] = []
    names = ("materializer", "expirer", "limits", "dependencies", "workflows", "resumer", "suspects")
    wake = {each: lambda each=each: woken.append(each) for each in names}

    assert not await Lookout(WorkToDo(sessions), wake=wake).tick()
    assert woken == [name]


@pytest.mark.parametrize("what", NO_WORK)
async def test_what_is_not_due_wakes_nobody(pool: Pool, sessions: Pool, what: str) -> None:
    await make_task(pool)
    await NO_WORK[what](pool)

    assert await WorkToDo(sessions).look() == set()


async def test_a_run_of_a_workflow_is_work_until_it_ends(pool: Pool, sessions: Pool) -> None:
    job_id, now = new_job_id(0), await now_of(pool)
    run = {"workflow_run_id": uuid4(), "workflow_id": job_id, "shard": shard_of(job_id), "version": 1}
    rest = {"user_id": "ada", "trigger": "manual", "scheduled_time": now, "parameters": "{}"}
    await insert(pool, "workflow_runs", [run | rest])
    assert await WorkToDo(sessions).look() == {"workflows"}

    await pool.execute("UPDATE onthedot.workflow_runs SET status = 'COMPLETED', completed_at = now()")
    assert await WorkToDo(sessions).look() == set()
