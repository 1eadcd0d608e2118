"""`max_jobs_per_hour` is exact: whoever creates at the same time, by whatever way, gets together what there is room
for."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.pools import Pool, connect, open_pool
from app.db.stores.execution_control import ExecutionControl
from app.db.stores.hourly_counts import CounterBusy
from app.db.stores.job_control import JobControl
from app.db.stores.jobs import JobStore, NewBatch, Submission
from app.db.stores.schedules import ScheduleStore
from app.db.stores.users import UserStore
from app.domain.access import Actor, Principal, Role
from app.domain.errors import Conflict
from app.domain.hourly_quota import HOUR, QuotaExceeded, hour_of
from app.domain.ids import new_execution_id
from app.domain.job_changes import Change, pause, resume
from app.domain.jobs import NewJob
from app.domain.users import QuotasPatch, UserPatch
from app.intake.group_commit import GroupCommit
from app.scheduler.materializer import Materializer
from tests.factories import make_finished, make_job, make_task, new_job, now_of
from tests.polling import eventually

ADA = Principal("ada", Role.ADMIN)
QUOTA = 7


@pytest.fixture
async def ada(pool: Pool) -> None:
    """Make ada, who has a quota, and bob, who has none; when the hour is not about to end."""

    async def hour_goes_on() -> bool:
        now = await now_of(pool)
        return hour_of(now + timedelta(seconds=8)) == hour_of(now)

    await eventually(hour_goes_on, seconds=30)
    await make_task(pool)
    await pool.execute(
        "INSERT INTO onthedot.users (user_id, name, role, max_jobs_per_hour) VALUES ('ada', 'ada', 'admin', $1),"
        " ('bob', 'bob', 'operator', NULL)",
        QUOTA,
    )


def submission(*jobs: NewJob) -> Submission:
    """Return what one request wants stored; several jobs are a batch."""
    batch_id = uuid4()
    new = NewBatch.of(jobs, batch_id=batch_id, user_id="ada", created_at=jobs[0].created_at)
    batch = new if len(jobs) > 1 else None
    made = [msgspec.structs.replace(job, batch_id=batch_id) for job in jobs] if batch else list(jobs)
    return Submission(jobs=made, actor=Actor("user:ada"), batch=batch)


async def created(pool: Pool, user_id: str = "ada") -> int:
    """Return how many executions of a user there are, after comparing them with the counters."""
    count: int = await pool.fetchval("SELECT count(*) FROM onthedot.executions WHERE user_id = $1", user_id)
    counted = await pool.fetchval(
        "SELECT coalesce(sum(created), 0) FROM onthedot.hourly_counts WHERE user_id = $1", user_id
    )
    assert counted == (count if user_id == "ada" else 0)
    return count


def outcome(one: Submission, stored: Any) -> str:
    """Return what became of a submission."""
    ids = {job.job_id for job in one.jobs}
    if ids <= set(stored.lanes):
        return "stored"
    return "refused" if ids <= set(stored.refused) else "limited" if ids & stored.uncounted else "lost"


@asynccontextmanager
async def processes(dsn: str, number: int) -> AsyncIterator[list[GroupCommit]]:
    """Give what commits jobs in so many API processes."""
    pools = [await open_pool(dsn, size=3, application_name=f"api {n}") for n in range(number)]
    try:
        yield [GroupCommit(JobStore(pool, counts=True)) for pool in pools]
    finally:
        for pool in pools:
            await pool.close()


@pytest.mark.usefixtures("ada")
async def test_of_many_at_once_in_two_processes_exactly_as_many_as_there_is_room_for(
    dsn: str, pool: Pool
) -> None:
    ones = [submission(await new_job(pool)) for _ in range(40)]
    others = [submission(await new_job(pool, user_id="bob")) for _ in range(10)]
    async with processes(dsn, 2) as (here, there):
        answers = await asyncio.gather(
            *((here if n % 2 else there).submit(one) for n, one in enumerate([*ones, *others]))
        )

    outcomes = list(map(outcome, [*ones, *others], answers))
    assert Counter(outcomes[:40]) == {"stored": QUOTA, "refused": 40 - QUOTA}
    assert set(outcomes[40:]) == {"stored"}
    assert await created(pool) == QUOTA


@pytest.mark.usefixtures("ada")
async def test_batches_that_meet_get_all_or_nothing(dsn: str, pool: Pool) -> None:
    batches = [submission(*[await new_job(pool) for _ in range(3)]) for _ in range(12)]
    async with processes(dsn, 2) as (here, there):
        answers = await asyncio.gather(
            *((here if n % 2 else there).submit(one) for n, one in enumerate(batches))
        )

    assert Counter(map(outcome, batches, answers)) == {"stored": 2, "refused": 10}
    assert await created(pool) == 6
    assert await pool.fetchval("SELECT count(*) FROM onthedot.batches") == 2
    assert {answers[n].refused[one.jobs[0].job_id].room["ada"] for n, one in enumerate(batches)
            if one.jobs[0].job_id in answers[n].refused} == {1}  # fmt: skip


@pytest.mark.usefixtures("ada")
async def test_without_a_store_that_counts_nothing_of_such_a_user_is_stored(pool: Pool) -> None:
    """One statement serves all others, and tells whose must be counted."""
    hers, his = submission(await new_job(pool)), submission(await new_job(pool, user_id="bob"))
    batch = submission(await new_job(pool), await new_job(pool, user_id="bob"))

    for group in ([hers, his], [batch]):
        stored = await JobStore(pool).create(group)
        assert [outcome(one, stored) for one in group] == (
            ["limited", "stored"] if group[0] is hers else ["limited"]
        )
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 1
    assert await pool.fetchval("SELECT count(*) FROM onthedot.batches") == 0


@pytest.mark.usefixtures("ada")
async def test_what_is_taken_back_with_its_request_costs_nothing(pool: Pool) -> None:
    stale = msgspec.structs.replace(await new_job(pool), task_revision=-1)
    batch = submission(await new_job(pool), stale)

    stored = await JobStore(pool, counts=True).create([batch, submission(await new_job(pool))])

    assert outcome(batch, stored) == "lost"
    assert await created(pool) == 1


@pytest.mark.usefixtures("ada")
async def test_a_counter_that_somebody_holds_is_not_waited_for_and_others_go_on(dsn: str, pool: Pool) -> None:
    await pool.execute("UPDATE onthedot.users SET max_jobs_per_hour = 5 WHERE user_id = 'bob'")
    hers, his = submission(await new_job(pool)), submission(await new_job(pool, user_id="bob"))
    holder = await connect(dsn, application_name="holder")
    holding = holder.transaction()
    await holding.start()
    await holder.fetch("SELECT onthedot.count_created('ada')")
    with pytest.raises(CounterBusy):
        await JobStore(pool, counts=True).create([hers])

    commits = GroupCommit(JobStore(pool, counts=True))
    waiting = asyncio.create_task(commits.submit(hers))
    assert outcome(his, await commits.submit(his)) == "stored"
    assert not waiting.done()
    await holding.rollback()
    assert outcome(hers, await waiting) == "stored"
    await holder.close()


@pytest.mark.usefixtures("ada")
async def test_enqueue_counts_and_says_when_there_is_room_again(pool: Pool) -> None:
    await pool.execute("UPDATE onthedot.users SET max_jobs_per_hour = 3 WHERE user_id = 'sql'")
    calls = [pool.fetchval("SELECT onthedot.enqueue('report')") for _ in range(10)]
    results = await asyncio.gather(*calls, return_exceptions=True)

    refused = [one for one in results if isinstance(one, BaseException)]
    assert len(refused) == 7
    assert {type(one) for one in refused} == {asyncpg.ConfigurationLimitExceededError}
    assert "may create 3 executions an hour" in str(refused[0])
    assert "max_jobs_per_hour" in (refused[0].hint or "")  # type: ignore[attr-defined]
    assert await pool.fetchval("SELECT created FROM onthedot.hourly_counts") == 3
    await pool.execute("UPDATE onthedot.users SET max_jobs_per_hour = 0 WHERE user_id = 'sql'")
    with pytest.raises(asyncpg.ConfigurationLimitExceededError):
        await pool.execute("SELECT onthedot.enqueue('report')")


@pytest.mark.usefixtures("ada")
async def test_a_rollback_gives_back(pool: Pool) -> None:
    await pool.execute("UPDATE onthedot.users SET max_jobs_per_hour = 1 WHERE user_id = 'sql'")
    async with pool.acquire() as connection:
        for _ in range(3):
            transaction = connection.transaction()
            await transaction.start()
            await connection.fetchval("SELECT onthedot.enqueue('report')")
            await transaction.rollback()
    assert await pool.fetchval("SELECT onthedot.enqueue('report')")


@pytest.mark.usefixtures("ada")
async def test_run_now_and_run_again_count(pool: Pool, clock: DatabaseClock) -> None:
    jobs, executions = JobControl(pool, horizon_seconds=600), ExecutionControl(pool)
    job_id = await make_job(pool, schedule_type="IMMEDIATE", every_seconds=None, starts_at=None,
                            materialize_at=None)  # fmt: skip
    finished = await make_finished(pool, job_id=job_id)
    actor = Actor("user:ada")

    def ids() -> Iterator[UUID]:
        while True:
            yield new_execution_id(job_id, clock.unix_microseconds())

    new = ids()
    runs = [jobs.run(job_id, next(new), now=clock.now(), actor=actor) for _ in range(8)]
    again = [executions.run_again(finished, next(new), now=clock.now(), actor=actor) for _ in range(8)]
    results = await asyncio.gather(*runs, *again, return_exceptions=True)

    refused = [one for one in results if isinstance(one, QuotaExceeded)]
    assert len(results) - len(refused) == QUOTA == await created(pool)
    assert 1 <= refused[0].retry_after_seconds <= 3600


@pytest.mark.usefixtures("ada")
async def test_a_quota_that_is_set_counts_what_the_hour_has_created(pool: Pool, engine: AsyncEngine) -> None:
    """Whoever is creating something is waited for: nothing is missed, whatever meets whatever."""
    for _ in range(2):
        await JobStore(pool).create([submission(await new_job(pool, user_id="bob"))])
    await make_finished(pool, user_id="bob")
    await make_finished(
        pool, user_id="bob", execution_id=new_execution_id(UUID(int=1), 0), job_id=UUID(int=1)
    )
    users, store, counting = UserStore(engine), JobStore(pool), JobStore(pool, counts=True)
    patch = UserPatch(job_quotas=QuotasPatch(max_jobs_per_hour=20))
    ones = [submission(await new_job(pool, user_id="bob")) for _ in range(40)]

    async def submit(one: Submission) -> str:
        stored = await store.create([one])
        if outcome(one, stored) == "limited":
            stored = await counting.create([one])
        return outcome(one, stored)

    async def patiently(one: Submission) -> str:
        while True:
            try:
                return await submit(one)
            except CounterBusy:
                await asyncio.sleep(0)

    async def set_quota() -> None:
        await users.change("bob", patch, by=ADA, if_version=None)

    results = await asyncio.gather(*map(patiently, ones[:10]), set_quota(), *map(patiently, ones[10:]))

    stored = Counter(results)["stored"]
    counted = await pool.fetchval("SELECT sum(created) FROM onthedot.hourly_counts WHERE user_id = 'bob'")
    assert counted == 3 + stored >= 20  # more than 20 only where they were created before it was set
    one_more = submission(await new_job(pool, user_id="bob"))
    assert outcome(one_more, await counting.create([one_more])) == "refused"


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize("creates", ["onthedot.enqueue('report')", "onthedot.count_created('bob')"])
async def test_setting_it_while_somebody_creates_without_end_is_refused(
    dsn: str, engine: AsyncEngine, creates: str
) -> None:
    holder = await connect(dsn, application_name="holder")
    holding = holder.transaction()
    await holding.start()
    await holder.fetch(f"SELECT {creates}")
    patch = UserPatch(job_quotas=QuotasPatch(max_jobs_per_hour=20))

    with pytest.raises(Conflict, match="holder"):
        await UserStore(engine).change("bob", patch, by=ADA, if_version=None)
    await holding.rollback()
    await holder.close()
    assert (await UserStore(engine).change("bob", patch, by=ADA, if_version=None)).version == 2


# Recurring jobs ---------------------------------------------------------------------------------------------------


def materializer(pool: Pool, *, horizon_seconds: float = 3 * 3600) -> Materializer:
    """Return the loop that plans."""
    return Materializer(
        schedules=ScheduleStore(pool), hints=HintSender(pool), horizon_seconds=horizon_seconds
    )


async def by_hour(pool: Pool) -> Counter[datetime]:
    """Return how many instants of ada's each hour has, after comparing them with the counters."""
    rows = await pool.fetch("SELECT scheduled_time FROM onthedot.executions WHERE user_id = 'ada'")
    counts = await pool.fetch("SELECT hour, created FROM onthedot.hourly_counts WHERE created > 0")
    found = Counter(hour_of(row[0]) for row in rows)
    assert dict(counts) == found
    return found


