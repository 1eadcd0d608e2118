"""Joins: two workers end the last two steps before one at the same moment, and it begins once, every time."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.pools import Pool, open_pool
from app.db.stores.dependencies import require_no_circle
from app.db.stores.executions import ExecutionStore, Settlement
from app.db.stores.job_control import JobControl
from app.db.stores.workflows.definitions import DefinitionStore
from app.db.stores.workflows.runs import FIRST, RunStore
from app.domain.access import Actor
from app.domain.claims import Claim
from app.domain.errors import InvalidInput
from app.domain.hints import Ready
from app.domain.ids import shard_of
from app.domain.job_changes import Change
from app.worker.marks import START
from app.worker.steps import StepKeeper
from tests.factories import begin_run, make_job, make_task, make_workflow

ROUNDS = 100
JOINS = "SELECT count(*), count(DISTINCT run_key) FROM onthedot.executions WHERE run_key LIKE 'w:%/join/%'"
STEPS = ({"key": "left"}, {"key": "right"}, {"key": "join", "depends_on": ["left", "right"]})


class Worker:
    """What a worker does when an execution ends."""

    def __init__(self, pool: Pool, clock: DatabaseClock) -> None:
        self.executions = ExecutionStore(pool)
        self.runs = RunStore(pool, DefinitionStore(), clock)
        self.keeper = StepKeeper(self.runs, HintSender(pool), take=lambda _: True)

    async def end(self, claim: Claim, *, pause: Callable[[], Awaitable[None]], dies: bool = False) -> None:
        """Write down that an execution has completed, and have what follows begin; or die between the two."""
        settlement = Settlement(claim, "COMPLETED", "ran", claim.claimed_at, claim.claimed_at, 0.0)
        assert await self.executions.settle([settlement])
        if not dies:
            await pause()
            self.keeper.note(claim)
            while self.keeper.waiting:
                await self.keeper.tick()


async def workflow(pool: Pool) -> UUID:
    await make_task(pool)
    await pool.execute("INSERT INTO onthedot.users (user_id, name, role) VALUES ('ada', 'Ada', 'operator')")
    job = await make_workflow(
        pool, *STEPS, schedule={"type": "ONCE", "scheduled_time": "2999-01-01T00:00:00Z"}
    )
    return job.job_id


async def claims_of(pool: Pool, clock: DatabaseClock, workflow_id: UUID) -> list[Claim]:
    """Begin a run; return the claims of its first two steps."""
    await begin_run(pool, clock, workflow_id)
    place = Ready(shard_of(workflow_id), "general", 2, clock.now())
    claims = await ExecutionStore(pool).claim_due(
        place, limit=10, worker_id=UUID(int=1), lease_seconds=60, mark=START
    )
    assert len(claims) == 2
    return claims


async def test_both_ends_at_once_begin_the_join_once(dsn: str, pool: Pool, clock: DatabaseClock) -> None:
    """By pauses the two do what they do in another order each time: neither leaves it to the other."""
    workflow_id = await workflow(pool)

    async def pause() -> None:
        await asyncio.sleep(random.choice((0.0, 0.0, 0.002, 0.01)))  # noqa: S311

    async with await open_pool(dsn, size=3, application_name="another worker") as others:
        left, right = Worker(pool, clock), Worker(others, clock)
        for _ in range(ROUNDS):
            one, other = await claims_of(pool, clock, workflow_id)
            await asyncio.gather(left.end(one, pause=pause), right.end(other, pause=pause))
            joins = await pool.fetchrow(JOINS)
            assert joins is not None
            assert tuple(joins) == (1, 1)
            await pool.execute("DELETE FROM onthedot.executions WHERE run_key LIKE 'w:%/join/%'")


@pytest.mark.parametrize("dies", ["the first", "the second", "both"])
async def test_whoever_dies_before_the_run_is_told_the_join_begins(
    pool: Pool, clock: DatabaseClock, dies: str
) -> None:
    workflow_id = await workflow(pool)
    worker = Worker(pool, clock)
    one, other = await claims_of(pool, clock, workflow_id)

    await worker.end(one, pause=lambda: asyncio.sleep(0), dies=dies != "the second")
    await worker.end(other, pause=lambda: asyncio.sleep(0), dies=dies != "the first")
    stalled = await worker.runs.stalled(FIRST, limit=100)
    await worker.runs.carry_on(stalled.steps)

    joins = await pool.fetchrow(JOINS)
    assert joins is not None
    assert tuple(joins) == (1, 1)
    assert not (await worker.runs.stalled(FIRST, limit=100)).steps


async def test_telling_a_run_twice_begins_nothing_twice(pool: Pool, clock: DatabaseClock) -> None:
    workflow_id = await workflow(pool)
    worker = Worker(pool, clock)
    for claim in await claims_of(pool, clock, workflow_id):
        await worker.end(claim, pause=lambda: asyncio.sleep(0))
        worker.keeper.note(claim)

    while worker.keeper.waiting:
        await worker.keeper.tick()

    joins = await pool.fetchrow(JOINS)
    assert joins is not None
    assert tuple(joins) == (1, 1)


async def test_two_halves_of_a_circle_do_not_pass_at_the_same_time(dsn: str, pool: Pool) -> None:
    """Each change alone would be fine: the second one is told of the first."""
    one, other = await make_job(pool), await make_job(pool)
    async with await open_pool(dsn, size=2, application_name="another request") as others:
        first, second = (JobControl(each, horizon_seconds=60) for each in (pool, others))
        answers = await asyncio.gather(
            first.change(one, Change({"depends_on": [other]}), if_version=None, actor=Actor("user:ada")),
            second.change(other, Change({"depends_on": [one]}), if_version=None, actor=Actor("user:ada")),
            return_exceptions=True,
        )

    assert len([each for each in answers if isinstance(each, InvalidInput)]) == 1, answers


async def test_a_ring_of_fifty_is_refused_with_the_way_around(pool: Pool) -> None:
    ring = [await make_job(pool)]
    for _ in range(49):
        ring.append(await make_job(pool, depends_on=[ring[-1]]))

    async with pool.acquire() as connection, connection.transaction():
        with pytest.raises(InvalidInput) as error:
            await require_no_circle(connection, ring[0], [ring[-1]])  # type: ignore[arg-type]  # the pool's own

    assert error.value.detail.count("→") == 50
