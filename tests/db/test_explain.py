"""What an execution is said to wait for is what the claim decides by."""

from collections import ChainMap
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import combinations as combinations_of
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.clock import DatabaseClock
from app.db.pools import Pool
from app.db.reads.explanations import ExplanationReads
from app.db.reads.paces import PaceReads
from app.db.stores.admissions import AdmissionStore, Claimant
from app.db.stores.executions import ExecutionStore
from app.domain.admission import Host
from app.domain.errors import NotFound
from app.domain.explanation import Explanation, Pause, ReasonCode, Situation, explain
from app.domain.hints import Ready
from app.domain.ids import new_execution_id, new_job_id, shard_of
from app.domain.statuses import LEASED, Status
from app.worker.marks import START
from tests.factories import (
    insert,
    make_execution,
    make_executions,
    make_finished,
    make_job,
    make_task,
    now_of,
)

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
STATUSES = (Status.PENDING, Status.RETRYING, Status.SCHEDULED, Status.RUNNING, Status.BLOCKED)
CLAUSES = [
    (status, due, held, cancelled, pause, deaths, expires)
    for status, due, held, cancelled, pause, deaths, expires in product(
        STATUSES,
        (0.0, 3600.0),
        (False, True),
        (False, True),
        ("", "for good", "until", "over"),
        (0, 2),
        (None, -1.0, 7200.0),
    )
    if not (held and status in LEASED)  # the table allows none
]
"""Status, seconds until it is due, its job paused, cancel asked for, its queue paused, workers that ended, seconds
until its start deadline."""


@pytest.fixture
async def explanations(engine: AsyncEngine, clock: DatabaseClock) -> ExplanationReads:
    """Return what explains."""
    return ExplanationReads(engine, PaceReads(engine, clock), clock)


async def test_the_claim_takes_exactly_what_is_said_to_be_runnable(
    pool: Pool, explanations: ExplanationReads
) -> None:
    await make_task(pool)
    now = await now_of(pool)
    before, after = now - timedelta(seconds=1), now + timedelta(hours=1)
    queues: dict[str, dict[str, datetime]] = {
        "": {},
        "for good": {"paused_at": before},
        "until": {"paused_at": before, "paused_until": after},
        "over": {"paused_at": before, "paused_until": before},
    }
    names = {pause: pause.replace(" ", "-") or "open" for pause in queues}
    for pause, columns in queues.items():
        await insert(pool, "queues", [{"queue": names[pause]} | columns])
    asked = [
        {
            "status": status,
            "due_in_seconds": due,
            "held": held,
            "cancel_requested_at": now if cancelled else None,
            "queue": names[pause],
            "worker_deaths": deaths,
            "expires_at": now + timedelta(seconds=expires) if expires else None,
        }
        for status, due, held, cancelled, pause, deaths, expires in CLAUSES
    ]
    made = await make_executions(pool, asked)
    said = {one for one in made if (await explanations.get(one)).runnable}
    taken = await _claimed(pool, made, set(names.values()))

    assert said == taken
    # PENDING with two deadlines and RETRYING with three, in the queue that is open and the one whose pause is over,
    # twice
    assert len(taken) == (2 + 3) * 2 * 2


async def test_every_clause_is_named(pool: Pool, explanations: ExplanationReads) -> None:
    await insert(
        pool, "queues", [{"queue": "frozen", "paused_at": NOW, "paused_by": "user:viv", "paused_reason": "x"}]
    )
    job_id = await make_job(pool, is_active=False, pause_reason="the migration", materialize_at=None)
    made = await make_execution(pool, job_id=job_id, held=True, queue="frozen", due_in_seconds=3600)
    found = await explanations.get(made)

    assert [reason.code for reason in found.reasons] == [
        ReasonCode.NOT_DUE, ReasonCode.JOB_PAUSED, ReasonCode.QUEUE_PAUSED, ReasonCode.NO_WORKER_FOR_QUEUE,
    ]  # fmt: skip
    assert found.reasons[1].detail == "Its job is paused by sql:onthedot: the migration"
    assert found.reasons[1].link == f"/api/v1/jobs/{job_id}"
    assert (found.reasons[2].detail, found.reasons[2].since) == ("The queue frozen is paused by viv: x", NOW)
    assert (found.runnable, found.position, found.estimated_start) == (False, None, None)