async def look_again(pool: Pool) -> None:
    """Have the materializer look at all jobs now."""
    await pool.execute("UPDATE onthedot.jobs SET materialize_at = now() WHERE materialize_at IS NOT NULL")


@pytest.mark.usefixtures("ada")
async def test_each_hour_gets_as_many_instants_as_the_quota_and_the_rest_waits(pool: Pool) -> None:
    now = await now_of(pool)
    for every in (300.0, 420.0):
        await make_job(pool, every_seconds=every, starts_at=now)
    await make_job(pool, every_seconds=600.0, starts_at=now, user_id="bob")

    for _ in range(6):
        await look_again(pool)
        await materializer(pool).tick()

    found = await by_hour(pool)
    assert found
    assert max(found.values()) <= QUOTA
    next_hour = hour_of(now) + HOUR
    assert found[hour_of(now)] + found[next_hour] > 0
    assert await pool.fetchval("SELECT count(*) FROM onthedot.ledger_ranges") == 0
    bobs = await pool.fetchval("SELECT count(*) FROM onthedot.executions WHERE user_id = 'bob'")
    assert bobs == 18


@pytest.mark.usefixtures("ada")
async def test_what_finds_no_room_when_it_comes_is_in_the_ledger_and_everything_adds_up(pool: Pool) -> None:
    now = await now_of(pool)
    since = hour_of(now) - HOUR
    job_id = await make_job(pool, every_seconds=60.0, starts_at=since, materialized_until=since,
                            misfire="run_all", materialize_at=now)  # fmt: skip
    for _ in range(4):
        await look_again(pool)
        await materializer(pool).tick()

    judged = await pool.fetchval("SELECT materialized_until FROM onthedot.jobs WHERE job_id = $1", job_id)
    rows = await pool.fetch(
        "SELECT first_time, last_time, occurrences, disposition, cause FROM audit.occurrences WHERE job_id = $1"
        " ORDER BY first_time",
        job_id,
    )
    assert sum(row["occurrences"] for row in rows) == (judged - since) // timedelta(minutes=1)
    assert judged >= now
    deferred = [row for row in rows if row["disposition"] == "deferred_quota"]
    first = deferred[0]
    # the instant at the beginning of the hour is the schedule's anchor, which is none of its own
    assert (first["occurrences"], first["last_time"]) == (59 - QUOTA, since + timedelta(minutes=59))
    stamp = f"{since:%Y-%m-%dT%H:%MZ}"
    assert first["cause"] == (
        f"ada may have {QUOTA} executions an hour (max_jobs_per_hour); the hour from {stamp} had as many"
    )
    assert len(deferred) <= 2  # one row an hour, however often it is looked at
    assert max((await by_hour(pool)).values()) == QUOTA


