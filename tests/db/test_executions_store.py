"""Executions change hands: claimed once, fenced ever after, and given to the next when a lease lapses."""

import asyncio
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.db.partitions import DAILY
from app.db.pools import Pool, connect, open_pool
from app.db.stores.executions import ExecutionStore, FailedAttempt, Lease, renew
from app.domain.ids import SHARDS, uuid7
from tests.db.bench import Bench
from tests.factories import FAILURE, make_task, now_of


@pytest.fixture
def bench(pool: Pool) -> Bench:
    """Return the store and what tests ask of it."""
    return Bench(pool, ExecutionStore(pool), uuid4())


async def test_takes_the_oldest_and_never_more_than_asked(bench: Bench, subtests: pytest.Subtests) -> None:
    for rows in (10, 1000):
        for statistics in ("SELECT 'none'", "ANALYZE onthedot.executions"):
            with subtests.test(statistics, rows=rows):
                await bench.pool.execute("TRUNCATE onthedot.executions")
                ids = await bench.make(*({"due_in_seconds": -age} for age in range(rows)))
                await bench.pool.execute(statistics)

                taken = [{claim.execution_id for claim in await bench.claim(limit=5)} for _ in range(2)]

                assert taken == [set(ids[-5:]), set(ids[-10:-5])]


async def test_a_claim_begins_an_attempt_under_a_lease(bench: Bench) -> None:
    await make_task(bench.pool)
    revision = await bench.pool.fetchval("SELECT revision FROM onthedot.tasks")
    first, again, orphan = await bench.make(
        {}, {"status": "RETRYING", "attempt_number": 2, "lease_epoch": 5}, {"task_id": "gone"}
    )

    claims = {claim.execution_id: claim for claim in await bench.claim()}

    assert [claims[x].attempt_number for x in (first, again, orphan)] == [1, 3, 1]
    assert [claims[x].lease_epoch for x in (first, again, orphan)] == [1, 6, 1]
    assert [claims[x].task_revision for x in (first, again, orphan)] == [revision, revision, None]
    for execution_id, claim in claims.items():
        row = await bench.live(execution_id)
        assert (row["status"], row["worker_id"]) == ("RUNNING", bench.worker_id)
        assert claim.lease_expires_at - claim.claimed_at == timedelta(seconds=30)
        fields = set(claim.__struct_fields__) - {"task_revision", "throttled_ms"}
        assert {name: row[name] for name in fields} == {name: getattr(claim, name) for name in fields}


async def test_only_what_is_ready_is_claimed(bench: Bench) -> None:
    due, soon, *_ = await bench.make(
        {},
        {"due_in_seconds": 20},
        {"due_in_seconds": 60},
        {"held": True},
        {"held": True, "due_in_seconds": 20},
        {"cancel_requested_at": datetime(2026, 1, 31, tzinfo=UTC), "status": "RETRYING"},
        {"status": "BLOCKED"},
        {"status": "SCHEDULED"},
        {"status": "RUNNING"},
        {"queue": "bulk"},
        {"priority": 3},
        {"job_id": uuid7(0, last_byte=1)},
    )

    assert [claim.execution_id for claim in await bench.claim_ahead()] == [soon]
    assert [claim.execution_id for claim in await bench.claim()] == [due]


async def test_a_paused_queue_gives_nothing_away_until_it_resumes(bench: Bench) -> None:
    due, soon = await bench.make({}, {"due_in_seconds": 20})
    pause = "UPDATE onthedot.queues SET paused_at = now(), paused_until = now() + $1::interval"

    for paused_for in (None, timedelta(minutes=1)):
        await bench.pool.execute(pause, paused_for)
        assert [*await bench.claim(), *await bench.claim_ahead()] == []

    await bench.pool.execute(pause, timedelta(0))
    assert [claim.execution_id for claim in await bench.claim_ahead()] == [soon]
    assert [claim.execution_id for claim in await bench.claim()] == [due]


async def test_claimers_never_share_an_execution(bench: Bench, dsn: str) -> None:
    ids = await bench.make(*({} for _ in range(2000)))
    many = await open_pool(dsn, size=16, application_name="claimers")
    claimers = [Bench(many, ExecutionStore(many), uuid4()) for _ in range(50)]

    taken = await asyncio.gather(*(claimer.claim(limit=45) for claimer in claimers))

    claimed = [claim.execution_id for claims in taken for claim in claims]
    assert len(claimed) == len(set(claimed)) == 2000
    assert set(claimed) == set(ids)
    assert all(len(claims) <= 45 for claims in taken)
    await many.close()


