"""Unique keys hold whatever asks at the same time, in whatever process: one job, replaced until it has begun."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from app.db.clock import DatabaseClock
from app.db.pools import Pool, connect, open_pool
from app.db.stores.executions import ExecutionStore, Settlement
from app.db.stores.job_control import JobControl
from app.db.stores.jobs import NewBatch, Stored, Submission
from app.db.stores.retention import RetentionStore
from app.db.stores.unique_jobs import NotAsChecked, UniqueJobStore
from app.db.stores.unique_keys import KeyBusy
from app.domain.access import Actor
from app.domain.errors import InvalidInput
from app.domain.hints import Ready
from app.domain.job_changes import Change, pause
from app.domain.jobs import NewJob
from app.domain.unique import scope_hash
from app.intake.group_commit import GroupCommit
from app.worker.marks import START
from tests.factories import make_task, new_job, now_of

ADA = Actor("user:ada")
LATER = {"type": "ONCE", "scheduled_time": "2999-01-01T00:00:00Z"}


@pytest.fixture(autouse=True)
async def people(pool: Pool) -> None:
    """Make ada and bob, and two tasks."""
    await make_task(pool)
    await make_task(pool, "other")
    await pool.execute(
        "INSERT INTO onthedot.users (user_id, name, role) VALUES ('ada', 'ada', 'admin'), ('bob', 'bob', 'operator')"
    )


class Desk:
    """Makes jobs as the API does, and stores them."""

    def __init__(self, pool: Pool, clock: DatabaseClock) -> None:
        self.pool = pool
        self.clock = clock
        self.store = UniqueJobStore(pool)

    async def job(
        self, key: str | None = "k", *, user_id: str = "ada", task_id: str = "report", **fields: Any
    ) -> NewJob:
        """Return a job ready to be stored, for later unless said."""
        given = {"schedule": LATER, "unique_key": key} | fields
        return await new_job(self.pool, user_id=user_id, task_id=task_id, **given)

    async def ask(self, key: str | None = "k", **fields: Any) -> tuple[str, UUID]:
        """Ask for a job; return what became of that, and which job it is."""
        one = submission(await self.job(key, **fields))
        return outcome(one.jobs[0], await self.store.create([one]))


@pytest.fixture
def desk(pool: Pool, clock: DatabaseClock) -> Desk:
    """Return what stores jobs."""
    return Desk(pool, clock)


def submission(*jobs: NewJob) -> Submission:
    """Return what one request wants stored; several jobs are a batch."""
    new = NewBatch.of(jobs, batch_id=uuid4(), user_id="ada", created_at=jobs[0].created_at)
    batch = new if len(jobs) > 1 else None
    return Submission(jobs=list(jobs), actor=ADA, batch=batch)


def outcome(job: NewJob, stored: Stored) -> tuple[str, UUID]:
    """Return what became of a job that was asked for, and which one it is."""
    if job.job_id in stored.existing:
        found = stored.existing[job.job_id]
        return str(found.fate), found.job.job_id
    assert job.job_id in stored.lanes
    return "created", job.job_id


def fates(one: Submission, stored: Stored) -> list[str]:
    """Return what became of each job of a request."""
    return [outcome(job, stored)[0] for job in one.jobs]


async def begin(pool: Pool, job_id: UUID) -> None:
    """Have a worker claim a job's execution."""
    await pool.execute("UPDATE onthedot.executions SET due_at = now() WHERE job_id = $1", job_id)
    rows = await pool.fetch(
        "SELECT shard, queue, priority FROM onthedot.executions WHERE job_id = $1", job_id
    )
    place = Ready(*rows[0], START)
    claimed = await ExecutionStore(pool).claim_due(
        place, limit=1, worker_id=uuid4(), lease_seconds=30, mark=START
    )
    assert [claim.job_id for claim in claimed] == [job_id]