async def test_what_began_too_late_says_by_when_it_had_to(pool: Pool, explanations: ExplanationReads) -> None:
    deadline = await now_of(pool) - timedelta(seconds=1)
    found = await explanations.get(await make_execution(pool, due_in_seconds=-60, expires_at=deadline))

    assert found.reasons[0].code is ReasonCode.EXPIRED
    assert found.reasons[0].since == deadline
    assert (found.runnable, found.position, found.estimated_start) == (False, None, None)


async def test_who_paused_the_job_is_told(pool: Pool, explanations: ExplanationReads) -> None:
    job_id = await make_job(pool)
    made = await make_execution(pool, job_id=job_id, held=True)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('onthedot.actor', 'user:ada', true)")
        await connection.execute("UPDATE onthedot.jobs SET is_active = false, materialize_at = NULL")
    reason = (await explanations.get(made)).reasons[0]

    assert (reason.code, reason.detail) == (ReasonCode.JOB_PAUSED, "Its job is paused by ada.")
    assert reason.since is not None


async def test_those_before_it_are_counted_as_the_claim_takes_them(
    pool: Pool, explanations: ExplanationReads
) -> None:
    await make_task(pool)
    await _work(pool, slots=10)
    rows: list[Mapping[str, Any]] = [
        {"due_in_seconds": -20, "priority": 2},
        {"due_in_seconds": -1, "priority": 0},
        {"due_in_seconds": -30, "priority": 3},
        {"due_in_seconds": -20, "queue": "bulk"},
        {"due_in_seconds": -20, "held": True},
        {"due_in_seconds": 20, "priority": 0},
    ]
    await make_executions(pool, rows)
    found = await explanations.get(await make_execution(pool, due_in_seconds=-10))

    assert found.position == 3
    assert [reason.code for reason in found.reasons] == [ReasonCode.BEHIND_OTHERS]
    assert found.runnable


async def test_what_nothing_stands_in_the_way_of_waits_for_nothing(
    pool: Pool, explanations: ExplanationReads
) -> None:
    await _work(pool, slots=1)
    made = await make_execution(pool)
    found = await explanations.get(made)

    assert (found.runnable, found.reasons, found.position) == (True, [], 1)
    assert found.estimated_start is not None


async def test_slots_that_are_reserved_for_others_are_not_free(
    pool: Pool, explanations: ExplanationReads
) -> None:
    """Four of critical's, by default, and half of the slots at most."""
    made, critical = await make_execution(pool), await make_execution(pool, queue="critical")

    async def codes(execution_id: UUID) -> list[ReasonCode]:
        return [reason.code for reason in (await explanations.get(execution_id)).reasons]

    await _work(pool, slots=4, running=2)
    assert (await codes(made), await codes(critical)) == ([ReasonCode.NO_CAPACITY], [])
    await _work(pool, slots=10, running=6)
    assert (await codes(made), await codes(critical)) == ([ReasonCode.NO_CAPACITY], [])
    await _work(pool, slots=10, running=9, queues=["general"])
    assert await codes(made) == [], "that one reserves nothing for what it does not serve"


async def test_taken_slots_and_foreign_workers_are_told(pool: Pool, explanations: ExplanationReads) -> None:
    made = await make_execution(pool)
    await _work(pool, slots=5, queues=["bulk"])
    nobody = await explanations.get(made)
    await _work(pool, slots=2, running=2)
    full = await explanations.get(made)

    assert [reason.code for reason in nobody.reasons] == [ReasonCode.NO_WORKER_FOR_QUEUE]
    assert [reason.code for reason in full.reasons] == [ReasonCode.NO_CAPACITY]


async def test_a_process_for_what_runs_alone_is_no_room_for_others(
    pool: Pool, explanations: ExplanationReads
) -> None:
    await _work(pool, slots=2, running=2)
    await _work(pool, slots=1, suspects_only=True)
    found = await explanations.get(await make_execution(pool))

    assert [reason.code for reason in found.reasons] == [ReasonCode.NO_CAPACITY]


async def test_what_runs_alone_stands_in_no_line(pool: Pool, explanations: ExplanationReads) -> None:
    await _work(pool, slots=2, running=2)
    await make_execution(pool, due_in_seconds=-10)
    found = await explanations.get(await make_execution(pool, worker_deaths=2, status=Status.RETRYING))

    assert [reason.code for reason in found.reasons] == [ReasonCode.RUNS_ALONE]
    assert (found.runnable, found.position) == (True, None)


