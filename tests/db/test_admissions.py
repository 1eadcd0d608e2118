"""Claims beside limits: what they take, what they leave, and that no race gets past them."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import UUID

import pytest

from app.db.pools import Pool, open_pool
from app.db.stores.admissions import MOST_ALONE, LaneCursor
from app.domain.admission import Host
from app.domain.claims import Claim
from app.domain.hints import Ready
from app.domain.ids import SHARDS, new_job_id, shard_of
from app.maintenance.limits import LimitKeeper
from app.worker.marks import START
from tests.db.limit_bench import Bench, held, limited
from tests.factories import insert, make_executions, make_task, now_of


@pytest.fixture
async def bench(pool: Pool) -> Bench:
    """Return a worker; the task `report` and the user ada are there."""
    await make_task(pool)
    await insert(
        pool, "users", [{"user_id": name, "name": name, "role": "operator"} for name in ("ada", "bob")]
    )
    return Bench(pool)


@pytest.mark.parametrize("way", ["oldest", "by_lane"])
async def test_a_quota_lets_in_as_many_as_it_says_and_more_when_these_have_ended(
    bench: Bench, pool: Pool, way: str
) -> None:
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 3 WHERE user_id = 'ada'")
    await limited(pool, 10)
    claim = getattr(bench, way)
    first = await claim()
    again = await claim()

    assert (len(first), len(again), await held(pool)) == (3, 0, {"user:ada": 3})
    await bench.settle(first[:2])
    assert (len(await claim()), await held(pool)) == (2, {"user:ada": 3})


@pytest.mark.parametrize(
    ("table", "column", "columns"),
    [
        ("queues", "max_concurrency", {}),
        ("tasks", "concurrency", {}),
        (None, "", {"concurrency_key": "tenant:a", "concurrency_limit": 2}),
    ],
)
async def test_queues_tasks_and_keys_have_limits_of_their_own(
    bench: Bench, pool: Pool, table: str | None, column: str, columns: dict[str, Any]
) -> None:
    if table:
        await pool.execute(f"UPDATE onthedot.{table} SET {column} = 2")  # noqa: S608 - ours
    await limited(pool, 5, **columns)

    assert len(await bench.oldest()) == 2
    assert list((await held(pool)).values()) == [2]


async def test_a_rate_lets_in_its_burst_and_says_when_to_come_again(bench: Bench, pool: Pool) -> None:
    await pool.execute(
        "UPDATE onthedot.queues SET rate_per_second = 0.5, rate_burst = 3 WHERE queue = 'general'"
    )
    job_id = new_job_id(0)
    await limited(pool, 5, job_id=job_id, concurrency_key=None)
    place = Ready(shard_of(job_id), "general", 2, await now_of(pool), limited=True)
    found = await bench.admissions.claim_oldest(place, limit=10, lease_seconds=30, mark=START)

    assert len(found.claims) == 3
    assert found.wait_seconds is not None
    assert 0 < found.wait_seconds <= 2
    assert await held(pool) == {}
    await pool.execute("UPDATE onthedot.rate_buckets SET refilled_at = refilled_at - interval '2 s'")
    assert len(await bench.oldest()) == 1


@pytest.mark.usefixtures("bench")
async def test_of_a_rate_no_token_is_lost_and_none_is_made_up(pool: Pool) -> None:
    """Four claim at the same time, and each time a little has come in since the last one."""
    await pool.execute("UPDATE onthedot.queues SET rate_per_second = 50, rate_burst = 1000000")
    await limited(pool, 500)
    await pool.execute("INSERT INTO onthedot.rate_buckets VALUES ('queue:general', 0, clock_timestamp())")
    began = await pool.fetchval("SELECT refilled_at FROM onthedot.rate_buckets")
    claims = await asyncio.gather(*(Bench(pool).oldest() for _ in range(4)))
    left, ended = await pool.fetchrow("SELECT tokens, refilled_at FROM onthedot.rate_buckets") or (0, began)

    assert 0 < sum(map(len, claims)) < 500
    came_in = 50 * (ended - began).total_seconds()
    assert sum(map(len, claims)) + left == pytest.approx(came_in, abs=1e-3)


async def test_cores_of_a_host_are_shared_by_its_workers(bench: Bench, pool: Pool) -> None:
    await pool.execute("UPDATE onthedot.tasks SET cpu_cores = 1.5, memory_mb = 100")
    await limited(pool, 5)
    elsewhere = Bench(pool, host=Host("bee", 2.0, 150))

    assert (len(await bench.oldest()), len(await Bench(pool).oldest()), len(await elsewhere.oldest())) == (
        2,
        0,
        1,
    )


async def test_a_worker_takes_what_it_has_the_labels_and_the_size_for(bench: Bench, pool: Pool) -> None:
    await make_task(pool, "train", labels='{"gpu": "a100"}')
    await make_task(pool, "huge", cpu_cores=16.0)
    await limited(pool, 2, task_id="train")
    await limited(pool, 2, task_id="huge")
    fitting = await limited(pool, 1, task_id="report")
    plain = [claim.execution_id for claim in await bench.by_lane()]
    labelled = await Bench(pool, labels='{"gpu": "a100", "region": "eu"}').oldest()

    assert plain == fitting
    assert [claim.task_id for claim in labelled] == ["train", "train"]


async def test_what_a_limit_keeps_waiting_hides_nothing_behind_it(bench: Bench, pool: Pool) -> None:
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 1 WHERE user_id = 'ada'")
    job_id = new_job_id(0)
    await limited(pool, 300, job_id=job_id, due_in_seconds=-100.0)
    ten = await limited(pool, 10, job_id=job_id, user_id="bob", due_in_seconds=-1.0)
    place = Ready(shard_of(job_id), "general", 2, await now_of(pool), limited=True)
    found = await bench.admissions.claim_by_lane(place, LaneCursor(), limit=20, lease_seconds=30, mark=START)

    assert {claim.execution_id for claim in found.claims} >= {*ten}
    assert Counter(claim.user_id for claim in found.claims) == {"ada": 1, "bob": 10}


async def test_users_without_limits_take_turns_in_a_backlog(bench: Bench, pool: Pool) -> None:
    job_id = new_job_id(0)
    rows = [{"job_id": job_id, "due_in_seconds": -100.0}] * 500
    rows += [{"job_id": job_id, "due_in_seconds": -1.0, "user_id": "bob"}] * 10
    await make_executions(pool, [dict(row, run_key=str(i)) for i, row in enumerate(rows)])
    place = Ready(shard_of(job_id), "general", 2, await now_of(pool))
    found = await bench.admissions.claim_by_lane(place, LaneCursor(), limit=40, lease_seconds=30, mark=START)

    assert Counter(claim.user_id for claim in found.claims) == {"ada": 20, "bob": 10}
    assert not any(claim.limited for claim in found.claims)


async def test_many_lanes_are_visited_in_turns(bench: Bench, pool: Pool) -> None:
    job_id = new_job_id(0)
    rows = [
        {
            "job_id": job_id,
            "run_key": str(i),
            "limited": True,
            "concurrency_key": f"k{i:04}",
            "due_in_seconds": -9.0,
        }
        for i in range(600)
    ]
    await make_executions(pool, rows)
    place = Ready(shard_of(job_id), "general", 2, await now_of(pool), limited=True)
    cursor, seen = LaneCursor(), []
    for _ in range(7):
        found = await bench.admissions.claim_by_lane(place, cursor, limit=100, lease_seconds=30, mark=START)
        cursor = found.cursor
        seen.append(len(found.claims))

    assert seen == [100] * 6 + [0]
    assert cursor == LaneCursor()


async def test_a_lapsed_lease_counts_until_it_is_reaped_and_then_no_more(bench: Bench, pool: Pool) -> None:
    await limited(pool, 2, concurrency_key="a")
    (first,) = await bench.oldest()
    await pool.execute(
        "UPDATE onthedot.executions SET lease_expires_at = now() - interval '1 s' WHERE status = 'RUNNING'"
    )
    assert await bench.oldest() == []
    await bench.executions.reap(first.shard, limit=10)
    assert await bench.limits.sweep() == 1
    (second,) = await bench.oldest()
    await bench.settle([first])  # too late: its lease is over, and so is what it counted

    assert await held(pool) == {"key:a": 1}
    assert second.lease != first.lease


async def test_the_sweep_leaves_what_counts(bench: Bench, pool: Pool) -> None:
    await limited(pool, 1, concurrency_key="a", overlap="queue")
    (claim,) = await bench.oldest()
    await bench.limits.sweep()
    assert await held(pool) == {"key:a": 1, f"job:{claim.job_id}": 1}

    await bench.retry(claim)
    await bench.limits.sweep()
    assert await held(pool) == {f"job:{claim.job_id}": 1}
    (again,) = await bench.oldest()
    assert (again.attempt_number, await held(pool)) == (2, {"key:a": 1, f"job:{claim.job_id}": 1})
    await bench.settle([again])
    assert await held(pool) == {}


async def test_of_a_job_that_must_not_overlap_the_next_one_waits_or_ends(bench: Bench, pool: Pool) -> None:
    for overlap in ("queue", "skip", "cancel_running"):
        job_id = new_job_id(0)
        await limited(pool, 1, job_id=job_id, overlap=overlap, due_in_seconds=-5.0)
        (running,) = await bench.oldest()
        waiting = await limited(pool, 1, job_id=job_id, overlap=overlap, due_in_seconds=-1.0)
        assert await bench.oldest() == []
        assert (await _state(pool, waiting[0]), await _state(pool, running.execution_id)) == {
            "queue": ("PENDING", "RUNNING"),
            "skip": ("SKIPPED skipped_overlap", "RUNNING"),
            "cancel_running": ("PENDING", "RUNNING, to stop"),
        }[overlap]
        await bench.settle([running])
        await bench.settle(await bench.oldest())
    assert await held(pool) == {}


async def test_a_suspect_with_limits_is_claimed_beside_them(bench: Bench, pool: Pool) -> None:
    rows: Mapping[str, Any] = {"concurrency_key": "a", "worker_deaths": 2, "status": "RETRYING"}
    made = await limited(pool, 2, **rows)
    first = [
        await bench.admissions.claim_alone(place, lease_seconds=30) for place in await bench.places("general")
    ]
    second = [
        await bench.admissions.claim_alone(place, lease_seconds=30) for place in await bench.places("general")
    ]

    assert [claim.execution_id in made for found in first for claim in found.claims] == [True]
    assert [claim for found in second for claim in found.claims] == []


async def test_suspects_that_a_limit_keeps_waiting_hide_none_and_are_worth_no_process(
    bench: Bench, pool: Pool
) -> None:
    """More of them than one look takes."""
    job_id = new_job_id(0)
    suspect: Mapping[str, Any] = {"job_id": job_id, "worker_deaths": 2, "status": "RETRYING"}
    await limited(pool, 1, concurrency_key="a", due_in_seconds=-99.0)
    (running,) = await bench.oldest()
    waiting = await limited(pool, MOST_ALONE + 5, concurrency_key="a", due_in_seconds=-9.0, **suspect)
    assert await bench.admissions.suspects([], limit=20) == []

    (free,) = await limited(pool, 1, concurrency_key="b", **suspect | {"run_key": "free"})
    (place,) = await bench.admissions.suspects([], limit=20)
    found = await bench.admissions.claim_alone(place, lease_seconds=30)
    assert [claim.execution_id for claim in found.claims] == [free]

    await bench.settle([running])
    (place,) = await bench.admissions.suspects([], limit=20)
    (claim,) = (await bench.admissions.claim_alone(place, lease_seconds=30)).claims
    assert claim.execution_id in waiting
    assert await held(pool) == {"key:a": 1, "key:b": 1}


@pytest.mark.parametrize("way", ["free", "sweep"])
async def test_nobody_who_frees_waits_for_another_who_does(bench: Bench, pool: Pool, way: str) -> None:
    """Two that wait for what the other one has met first would wait for ever."""
    await limited(pool, 3, concurrency_key="a", concurrency_limit=3)
    claims = await bench.oldest()
    await bench.executions.settle([await bench.settlement(claim) for claim in claims])
    async with pool.acquire() as other, other.transaction():
        await other.execute(
            "DELETE FROM onthedot.limit_holders WHERE execution_id = $1", claims[1].execution_id
        )
        async with asyncio.timeout(30):
            await (bench.limits.sweep() if way == "sweep" else bench.limits.free([c.lease for c in claims]))
        assert await held(pool) == {"key:a": 1}
    assert await held(pool) == {}


@pytest.mark.parametrize("way", ["oldest", "by_lane"])
async def test_a_hundred_racing_claims_never_pass_a_limit(bench: Bench, pool: Pool, way: str) -> None:
    """Four workers claim, end, fail, forget to free and are reaped; what runs is counted from the history."""
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 4 WHERE user_id = 'ada'")
    await pool.execute("UPDATE onthedot.tasks SET concurrency = 3 WHERE task_id = 'report'")
    await make_task(pool, "other")
    made = [
        {
            "limited": True,
            "due_in_seconds": -5.0,
            "concurrency_key": f"k{i % 3}",
            "concurrency_limit": 2,
            "task_id": ("report", "other")[i % 2],
        }
        for i in range(120)
    ]
    await make_executions(pool, made)
    most, chance = Counter[str](), random.Random(4)  # noqa: S311 - a test's choices, not a secret

    async def watch() -> None:
        rows = await pool.fetch("""
            SELECT 'user' AS key, count(*) FROM onthedot.executions WHERE status = 'RUNNING'
             UNION ALL SELECT task_id, count(*) FROM onthedot.executions WHERE status = 'RUNNING' GROUP BY task_id
             UNION ALL SELECT concurrency_key, count(*) FROM onthedot.executions WHERE status = 'RUNNING'
                        GROUP BY concurrency_key""")
        for key, count in rows:
            most[key] = max(most[key], count)

    async def work(worker: Bench) -> None:
        while await pool.fetchval("SELECT count(*) FROM onthedot.executions"):
            claims = await getattr(worker, way)(limit=chance.randint(1, 5))
            await watch()
            for claim in claims:
                match chance.randrange(5):
                    case 0 if claim.attempt_number < 3:
                        await worker.retry(claim)
                    case 1:  # its process ends between two statements
                        await worker.executions.settle([await worker.settlement(claim)])
                    case 2 if claim.attempt_number < 3:
                        await worker.executions.release([claim])
                    case _:
                        await worker.settle([claim])
            await worker.limits.sweep()

    await asyncio.gather(*(work(Bench(pool)) for _ in range(4)))
    await bench.limits.sweep()

    assert most["user"] == 4
    assert most["report"] <= 3
    assert all(most[f"k{i}"] <= 2 for i in range(3))
    assert (await held(pool), await pool.fetchval("SELECT count(*) FROM onthedot.execution_history")) == (
        {},
        120,
    )


async def test_a_new_quota_is_told_to_what_waits_and_counts_what_runs(bench: Bench, pool: Pool) -> None:
    made = await make_executions(pool, [{"due_in_seconds": -1.0}] * 6)
    running = [
        claim for shard in {shard_of(one) for one in made[:2]} for claim in await bench.begin(shard, limit=1)
    ]
    ahead = await make_executions(pool, [{"status": "SCHEDULED", "due_in_seconds": 60.0}])
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 3 WHERE user_id = 'ada'")
    for limit in await bench.limits.new_limits():
        await bench.limits.apply(limit)

    assert (await held(pool))["user:ada"] == len(running)
    assert await _state(pool, ahead[0]) == "PENDING"
    assert len(await bench.oldest()) == 3 - len(running)
    assert await pool.fetchval("SELECT bool_and(limited) FROM onthedot.executions")


async def test_while_a_quota_is_set_nobody_begins_beside_what_is_not_counted_yet(
    bench: Bench, pool: Pool
) -> None:
    """Claims race with the telling; what runs is looked at when all know of the limit."""
    made = await make_executions(pool, [{"due_in_seconds": -1.0}] * 200)
    for shard in SHARDS[:4]:
        await bench.begin(shard, limit=2)
    running = await pool.fetchval("SELECT count(*) FROM onthedot.executions WHERE status = 'RUNNING'")
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 3 WHERE user_id = 'ada'")
    told = asyncio.gather(*(bench.limits.apply(limit) for limit in await bench.limits.new_limits()))
    claims = [claim async for claim in _claims_until(told, Bench(pool))]

    assert 3 < running < len(made)
    assert claims == []
    assert await held(pool) == {"user:ada": running}


async def _claims_until(done: "asyncio.Future[Any]", worker: Bench) -> AsyncIterator[Claim]:
    while not done.done():
        for claim in await worker.oldest():
            yield claim


class Rounds:
    """How often workers have looked for something to claim."""

    done = 0


async def test_a_quota_that_is_raised_lowered_and_removed_holds_from_then_on(
    bench: Bench, pool: Pool, dsn: str
) -> None:
    """While four claim and end: whatever begins after a change has come about is within what it says."""
    await limited(pool, 3000, concurrency_key=None)
    done, chance = asyncio.Event(), random.Random(5)  # noqa: S311 - a test's choices, not a secret
    rounds = Rounds()

    async def work(worker: Bench) -> None:
        begun: list[Claim] = []
        while not done.is_set():
            begun += await worker.oldest(limit=4)
            rounds.done += 1
            if chance.random() < 0.2:
                ended = [begun.pop(0) for _ in begun[:4]]
                await worker.settle(ended)

    async with await open_pool(dsn, size=8, application_name="workers") as own:
        working = asyncio.gather(*(work(Bench(own)) for _ in range(4)))
        more = [
            await _began_beyond(bench, pool, quota, rounds) for quota in (3, 1, None, 2, 5, None, 1, None, 3)
        ]
        done.set()
        await working

    assert [each for each in more if each] == []


async def _began_beyond(bench: Bench, pool: Pool, quota: int | None, rounds: Rounds) -> str | None:
    """Set a quota, or none; return what has begun beside it that may not."""
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = $1 WHERE user_id = 'ada'", quota)
    await bench.limits.apply_new(within_seconds=5)
    set_at = await now_of(pool)
    until = rounds.done + 12  # three of each worker's: the first may have begun before
    while rounds.done < until:
        running, newest, uncounted = await pool.fetchrow("""
            SELECT count(*), max(e.claimed_at), count(*) FILTER (WHERE h.key IS NULL)
              FROM onthedot.executions AS e
              LEFT JOIN onthedot.limit_holders AS h
                     ON h.key = 'user:ada' AND h.execution_id = e.execution_id AND h.lease_epoch = e.lease_epoch
             WHERE status = 'RUNNING'""")  # type: ignore[misc]  # there is always one
        if quota and (uncounted or (newest and newest > set_at and running > quota)):
            return f"{running} run, {quota} may, {uncounted} do not count"
    return None


async def test_a_claim_that_was_under_way_when_a_quota_was_set_is_counted(bench: Bench, pool: Pool) -> None:
    await limited(pool, 1)
    begin = """UPDATE onthedot.executions SET status = 'RUNNING', attempt_number = 1, lease_epoch = 1, worker_id = $1,
                      claimed_at = now(), lease_expires_at = now() + interval '1 min'"""
    async with pool.acquire() as claim:
        async with claim.transaction():
            await claim.execute(begin, bench.worker_id)
            await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 1 WHERE user_id = 'ada'")
            told = asyncio.ensure_future(bench.limits.apply_new(within_seconds=5))
            await asyncio.wait({told}, timeout=0.2)
        await told

    assert await held(pool) == {"user:ada": 1}


async def test_what_somebody_else_has_locked_is_told_of_a_limit_later(bench: Bench, pool: Pool) -> None:
    (made,) = await make_executions(pool, [{"due_in_seconds": -1.0}])
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 3 WHERE user_id = 'ada'")
    (limit,) = await bench.limits.new_limits()
    async with pool.acquire() as other, other.transaction():
        await other.execute("SELECT FROM onthedot.executions WHERE execution_id = $1 FOR UPDATE", made)
        assert not await bench.limits.apply(limit)
    assert await bench.limits.apply(limit)
    assert await pool.fetchval("SELECT bool_and(limited) FROM onthedot.executions")


async def test_a_limit_is_new_until_whoever_may_not_know_of_it_has_ended(bench: Bench, pool: Pool) -> None:
    keeper = LimitKeeper(bench.limits)
    async with pool.acquire() as other, other.transaction():
        await make_executions(other, [{"due_in_seconds": -1.0}])  # by somebody who sees no limit yet
        await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 1 WHERE user_id = 'ada'")
        await pool.execute("UPDATE onthedot.new_limits SET set_at = set_at - interval '6 s'")
        await keeper.tick()
        assert len(await bench.limits.new_limits()) == 1
    await keeper.tick()

    assert await bench.limits.new_limits() == []
    assert await pool.fetchval("SELECT bool_and(limited) FROM onthedot.executions")


async def test_a_lease_that_nobody_counted_counts_although_one_before_it_has_left_a_row(
    bench: Bench, pool: Pool
) -> None:
    await limited(pool, 1)
    (first,) = await bench.oldest()
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 1 WHERE user_id = 'ada'")
    (limit,) = await bench.limits.new_limits()
    await bench.limits.apply(limit)
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = NULL WHERE user_id = 'ada'")
    await bench.executions.release([first])  # and its worker ends before it can free what it held
    (second,) = await bench.oldest()
    await pool.execute("UPDATE onthedot.users SET max_concurrent_jobs = 1 WHERE user_id = 'ada'")
    await bench.limits.apply(limit)
    await bench.limits.sweep()

    assert second.lease != first.lease
    assert await held(pool) == {"user:ada": 1}


async def _state(pool: Pool, execution_id: UUID) -> str:
    live = await pool.fetchrow(
        "SELECT status, cancel_requested_at FROM onthedot.executions WHERE execution_id = $1", execution_id
    )
    if live is not None:
        return f"{live[0]}, to stop" if live[1] else str(live[0])
    ended = await pool.fetchrow(
        "SELECT status, disposition FROM onthedot.execution_history WHERE execution_id = $1", execution_id
    )
    return f"{ended[0]} {ended[1]}"