async def test_what_is_leased_ahead_is_armed_once_and_only_by_its_owner(bench: Bench) -> None:
    ids = await bench.make(*({"due_in_seconds": 10} for _ in range(3)))
    claims = {claim.execution_id: claim for claim in await bench.claim_ahead()}
    assert {(claim.status, claim.attempt_number) for claim in claims.values()} == {("SCHEDULED", 0)}
    await bench.pool.execute(
        "UPDATE onthedot.executions SET lease_epoch = lease_epoch + 1 WHERE execution_id = $1", ids[0]
    )

    for _ in range(2):
        armed = {claims[execution_id].lease: 1 for execution_id in ids[1:]}
        assert await bench.store.arm(claims.values()) == armed

    assert [(await bench.live(x))["status"] for x in ids] == ["SCHEDULED", "RUNNING", "RUNNING"]


async def test_renewal_prolongs_passes_over_locked_rows_and_names_the_lost(bench: Bench, dsn: str) -> None:
    await bench.make(*({} for _ in range(4)))
    free, locked, taken, done = await bench.claim()
    await bench.settle(done)
    await bench.pool.execute(
        "UPDATE onthedot.executions SET lease_epoch = lease_epoch + 1 WHERE execution_id = $1",
        taken.execution_id,
    )
    own, other = [await connect(dsn, application_name="test") for _ in range(2)]
    began = await now_of(bench.pool)

    async with other.transaction():
        await other.execute(
            "SELECT FROM onthedot.executions WHERE execution_id = $1 FOR UPDATE", locked.execution_id
        )
        claims = (free, locked, taken, done)
        prolonged, lost = await renew(
            own, [Lease(x.shard, x.execution_id, x.lease_epoch, 300, began) for x in claims]
        )

    assert (prolonged, lost) == ({free.lease}, {taken.lease, done.lease})
    renewed, passed_over = await bench.live(free.execution_id), await bench.live(locked.execution_id)
    assert renewed["lease_expires_at"] > free.lease_expires_at + timedelta(seconds=200)
    assert renewed["started_at"] == began
    assert passed_over["lease_expires_at"] == locked.lease_expires_at
    await own.close()
    await other.close()


async def test_a_settlement_moves_the_row_once(bench: Bench) -> None:
    await bench.make({"parameters": '{"a": 1}', "timeout_seconds": 9.5, "retried_from": uuid4()})
    (claim,) = await bench.claim()
    before = await bench.live(claim.execution_id)

    assert await bench.settle(claim) == {claim.execution_id}
    assert await bench.settle(claim) == set()

    after = await bench.finished(claim.execution_id)
    assert await bench.live(claim.execution_id) == {}
    kept = before.keys() & after.keys()
    assert {name for name in kept if before[name] != after[name]} == {"status", "started_at", "lateness_ms"}
    assert (after["status"], after["disposition"], after["result"]) == ("COMPLETED", "ran", '{"n": 1}')


async def test_a_lost_lease_writes_nothing(bench: Bench) -> None:
    """The same worker claims a row again that it had lost: what it did before still does not count."""
    (execution_id,) = await bench.make({})
    (stale,) = await bench.claim()
    await bench.lapse()
    await bench.store.reap(SHARDS[0], limit=10)
    (fresh,) = await bench.claim()
    assert (fresh.attempt_number, fresh.lease_epoch) == (2, 3)
    before, attempts = await bench.live(execution_id), await bench.attempts()

    assert await bench.settle(stale) == set()
    assert await bench.retry(stale) == set()
    assert await bench.store.release([stale]) == set()
    assert await bench.store.arm([stale]) == {}

    assert await bench.live(execution_id) == before
    assert await bench.attempts() == attempts
    assert await bench.finished(execution_id) == {}
    assert await bench.settle(fresh) == {execution_id}


async def test_what_is_not_armed_cannot_end(bench: Bench) -> None:
    await bench.make({"due_in_seconds": 10})
    ahead = await bench.claim_ahead()

    assert await bench.settle(*ahead) == set()
    assert await bench.retry(*ahead) == set()


async def test_a_failed_attempt_is_recorded_and_the_execution_waits(bench: Bench) -> None:
    (execution_id,) = await bench.make({})
    (claim,) = await bench.claim()

    assert await bench.retry(claim) == {execution_id}

    assert await bench.attempts() == [(execution_id, 1, 1, bench.worker_id, "failed")]
    row = await bench.live(execution_id)
    assert (row["status"], row["attempt_number"], row["lease_epoch"]) == ("RETRYING", 1, 2)
    assert row["due_at"] > await now_of(bench.pool) + timedelta(seconds=50)
    assert await bench.claim() == []
    await bench.make_due()
    assert [(x.attempt_number, x.lease_epoch) for x in await bench.claim()] == [(2, 3)]