async def test_what_has_ended_waits_for_nothing(pool: Pool, explanations: ExplanationReads) -> None:
    found = await explanations.get(await make_finished(pool))
    job_id = new_job_id(int(NOW.timestamp() * 1_000_000))

    assert found == Explanation(status=Status.COMPLETED, runnable=False, reasons=[])
    with pytest.raises(NotFound):
        await explanations.get(new_execution_id(job_id, int(NOW.timestamp() * 1_000_000)))


LIMITS: list[tuple[ReasonCode, dict[str, Any]]] = [
    (ReasonCode.USER_QUOTA, {"user_id": "ada"}),
    (ReasonCode.QUEUE_CONCURRENCY, {"queue": "narrow"}),
    (ReasonCode.TASK_CONCURRENCY, {"task_id": "single"}),
    (ReasonCode.KEY_CONCURRENCY, {"concurrency_key": "a"}),
    (ReasonCode.RATE_LIMITED, {"queue": "slow"}),
    (ReasonCode.NO_WORKER_FOR_LABELS, {"task_id": "train"}),
    (ReasonCode.NO_CAPACITY, {"task_id": "heavy"}),
]
"""What each reason takes to hold; what is under way takes all of each limit."""


async def _limits_that_are_used_up(pool: Pool) -> None:
    await make_task(pool)
    await make_task(pool, "single", concurrency=1)
    await make_task(pool, "train", labels='{"gpu": "a100"}')
    await make_task(pool, "heavy", cpu_cores=1.5)
    await insert(
        pool,
        "users",
        [
            {"user_id": "ada", "name": "ada", "role": "operator", "max_concurrent_jobs": 1},
            {"user_id": "bob", "name": "bob", "role": "operator", "max_concurrent_jobs": 100},
        ],
    )
    await insert(pool, "queues", [{"queue": "narrow", "max_concurrency": 1}])
    await insert(pool, "queues", [{"queue": "slow", "rate_per_second": 0.01, "rate_burst": 1}])
    await pool.execute("INSERT INTO onthedot.rate_buckets VALUES ('queue:slow', 0, now())")
    running = await make_execution(pool, status=Status.RUNNING)
    keys = [("user:ada", 0), ("queue:narrow", 0), ("task:single", 0), ("key:a", 0), ("host:here", 1)]
    rows = [
        {
            "key": key,
            "execution_id": running,
            "shard": shard_of(running),
            "lease_epoch": 1,
            "cpu_cores": float(cores),
        }
        for key, cores in keys
    ]
    await insert(pool, "limit_holders", rows)
    await _work(pool, slots=100, cpu_cores=2.0, memory_mb=1000)


async def test_the_claim_beside_limits_takes_exactly_what_is_said_to_be_runnable(
    pool: Pool, explanations: ExplanationReads
) -> None:
    await _limits_that_are_used_up(pool)
    combinations = [
        reasons for size in range(4) for reasons in combinations_of(range(len(LIMITS)), size) if _fit(reasons)
    ]
    usual = {"limited": True, "user_id": "bob", "due_in_seconds": -1.0}
    columns = [dict(ChainMap(*(LIMITS[i][1] for i in chosen), usual)) for chosen in combinations]
    made = await make_executions(pool, columns)
    found = [await explanations.get(one) for one in made]

    for chosen, one in zip(combinations, found, strict=True):
        assert {reason.code for reason in one.reasons if reason.code is not ReasonCode.BEHIND_OTHERS} == {
            LIMITS[i][0] for i in chosen
        }
        assert one.runnable == (not chosen)
    taken = await _admitted(pool, made)
    assert taken == {one for one, said in zip(made, found, strict=True) if said.runnable} != set()


async def test_who_holds_a_quota_and_when_a_rate_lets_more_begin_is_told(
    pool: Pool, explanations: ExplanationReads
) -> None:
    await _limits_that_are_used_up(pool)
    holder = await pool.fetchval("SELECT execution_id FROM onthedot.limit_holders LIMIT 1")
    quota = await explanations.get(await make_execution(pool, limited=True))
    rate = await explanations.get(await make_execution(pool, limited=True, user_id="bob", queue="slow"))

    assert quota.reasons[0].detail == f"The user ada has 1 of 1 under way: {holder}."
    assert (quota.reasons[0].link, quota.reasons[0].since is not None) == ("/api/v1/users/ada", True)
    assert rate.reasons[0].detail.startswith("The queue slow may begin 0.01 a second: the next one at 20")