async def end(pool: Pool, job_id: UUID) -> None:
    """Have a job's execution run and end."""
    await pool.execute("UPDATE onthedot.executions SET due_at = now() WHERE job_id = $1", job_id)
    rows = await pool.fetch(
        "SELECT shard, queue, priority FROM onthedot.executions WHERE job_id = $1", job_id
    )
    store, now = ExecutionStore(pool), await now_of(pool)
    claims = await store.claim_due(
        Ready(*rows[0], START), limit=1, worker_id=uuid4(), lease_seconds=30, mark=START
    )
    await store.settle([Settlement(claims[0], "COMPLETED", "ran", now, now, 0.0)])


async def jobs_of(pool: Pool) -> int:
    """Return how many jobs there are."""
    count: int = await pool.fetchval("SELECT count(*) FROM onthedot.jobs")
    return count


@asynccontextmanager
async def processes(dsn: str, number: int) -> AsyncIterator[list[GroupCommit]]:
    """Give what commits jobs in so many API processes."""
    pools = [await open_pool(dsn, size=3, application_name=f"api {n}") for n in range(number)]
    try:
        yield [GroupCommit(UniqueJobStore(pool)) for pool in pools]
    finally:
        for pool in pools:
            await pool.close()


async def persist(commits: GroupCommit, one: Submission) -> Stored:
    """Submit one, again and again where a busy machine makes it wait for its key longer than a moment."""
    while True:
        with suppress(KeyBusy):
            return await commits.submit(one)


@pytest.mark.parametrize("policy", ["keep", "replace"])
async def test_of_many_at_once_in_two_processes_one_is_created(
    dsn: str, pool: Pool, desk: Desk, policy: str
) -> None:
    ones = [submission(await desk.job("k", unique_policy=policy, parameters={"n": n})) for n in range(40)]
    async with processes(dsn, 2) as (here, there):
        answers = await asyncio.gather(
            *(persist(here if n % 2 else there, one) for n, one in enumerate(ones))
        )

    found = [outcome(one.jobs[0], stored) for one, stored in zip(ones, answers, strict=True)]
    other = "exists" if policy == "keep" else "replaced"
    assert Counter(fate for fate, _ in found) == {"created": 1, other: 39}
    assert len({job_id for _, job_id in found}) == 1
    assert await jobs_of(pool) == 1
    same = "SELECT j.parameters = e.parameters FROM onthedot.jobs j JOIN onthedot.executions e USING (job_id)"
    assert await pool.fetchval(same)