async def test_an_interrupted_attempt_is_given_back_and_says_nothing_of_what_went_wrong(bench: Bench) -> None:
    (execution_id,) = await bench.make({"max_attempts": 1})
    (claim,) = await bench.claim()
    now = await now_of(bench.pool)
    interrupted = FailedAttempt(
        claim=claim,
        due_at=now,
        started_at=now,
        ended_at=now,
        lateness_ms=1.0,
        outcome="interrupted",
        error=FAILURE,
        given_back=1,
    )

    assert await bench.store.retry([interrupted], worker_id=bench.worker_id) == {execution_id}

    assert await bench.attempts() == [(execution_id, 1, 1, bench.worker_id, "interrupted")]
    row = await bench.live(execution_id)
    assert (row["status"], row["max_attempts"], row["error"]) == ("RETRYING", 2, None)
    assert [(x.attempt_number, x.max_attempts) for x in await bench.claim()] == [(2, 2)]


async def test_a_release_takes_back_the_attempt_that_had_not_begun(bench: Bench) -> None:
    fresh, failed, ahead = await bench.make(
        {"due_in_seconds": -60},
        {"status": "RETRYING", "attempt_number": 2},
        {"due_in_seconds": 10},
    )
    claims = [*await bench.claim(), *await bench.claim_ahead()]
    now = await now_of(bench.pool)

    assert await bench.store.release(claims) == {fresh, failed, ahead}
    assert await bench.store.release(claims) == set()

    rows = [await bench.live(x) for x in (fresh, failed, ahead)]
    assert [(row["status"], row["attempt_number"]) for row in rows] == [
        ("PENDING", 0),
        ("RETRYING", 2),
        ("PENDING", 0),
    ]
    assert all(row["lease_epoch"] == 2 and row["worker_id"] is None for row in rows)
    assert rows[0]["due_at"] >= now
    assert rows[2]["due_at"] > now


async def test_what_a_worker_lets_lapse_is_freed_retried_or_failed(bench: Bench) -> None:
    lapsed: dict[str, Any] = {"lease_ends_in_seconds": -1, "lease_epoch": 4, "max_attempts": 3}
    ahead, ahead_again, last, second, alone, poison, alive = await bench.make(
        lapsed | {"status": "SCHEDULED"},
        lapsed | {"status": "SCHEDULED", "attempt_number": 1},
        lapsed | {"status": "RUNNING", "attempt_number": 3},
        lapsed | {"status": "RUNNING", "attempt_number": 2, "worker_deaths": 1, "max_attempts": 4},
        lapsed | {"status": "RUNNING", "attempt_number": 3, "worker_deaths": 2, "max_attempts": 5},
        lapsed | {"status": "RUNNING", "attempt_number": 4, "worker_deaths": 3, "max_attempts": 6},
        {"status": "RUNNING"},
    )
    lost = {
        execution_id: (await bench.live(execution_id))["worker_id"] for execution_id in (last, second, alone)
    }

    reaped = await bench.store.reap(SHARDS[0], limit=500)

    assert reaped.transitions == 6
    assert [(x.shard, x.queue, x.priority) for x in reaped.ready] == [(SHARDS[0], "general", 2)] * 3
    rows = [await bench.live(x) for x in (ahead, ahead_again, last, second, alone, alive)]
    names = ("status", "attempt_number", "lease_epoch", "worker_deaths", "max_attempts")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("PENDING", 0, 5, 0, 3),
        ("RETRYING", 1, 5, 0, 3),
        ("RETRYING", 3, 5, 1, 4),
        ("RETRYING", 2, 5, 2, 5),
        ("RETRYING", 3, 5, 3, 6),
        ("RUNNING", 1, 1, 0, 4),
    ]
    assert sorted(await bench.attempts()) == sorted(
        [
            (last, 3, 4, lost[last], "lost"),
            (second, 2, 4, lost[second], "lost"),
            (alone, 3, 4, lost[alone], "lost"),
        ]
    )
    ended = await bench.finished(poison)
    assert await bench.live(poison) == {}
    assert tuple(ended[name] for name in names) == ("FAILED", 4, 5, 4, 7)
    assert '"poison"' in ended["error"]


async def test_what_lapsed_in_an_outage_is_held_against_nothing(bench: Bench) -> None:
    """Each runs again as what it was: no death more, and no poison."""
    lapsed: dict[str, Any] = {"status": "RUNNING", "attempt_number": 1}
    before = [lapsed | {"lease_ends_in_seconds": -5, "worker_deaths": deaths} for deaths in (0, 1, 3)]
    *in_outage, after = await bench.make(*before, lapsed | {"lease_ends_in_seconds": -1, "worker_deaths": 3})
    now = await now_of(bench.pool)
    reaped = await bench.store.reap(SHARDS[0], limit=500, outage_until=now - timedelta(seconds=3))
    rows = [await bench.live(execution_id) for execution_id in in_outage]

    assert [(row["status"], row["worker_deaths"], row["max_attempts"]) for row in rows] == [
        ("RETRYING", 0, 5), ("RETRYING", 1, 5), ("RETRYING", 3, 5),
    ]  # fmt: skip
    assert (await bench.finished(after))["worker_deaths"] == 4
    assert len(reaped.ready) == 2  # the third one is a suspect still