@pytest.mark.usefixtures("ada")
async def test_room_that_is_made_before_an_instant_comes_helps_it(pool: Pool) -> None:
    now = await now_of(pool)
    await pool.execute("UPDATE onthedot.users SET max_jobs_per_hour = 0 WHERE user_id = 'ada'")
    await make_job(pool, every_seconds=600.0, starts_at=now)
    await materializer(pool).tick()
    waits = await pool.fetchrow("SELECT materialized_until, materialize_at FROM onthedot.jobs")
    assert waits is not None
    assert waits["materialized_until"] < now + timedelta(seconds=600)
    assert waits["materialize_at"] == now + timedelta(seconds=598)
    assert await by_hour(pool) == {}

    await pool.execute("UPDATE onthedot.users SET max_jobs_per_hour = 7 WHERE user_id = 'ada'")
    await look_again(pool)
    await materializer(pool).tick()

    assert sum((await by_hour(pool)).values()) >= 6
    assert await pool.fetchval("SELECT min(scheduled_time) FROM onthedot.executions") == now + timedelta(
        minutes=10
    )
    assert await pool.fetchval("SELECT count(*) FROM onthedot.ledger_ranges") == 0


@pytest.mark.usefixtures("ada")
async def test_a_change_gives_back_what_it_takes_back(pool: Pool) -> None:
    await pool.execute("UPDATE onthedot.users SET max_jobs_per_hour = 30 WHERE user_id = 'ada'")
    jobs = JobControl(pool, horizon_seconds=3 * 3600)
    now = await now_of(pool)
    job_id = await make_job(pool, every_seconds=600.0, starts_at=now)
    await materializer(pool).tick()
    before = await by_hour(pool)
    assert sum(before.values()) == 18
    every = {"schedule_type": "INTERVAL", "starts_at": now}
    for change in (
        Change(every | {"every_seconds": 300.0}),
        Change({"priority": 1}),
        pause(reason=None, until=None),
        resume(),
        Change(every | {"every_seconds": 600.0}),
    ):
        await jobs.change(job_id, change, if_version=None, actor=Actor("user:ada"))
        await by_hour(pool)  # compares
    assert sum((await by_hour(pool)).values()) >= 17
    await jobs.delete(job_id, error='{"type": "x"}', actor=Actor("user:ada"))
    assert await by_hour(pool) == {}


@pytest.mark.usefixtures("ada")
async def test_a_counter_that_somebody_holds_keeps_no_other_users_jobs(dsn: str, pool: Pool) -> None:
    now = await now_of(pool)
    shared = {"every_seconds": 600.0, "starts_at": now}
    await make_job(pool, job_id=UUID(int=(1 << 80) + 16), **shared)
    await make_job(pool, job_id=UUID(int=(2 << 80) + 32), user_id="bob", **shared)
    holder = await connect(dsn, application_name="holder")
    holding = holder.transaction()
    await holding.start()
    await holder.execute(
        "INSERT INTO onthedot.hourly_counts"
        " SELECT 'ada', $1::timestamptz + n * interval '1 h', 0 FROM generate_series(0, 4) AS n",
        hour_of(now),
    )
    await materializer(pool).tick()
    owners = await pool.fetch("SELECT DISTINCT user_id FROM onthedot.executions")
    assert [row[0] for row in owners] == ["bob"]
    await holding.rollback()
    await holder.close()

    async def planned() -> bool:
        await look_again(pool)
        await materializer(pool).tick()
        return bool(await by_hour(pool))

    await eventually(planned)