async def test_batches_that_share_keys_in_any_order_create_each_once(
    dsn: str, pool: Pool, desk: Desk
) -> None:
    keys = [f"k{n}" for n in range(8)]

    async def batch(shift: int) -> Submission:
        return submission(*[await desk.job(key) for key in keys[shift:] + keys[:shift]])

    batches = [await batch(n % 8) for n in range(12)]
    async with processes(dsn, 2) as (here, there):
        answers = await asyncio.gather(
            *(persist(here if n % 2 else there, one) for n, one in enumerate(batches))
        )

    counted = Counter(
        fate for one, stored in zip(batches, answers, strict=True) for fate in fates(one, stored)
    )
    assert counted == {"created": 8, "exists": 88}
    assert await jobs_of(pool) == 8
    deadlocks = await pool.fetchval(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    assert deadlocks == 0


async def test_a_key_belongs_to_its_user_and_task(desk: Desk) -> None:
    asked: Iterable[dict[str, Any]] = ({}, {"user_id": "bob"}, {"task_id": "other"})
    made = [await desk.ask(**fields) for fields in asked]

    assert [fate for fate, _ in made] == ["created"] * 3
    assert len({job_id for _, job_id in made}) == 3
    assert await desk.ask(user_id="bob") == ("exists", made[1][1])


async def test_it_is_held_until_its_execution_has_ended(pool: Pool, desk: Desk) -> None:
    _, first = await desk.ask()
    await begin(pool, first)
    assert await desk.ask() == ("exists", first)
    await pool.execute("UPDATE onthedot.executions SET lease_expires_at = now() - interval '1 s'")
    await ExecutionStore(pool).reap((await pool.fetchval("SELECT shard FROM onthedot.jobs")), limit=5)
    assert await desk.ask() == ("exists", first)  # it waits for its next attempt
    await end(pool, first)

    fate, second = await desk.ask()
    assert fate == "created"
    assert await desk.ask() == ("exists", second)


async def test_for_a_time_it_is_held_whether_or_not_it_has_ended(pool: Pool, desk: Desk) -> None:
    _, first = await desk.ask(unique_for_seconds=3600)
    await end(pool, first)
    assert await desk.ask() == ("exists", first)
    await pool.execute("UPDATE onthedot.unique_keys SET expires_at = now()")

    fate, second = await desk.ask(unique_for_seconds=0.001)
    assert (fate, second != first) == ("created", True)
    assert (await desk.ask())[0] == "created"  # the first one's time is over, though it has not ended


async def test_a_job_that_is_gone_holds_nothing(pool: Pool, desk: Desk) -> None:
    _, first = await desk.ask(unique_for_seconds=3600)
    jobs = JobControl(pool, horizon_seconds=600)
    await jobs.delete(first, error='{"type": "x"}', actor=ADA)

    assert (await desk.ask())[0] == "created"


async def test_replacing_pushes_out_and_takes_back_from_a_worker(pool: Pool, desk: Desk) -> None:
    now = await now_of(pool)
    soon = {"type": "ONCE", "scheduled_time": (now + timedelta(seconds=40)).isoformat()}
    _, job_id = await desk.ask(schedule=soon, parameters={"n": 1}, queue="bulk")
    [row] = await pool.fetch("SELECT shard, queue, priority FROM onthedot.executions")
    ahead = await ExecutionStore(pool).claim_ahead(
        Ready(*row, START), limit=1, worker_id=uuid4(), lease_seconds=30, lookahead_seconds=60
    )
    assert len(ahead) == 1

    replaced = await desk.ask(
        unique_policy="replace", parameters={"n": 2}, priority=0, name="new", expires_after_seconds=60
    )

    assert replaced == ("replaced", job_id)
    planned = await pool.fetchrow("SELECT * FROM onthedot.executions")
    job = await pool.fetchrow("SELECT * FROM onthedot.jobs")
    assert planned is not None
    assert job is not None
    assert planned["scheduled_time"] == job["scheduled_time"] == planned["due_at"]
    assert f"{planned['due_at']:%Y}" == "2999"
    assert planned["expires_at"] == planned["due_at"] + timedelta(seconds=60)
    assert (planned["status"], planned["lease_epoch"], planned["parameters"]) == ("PENDING", 2, '{"n": 2}')
    assert (planned["queue"], planned["priority"]) == ("general", 0)
    assert (job["name"], job["version"], job["parameters"]) == ("new", 2, '{"n": 2}')
    assert await ExecutionStore(pool).arm(ahead) == {}
    actor = await pool.fetchval("SELECT actor FROM onthedot.audit_log WHERE action = 'job.update'")
    assert actor == "user:ada"


async def test_what_has_begun_is_left_alone_and_the_new_one_takes_the_key(pool: Pool, desk: Desk) -> None:
    _, first = await desk.ask()
    await begin(pool, first)

    fate, second = await desk.ask(unique_policy="replace")
    assert (fate, second != first) == ("created", True)
    assert await desk.ask(unique_policy="replace") == ("replaced", second)
    await end_of_lease(pool, first)
    assert await desk.ask() == ("exists", second)


async def end_of_lease(pool: Pool, job_id: UUID) -> None:
    """Take a job's execution away."""
    await pool.execute("DELETE FROM onthedot.executions WHERE job_id = $1", job_id)


async def test_a_claim_and_a_replacement_that_meet_never_lose_what_was_asked_for(
    pool: Pool, desk: Desk
) -> None:
    """Either the claim was first, and a new job has what was asked for last; or nothing was there to be claimed."""
    outcomes: Counter[str] = Counter()
    for n in range(12):
        _, job_id = await desk.ask(f"k{n}", schedule={"type": "IMMEDIATE"}, parameters={"n": 0})
        [row] = await pool.fetch(
            "SELECT shard, queue, priority FROM onthedot.executions WHERE job_id = $1", job_id
        )
        claims, (fate, replaced) = await asyncio.gather(
            ExecutionStore(pool).claim_due(
                Ready(*row, START), limit=5, worker_id=uuid4(), lease_seconds=30, mark=START
            ),
            desk.ask(f"k{n}", unique_policy="replace", parameters={"n": 1}),
        )
        outcomes[fate] += 1
        taken = [claim for claim in claims if claim.job_id == job_id]
        if fate == "created":
            assert [claim.parameters for claim in taken] == ['{"n": 0}']
        else:
            assert replaced == job_id
            assert taken == []
    assert outcomes.total() == 12


async def test_a_paused_job_that_is_replaced_stays_paused(pool: Pool, desk: Desk) -> None:
    _, job_id = await desk.ask()
    await JobControl(pool, horizon_seconds=600).change(
        job_id, pause(reason=None, until=None), if_version=None, actor=ADA
    )

    assert await desk.ask(unique_policy="replace") == ("replaced", job_id)
    assert await pool.fetchval("SELECT held FROM onthedot.executions")


async def test_equal_keys_within_one_batch_are_one_job(pool: Pool, desk: Desk) -> None:
    kept = submission(await desk.job(parameters={"n": 1}), await desk.job(parameters={"n": 2}),
                      await desk.job(None), await desk.job("l"))  # fmt: skip
    stored = await desk.store.create([kept])
    assert fates(kept, stored) == ["created", "exists", "created", "created"]
    assert stored.existing[kept.jobs[1].job_id].job.job_id == kept.jobs[0].job_id
    assert kept.batch is not None
    assert await pool.fetchval("SELECT total FROM onthedot.batches") == 3

    pushed = submission(await desk.job("m", parameters={"n": 1}),
                        await desk.job("m", parameters={"n": 2}, unique_policy="replace"),
                        await desk.job("l", parameters={"n": 3}, unique_policy="replace"),
                        await desk.job("l", parameters={"n": 4}, unique_policy="replace"))  # fmt: skip
    stored = await desk.store.create([pushed])
    assert fates(pushed, stored) == ["created", "replaced", "replaced", "replaced"]
    rows = await pool.fetch("SELECT job_id, parameters FROM onthedot.executions ORDER BY execution_id")
    found = {row["job_id"]: row["parameters"] for row in rows}
    assert found[pushed.jobs[0].job_id] == '{"n": 2}'
    assert found[kept.jobs[3].job_id] == '{"n": 4}'
    assert (
        await pool.fetchval(
            "SELECT unique_policy FROM onthedot.jobs WHERE job_id = $1", pushed.jobs[0].job_id
        )
        == "keep"
    )
    assert len(found) == 4


async def test_what_is_not_as_it_was_checked_leaves_nothing_behind(pool: Pool, desk: Desk) -> None:
    _, held = await desk.ask("held", parameters={"n": 1})
    await pool.execute("UPDATE onthedot.tasks SET name = name || '!' WHERE task_id = 'other'")
    good, stale = await desk.job("k"), await desk.job("s", task_id="other")
    stale = msgspec.structs.replace(stale, task_revision=-1)
    replacing = await desk.job("held", parameters={"n": 2}, unique_policy="replace")
    outdated = msgspec.structs.replace(replacing, task_revision=-1)

    for one in (submission(good, stale), submission(replacing, stale), submission(outdated)):
        assert (await desk.store.create([one])).lanes == {}
        with pytest.raises(NotAsChecked):
            await desk.store.create([one, submission(await desk.job("x"))])
    assert await jobs_of(pool) == 1
    assert await pool.fetchval("SELECT parameters FROM onthedot.jobs WHERE job_id = $1", held) == '{"n": 1}'
    group = [submission(await desk.job("y")), submission(good, stale)]
    commits = GroupCommit(desk.store)
    stored = await asyncio.gather(*map(commits.submit, group))
    assert fates(group[0], stored[0]) == ["created"]
    assert stored[1].lanes == {}


async def test_a_quota_counts_what_is_created_and_nothing_else(pool: Pool, desk: Desk) -> None:
    await pool.execute("UPDATE onthedot.users SET max_jobs_per_hour = 2 WHERE user_id = 'ada'")
    _, first = await desk.ask("a")
    for _ in range(3):
        assert await desk.ask("a") == ("exists", first)
        assert await desk.ask("a", unique_policy="replace") == ("replaced", first)
    whole = submission(
        await desk.job("a", unique_policy="replace", name="x"), await desk.job("b"), await desk.job("c")
    )
    refused = await desk.store.create([whole])

    assert whole.jobs[1].job_id in refused.refused
    assert await pool.fetchval("SELECT name FROM onthedot.jobs") is None
    assert (await desk.ask("b"))[0] == "created"
    assert await pool.fetchval("SELECT sum(created) FROM onthedot.hourly_counts") == 2


async def test_a_commit_that_came_through_unnoticed_is_found_again(desk: Desk) -> None:
    one = submission(await desk.job())
    first, again = await desk.store.create([one]), await desk.store.create([one])

    assert fates(one, first) == fates(one, again) == ["created"]


async def test_a_key_that_somebody_has_is_not_waited_for(dsn: str, desk: Desk) -> None:
    holder = await connect(dsn, application_name="holder")
    holding = holder.transaction()
    await holding.start()
    await holder.execute(
        "INSERT INTO onthedot.unique_keys (key_hash) VALUES ($1)", scope_hash("ada", "report", "k")
    )
    with pytest.raises(KeyBusy):
        await desk.ask()
    commits = GroupCommit(desk.store)
    waiting = asyncio.create_task(commits.submit(submission(await desk.job())))
    other = submission(await desk.job("l"))
    assert fates(other, await commits.submit(other)) == ["created"]
    assert not waiting.done()
    await holding.rollback()
    await holder.close()
    assert len((await waiting).lanes) == 1


async def test_a_job_with_a_key_cannot_be_made_to_repeat(pool: Pool, desk: Desk) -> None:
    _, job_id = await desk.ask()
    every = {"schedule_type": "INTERVAL", "every_seconds": 60.0, "starts_at": await now_of(pool),
             "scheduled_time": None}  # fmt: skip
    with pytest.raises(InvalidInput) as refused:
        await JobControl(pool, horizon_seconds=600).change(job_id, Change(every), if_version=None, actor=ADA)
    assert refused.value.pointer == "/schedule"


async def test_retention_drops_keys_that_nobody_holds(pool: Pool, desk: Desk) -> None:
    seconds = {"live": None, "ended": None, "over": 60, "goes on": 60, "gone": 60}
    made = {key: (await desk.ask(key, unique_for_seconds=some))[1] for key, some in seconds.items()}
    await end(pool, made["ended"])
    await end(pool, made["goes on"])
    await pool.execute("UPDATE onthedot.unique_keys SET expires_at = now() WHERE job_id = $1", made["over"])
    await pool.execute("DELETE FROM onthedot.jobs WHERE job_id = $1", made["gone"])
    await pool.execute("INSERT INTO onthedot.unique_keys (key_hash) VALUES ($1)", b"\0" * 32)

    store, after, dropped = RetentionStore(pool, days=30), b"", 0
    while True:
        swept = await store.expire_unique_keys(after=after, limit=2)
        dropped += swept.dropped
        if swept.upto is None:
            break
        after = swept.upto

    left = await pool.fetch("SELECT job_id FROM onthedot.unique_keys")
    assert {row[0] for row in left} == {made["live"], made["goes on"]}
    assert dropped == 4