async def test_what_two_workers_died_of_is_claimed_alone(bench: Bench) -> None:
    """Never among others, one at a time, the oldest first; and only by those who serve its queue."""
    suspect: dict[str, Any] = {"status": "RETRYING", "attempt_number": 2, "worker_deaths": 2}
    other, newer, older, *_ = await bench.make(
        {},
        suspect,
        suspect | {"due_in_seconds": -60},
        suspect | {"due_in_seconds": 20},
        suspect | {"held": True},
        suspect | {"cancel_requested_at": datetime(2026, 1, 31, tzinfo=UTC)},
    )

    assert [claim.execution_id for claim in await bench.claim()] == [other]
    assert await bench.claim_ahead() == []
    assert await bench.admissions.suspects(["bulk"], limit=10) == []
    for expected in (older, newer):
        place, *_ = await bench.admissions.suspects(["bulk", "general"], limit=10)
        claims = await bench.store.claim_suspect(place, worker_id=bench.worker_id, lease_seconds=30)
        assert [(claim.execution_id, claim.attempt_number) for claim in claims] == [(expected, 3)]
    assert await bench.admissions.suspects([], limit=10) == []


async def test_a_paused_queue_gives_no_suspect_away(bench: Bench) -> None:
    await bench.make({"status": "RETRYING", "attempt_number": 2, "worker_deaths": 2})
    (place,) = await bench.admissions.suspects([], limit=10)
    await bench.pool.execute("UPDATE onthedot.queues SET paused_at = now()")

    assert await bench.admissions.suspects([], limit=10) == []
    assert await bench.store.claim_suspect(place, worker_id=bench.worker_id, lease_seconds=30) == []


async def test_a_graceful_release_is_no_death(bench: Bench) -> None:
    (execution_id,) = await bench.make({})

    await bench.store.release(await bench.claim())

    assert (await bench.live(execution_id))["worker_deaths"] == 0


async def test_what_is_cancelled_when_its_worker_dies_is_cancelled(bench: Bench) -> None:
    asked = {"cancel_requested_at": datetime(2026, 1, 31, tzinfo=UTC), "worker_deaths": 3}
    (execution_id,) = await bench.make(asked | {"status": "RUNNING", "lease_ends_in_seconds": -1})

    await bench.store.reap(SHARDS[0], limit=10)

    ended = await bench.finished(execution_id)
    assert (ended["status"], ended["worker_deaths"]) == ("CANCELLED", 3)


async def test_reapers_side_by_side_free_each_execution_once(bench: Bench) -> None:
    lapsed = [{"status": status, "lease_ends_in_seconds": -1} for status in ("SCHEDULED", "RUNNING")] * 100
    lapsed += [{"status": "RUNNING", "lease_ends_in_seconds": -1, "worker_deaths": 3}] * 100
    ids = await bench.make(*lapsed)

    reaped = await asyncio.gather(*(bench.store.reap(SHARDS[0], limit=500) for _ in range(3)))

    assert sum(each.transitions for each in reaped) == 300
    assert len(await bench.attempts()) == 100
    counts = await bench.pool.fetchrow(
        "SELECT (SELECT count(*) FROM onthedot.executions WHERE lease_epoch = 2),"
        "       (SELECT count(*) FROM onthedot.execution_history WHERE lease_epoch = 2)"
    )
    assert counts
    assert (tuple(counts), len(ids)) == ((200, 100), 300)


async def test_a_day_without_partitions_stops_nobody(bench: Bench) -> None:
    """Whoever ends something on such a day makes them, also when all do it at once."""
    await bench.make(*({} for _ in range(12)))
    claims = await bench.claim()
    lapsed = {"status": "RUNNING", "lease_ends_in_seconds": -1}
    await bench.make(lapsed, lapsed | {"worker_deaths": 3})
    today: date = await bench.pool.fetchval("SELECT (now() AT TIME ZONE 'UTC')::date")
    for table in DAILY:
        for offset in range(-1, 3):
            day = today + timedelta(days=offset)
            await bench.pool.execute(f"DROP TABLE onthedot.{table}_{day:%Y%m%d}")

    kept = await asyncio.gather(
        *(bench.settle(claim) for claim in claims[:6]), *(bench.retry(claim) for claim in claims[6:])
    )
    reaped = await bench.store.reap(SHARDS[0], limit=500)

    assert set().union(*kept) == {claim.execution_id for claim in claims}
    assert reaped.transitions == 2