async def test_an_execution_that_must_not_overlap_names_the_one_under_way(
    pool: Pool, explanations: ExplanationReads
) -> None:
    await make_task(pool)
    job_id = await make_job(pool, overlap="queue")
    running = await make_execution(pool, job_id=job_id, status=Status.RUNNING, run_key="1")
    row = {"key": f"job:{job_id}", "execution_id": running, "shard": shard_of(running), "lease_epoch": 1}
    await insert(pool, "limit_holders", [row])
    found = await explanations.get(await make_execution(pool, job_id=job_id, limited=True, overlap="queue"))

    assert found.reasons[0].code is ReasonCode.OVERLAP
    assert str(running) in found.reasons[0].detail


def _fit(chosen: tuple[int, ...]) -> bool:
    """Tell whether one execution can have all of these: it has one queue and one task."""
    columns = [column for i in chosen for column in LIMITS[i][1]]
    return len(columns) == len(set(columns))


async def _admitted(pool: Pool, made: list[UUID]) -> set[UUID]:
    claimant = Claimant(uuid4(), Host("here", 2.0, 1000), "{}")
    store, taken, now = AdmissionStore(pool, claimant), set(), await now_of(pool)
    for shard, queue in product({shard_of(one) for one in made}, ("general", "narrow", "slow")):
        place = Ready(shard, queue, 2, now, limited=True)
        found = await store.claim_oldest(place, limit=500, lease_seconds=30, mark=START)
        taken |= {claim.execution_id for claim in found.claims}
    return taken


def situation(**columns: Any) -> Situation:
    """Return one that nothing keeps from running."""
    usual: dict[str, Any] = {
        "now": NOW, "job_id": UUID(int=1), "queue": "general", "status": Status.PENDING, "due_at": NOW,
        "is_ready": True, "is_early": False, "held": False, "worker_deaths": 0, "cancel_requested_at": None,
        "expires_at": None, "is_expired": False, "limits": [], "dependencies": [],
        "job_pause": None, "queue_pause": None, "workers": 1, "free_slots": 1, "ahead": 0, "ended_per_second": 0.0,
    }  # fmt: skip
    return Situation(**usual | columns)


LATER = NOW + timedelta(hours=1)
OPEN, CLOSED = Pause(NOW, None, None, LATER), Pause(NOW, None, None, None)


@pytest.mark.parametrize(
    ("columns", "start"),
    [
        ({}, NOW),
        ({"due_at": LATER, "is_early": True}, LATER),
        ({"ahead": 50, "ended_per_second": 10.0}, NOW + timedelta(seconds=5)),
        ({"ahead": 50}, None),
        ({"ahead": 10_000, "ended_per_second": 10.0}, None),
        ({"queue_pause": OPEN}, LATER),
        ({"queue_pause": CLOSED}, None),
        ({"held": True, "job_pause": OPEN}, LATER),
        ({"held": True, "job_pause": OPEN, "queue_pause": CLOSED}, None),
        ({"held": True}, None),
        ({"workers": 0, "free_slots": 0}, None),
        ({"cancel_requested_at": NOW}, None),
        ({"expires_at": LATER}, NOW),
        ({"ahead": 50, "ended_per_second": 10.0, "expires_at": NOW + timedelta(seconds=5)}, None),
        ({"expires_at": NOW, "is_expired": True}, None),
        ({"status": Status.RUNNING, "is_ready": False}, None),
    ],
)
def test_when_it_may_start_is_said_only_where_something_tells(
    columns: dict[str, Any], start: datetime | None
) -> None:
    assert explain(situation(**columns)).estimated_start == start


def test_beyond_what_is_counted_there_is_no_position() -> None:
    found = explain(situation(ahead=10_000))

    assert found.position is None
    assert (
        found.reasons[0].detail
        == "10,000 or more that are more urgent or older are ready in the queue general."
    )


async def _claimed(pool: Pool, made: list[UUID], queues: set[str]) -> set[UUID]:
    store, taken = ExecutionStore(pool), set()
    for shard, queue in product({shard_of(one) for one in made}, queues):
        place = Ready(shard, queue, 2, NOW)
        claims = await store.claim_due(place, limit=500, worker_id=uuid4(), lease_seconds=30, mark=START)
        while alone := await store.claim_suspect(place, worker_id=uuid4(), lease_seconds=30):
            claims += alone
        taken |= {claim.execution_id for claim in claims}
    return taken


async def _work(pool: Pool, *, slots: int, queues: list[str] | None = None, **columns: object) -> None:
    usual = {"worker_id": uuid4(), "host": "here", "pid": 1, "version": "0", "queues": queues or []}
    await insert(pool, "workers", [usual | {"slots": slots} | columns])
