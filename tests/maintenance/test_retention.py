"""Retention deletes what has ended long ago, step by step, and never anything that is live."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.db import old_partitions
from app.db.old_partitions import LOCK, drop_old_partitions
from app.db.partitions import DAILY
from app.db.pools import Connection, Pool, connect
from app.db.queries import load
from app.db.stores.execution_control import ExecutionControl
from app.db.stores.job_control import JobControl
from app.db.stores.retention import FIRST, Place, RetentionStore
from app.domain.access import Actor
from app.domain.errors import NotFound
from app.domain.ids import new_execution_id, shard_of, uuid7
from app.maintenance import retention
from app.maintenance.retention import Retention
from tests.factories import (
    execution_row,
    finished_row,
    insert,
    job_row,
    make_execution,
    make_finished,
    make_job,
    make_task,
    now_of,
)
from tests.polling import eventually

DAYS = 30
COUNT = "SELECT count(*) FROM onthedot."
LONG_AGO = timedelta(days=DAYS + 1)
ONCE = {"schedule_type": "IMMEDIATE", "every_seconds": None, "starts_at": None, "materialize_at": None}
PARTITIONS = """
    SELECT c.relname, c.relispartition FROM pg_class AS c
     WHERE c.relnamespace = 'onthedot'::regnamespace AND c.relkind = 'r' AND c.relname ~ '_[0-9]{8}$'
"""


@pytest.fixture
async def reader(dsn: str) -> AsyncIterator[Connection]:
    """Return a session of somebody who reads."""
    connection = await connect(dsn, application_name="reader")
    yield connection
    await connection.close()


def keeper(pool: Pool, *, days: int = DAYS) -> Retention:
    """Return the loop under test."""
    return Retention(pool, RetentionStore(pool, days=days), days=days)


async def run(pool: Pool, *, days: int = DAYS) -> None:
    """Let retention do all that there is to do."""
    loop = keeper(pool, days=days)
    while await loop.tick():
        pass


async def make_partition(pool: Pool, *, days_ago: int) -> date:
    """Make the partitions of a day that is gone, with a row in each."""
    now = await now_of(pool)
    day = now.astimezone(UTC).date() - timedelta(days=days_ago)
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    for table in DAILY:
        await pool.execute(
            f"CREATE TABLE IF NOT EXISTS onthedot.{table}_{day:%Y%m%d} PARTITION OF onthedot.{table}"
            f" FOR VALUES FROM ('{start}') TO ('{start + timedelta(days=1)}')"
        )
    await insert(pool, "execution_history", [finished_row(now, completed_at=start + timedelta(hours=1))])
    return day


async def days_kept(pool: Pool) -> dict[str, list[str]]:
    """Return the days of the partitions that there are, attached or not, by table."""
    names = [row["relname"] for row in await pool.fetch(PARTITIONS)]
    return {table: sorted(name[-8:] for name in names if name[:-9] == table) for table in DAILY}


async def test_whole_days_that_are_old_enough_are_dropped_and_no_others(pool: Pool) -> None:
    before = await days_kept(pool)
    old = [await make_partition(pool, days_ago=ago) for ago in (DAYS + 1, DAYS + 2, 400)]
    young = [await make_partition(pool, days_ago=ago) for ago in (DAYS, 2)]

    await run(pool)

    kept = {table: sorted([*days, *(f"{day:%Y%m%d}" for day in young)]) for table, days in before.items()}
    assert await days_kept(pool) == kept
    assert await pool.fetchval("SELECT count(*) FROM onthedot.execution_history") == len(young)
    assert old


async def test_the_shortest_retention_leaves_yesterday(pool: Pool) -> None:
    before = await days_kept(pool)
    await make_partition(pool, days_ago=1)
    await run(pool, days=1)

    assert await days_kept(pool) == before


async def test_writers_and_readers_of_other_days_are_not_held_up(pool: Pool, reader: Connection) -> None:
    """A transaction that has read the whole history keeps a day from going; new ones write and read meanwhile."""
    await make_partition(pool, days_ago=40)
    reading = reader.transaction()
    await reading.start()
    assert await reader.fetchval("SELECT count(*) FROM onthedot.execution_history") == 1

    dropping = asyncio.create_task(drop_old_partitions(pool, days=DAYS))
    await eventually(lambda: waits(pool))
    async with asyncio.timeout(4):  # less than the detach would wait
        await make_finished(pool)
        assert await pool.fetchval("SELECT count(*) FROM onthedot.execution_history") == 1
        assert await reader.fetchval("SELECT count(*) FROM onthedot.execution_history") == 2
    await reading.rollback()
    assert len(await dropping) == len(DAILY)


async def test_what_a_reader_held_up_is_completed_by_the_next(
    pool: Pool, reader: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_partitions, "LOCK_TIMEOUT", "50ms")
    day = await make_partition(pool, days_ago=40)
    other = await make_partition(pool, days_ago=41)
    reading = reader.transaction()
    await reading.start()
    await reader.fetchval("SELECT count(*) FROM onthedot.execution_history")

    held_up = await drop_old_partitions(pool, days=DAYS)
    assert not any("history" in name for name in held_up)
    assert await pool.fetchval("SELECT count(*) FROM pg_inherits WHERE inhdetachpending") == 1
    assert not any("history" in name for name in await drop_old_partitions(pool, days=DAYS))
    await reading.rollback()

    dropped = await drop_old_partitions(pool, days=DAYS)
    assert dropped == [f"execution_history_{gone:%Y%m%d}" for gone in (other, day)]
    assert {f"{day:%Y%m%d}", f"{other:%Y%m%d}"}.isdisjoint((await days_kept(pool))["execution_history"])


@pytest.mark.parametrize("stage", ["detach pending", "detached"])
async def test_what_a_crash_left_half_done_is_completed(pool: Pool, dsn: str, stage: str) -> None:
    day = await make_partition(pool, days_ago=40)
    name = f"execution_history_{day:%Y%m%d}"
    detach = f"ALTER TABLE onthedot.execution_history DETACH PARTITION onthedot.{name}"
    if stage == "detached":
        await pool.execute(f"{detach} CONCURRENTLY")
    else:
        await _die_while_detaching(pool, dsn, f"{detach} CONCURRENTLY")
        assert await pool.fetchval("SELECT count(*) FROM pg_inherits WHERE inhdetachpending") == 1

    assert name in await drop_old_partitions(pool, days=DAYS)
    assert f"{day:%Y%m%d}" not in (await days_kept(pool))["execution_history"]


async def test_one_process_drops_at_a_time(pool: Pool, reader: Connection) -> None:
    await make_partition(pool, days_ago=40)
    await reader.fetchval("SELECT pg_advisory_lock($1)", LOCK)
    assert await drop_old_partitions(pool, days=DAYS) == []
    await reader.fetchval("SELECT pg_advisory_unlock($1)", LOCK)
    assert len(await drop_old_partitions(pool, days=DAYS)) == len(DAILY)

    settings = await pool.fetch(
        "SELECT current_setting('lock_timeout'), count(*) FROM pg_locks AS l"
        "  JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database() WHERE locktype = 'advisory'"
    )
    assert [tuple(row) for row in settings] == [("0", 0)]


async def test_of_old_jobs_only_those_go_that_ran_once_and_have_ended(
    pool: Pool, subtests: pytest.Subtests
) -> None:
    now = await now_of(pool)
    long_ago, future = {"created_at": now - LONG_AGO, "updated_at": now - LONG_AGO}, now + timedelta(days=90)
    at = ONCE | {"schedule_type": "ONCE"}
    states: Mapping[str, tuple[dict[str, Any], dict[str, Any] | None, bool]] = {
        "ended": (ONCE | long_ago, None, False),
        "ended, at an instant": (at | long_ago | {"scheduled_time": now - LONG_AGO}, None, False),
        "ended, at an instant not long ago": (
            at | long_ago | {"scheduled_time": now - timedelta(1)},
            None,
            True,
        ),
        "changed not long ago": (ONCE | long_ago | {"updated_at": now - timedelta(1)}, None, True),
        "young": (ONCE | {"created_at": now - timedelta(days=DAYS, hours=-1)}, None, True),
        "runs": (ONCE | long_ago, {"status": "RUNNING"}, True),
        "waits for its next attempt": (ONCE | long_ago, {"status": "RETRYING", "due_in_seconds": 60}, True),
        "waits for a worker": (ONCE | long_ago, {"due_in_seconds": -3_000_000}, True),
        "is paused": (ONCE | long_ago | {"is_active": False}, {"held": True}, True),
        "lies in the future": (
            at | long_ago | {"scheduled_time": future},
            {"due_in_seconds": 7_776_000},
            True,
        ),
        "recurs": (long_ago, None, True),
    }
    jobs = {state: job_row(now, **columns) for state, (columns, _, _) in states.items()}
    for state, (_, live, _) in states.items():
        await insert(pool, "jobs", [jobs[state]])
        if live is not None:
            await make_execution(pool, job_id=jobs[state]["job_id"], **live)

    await run(pool)

    left = {row["job_id"] for row in await pool.fetch("SELECT job_id FROM onthedot.jobs")}
    for state, (_, _, stays) in states.items():
        with subtests.test(state):
            assert (jobs[state]["job_id"] in left) is stays
    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions") == sum(
        live is not None for _, live, _ in states.values()
    )


async def test_jobs_go_in_batches_by_any_number_of_processes(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 10)
    now = await now_of(pool)
    jobs = [
        job_row(now, **ONCE, created_at=now - LONG_AGO + timedelta(seconds=i // 4), updated_at=now - LONG_AGO)
        for i in range(400)
    ]
    recurring = [job_row(now, created_at=now - LONG_AGO, updated_at=now - LONG_AGO) for _ in range(30)]
    live = [execution_row(now, job_id=job["job_id"]) for job in jobs[::10]]
    await insert(pool, "jobs", jobs + recurring)
    await insert(pool, "executions", live)

    await asyncio.gather(*(run(pool) for _ in range(3)))

    left = {row["job_id"] for row in await pool.fetch("SELECT job_id FROM onthedot.jobs")}
    assert left == {row["job_id"] for row in (*live, *recurring)}
    assert await pool.fetchval("SELECT count(*) FROM audit.changes WHERE action = 'job.delete'") == 0


async def test_a_batch_ends_where_it_should(pool: Pool) -> None:
    now, store = await now_of(pool), RetentionStore(pool, days=DAYS)
    made = [now - LONG_AGO + timedelta(seconds=i) for i in range(5)]
    ids = [uuid7(i, last_byte=0) for i in range(5)]
    rows = [
        job_row(now, **ONCE, job_id=job_id, created_at=at, updated_at=at)
        for job_id, at in zip(ids, made, strict=True)
    ]
    await insert(pool, "jobs", rows)
    await make_execution(pool, job_id=ids[0])
    shard = shard_of(ids[0])

    first = await store.expire_jobs(shard, after=FIRST, limit=3)
    assert first == (2, Place(made[2], ids[2]))
    assert await store.expire_jobs(shard, after=Place(made[2], ids[2]), limit=3) == (2, None)
    assert await store.expire_jobs(shard, after=FIRST, limit=3) == (0, None)


Again = Callable[[Pool, UUID], Coroutine[Any, Any, object]]


async def run_job(pool: Pool, job_id: UUID) -> object:
    """Run a job by hand."""
    control, now = JobControl(pool, horizon_seconds=60), await now_of(pool)
    return await control.run(job_id, new_execution_id(job_id, 1), now=now, actor=Actor("user:ada"))


async def run_execution_again(pool: Pool, job_id: UUID) -> object:
    """Run again what a job's execution did."""
    control, now = ExecutionControl(pool), await now_of(pool)
    ended = await pool.fetchval(
        "SELECT execution_id FROM onthedot.execution_history WHERE job_id = $1", job_id
    )
    ready = await control.run_again(ended, new_execution_id(job_id, 1), now=now, actor=Actor("user:ada"))
    if ready is None:
        raise NotFound("its job is gone")
    return ready


@pytest.mark.parametrize("again", [run_job, run_execution_again])
async def test_who_runs_a_job_again_while_it_goes_finds_it_gone(
    pool: Pool, reader: Connection, again: Again
) -> None:
    """No live execution is ever left without its job: whoever locks the job first wins."""
    job_id = await _ended_long_ago(pool)
    expiring = reader.transaction()
    await expiring.start()
    locked = await reader.fetch(load("lock_expired_jobs"), shard_of(job_id), DAYS, *FIRST, 10)
    running = asyncio.create_task(again(pool, job_id))
    await eventually(lambda: is_waited_for(pool, reader))
    await reader.fetch(load("expire_jobs"), shard_of(job_id), [row["job_id"] for row in locked])
    await expiring.commit()

    with pytest.raises(NotFound):
        await running
    assert await _count(pool, "jobs") == await _count(pool, "executions") == 0


@pytest.mark.parametrize("again", [run_job, run_execution_again])
async def test_a_job_that_somebody_runs_again_stays(pool: Pool, reader: Connection, again: Again) -> None:
    """Its new execution is held up in the middle, by a lock that retention does not need."""
    job_id = await _ended_long_ago(pool)
    holding = reader.transaction()
    await holding.start()
    await reader.execute("LOCK TABLE onthedot.audit_log IN EXCLUSIVE MODE")
    running = asyncio.create_task(again(pool, job_id))
    await eventually(lambda: is_waited_for(pool, reader))
    store = RetentionStore(pool, days=DAYS)
    assert await store.expire_jobs(shard_of(job_id), after=FIRST, limit=10) == (0, None)
    await holding.rollback()

    await running
    assert await store.expire_jobs(shard_of(job_id), after=FIRST, limit=10) == (0, None)
    assert await _count(pool, "jobs") == await _count(pool, "executions") == 1


async def test_small_things_go_by_their_own_age(pool: Pool) -> None:
    now = await now_of(pool)
    live_batch, worker = uuid4(), {"host": "ant", "pid": 7, "version": "1", "queues": [], "slots": 4}
    await insert(pool, "idempotency_keys", _keys(now, hours_ago=(1, 23, 25, 700)))
    await insert(pool, "batches", _batches(now, {uuid4(): 1, uuid4(): 31, live_batch: 31}))
    live = await make_execution(pool, batch_id=live_batch, due_in_seconds=60)
    for execution_id, days in ((live, 31), (uuid4(), 31), (uuid4(), 1)):
        effect = {
            "shard": shard_of(execution_id),
            "execution_id": execution_id,
            "key": "charge",
            "result": "1",
        }
        at = now - timedelta(days=days)
        await insert(pool, "effects", [effect | {"lease_epoch": 1, "recorded_at": at}])
    for silent, stopped in ((6, None), (8, None), (8, 6), (9, 8)):
        stopped_at = now - timedelta(days=stopped) if stopped else None
        ages = {"heartbeat_at": now - timedelta(days=silent), "stopped_at": stopped_at}
        await insert(pool, "workers", [worker | ages | {"worker_id": uuid4()}])
    await insert(pool, "users", [{"user_id": "ada", "name": "Ada", "role": "admin"}])
    for hours in (-1, 1):
        ends = {"user_id": "ada", "expires_at": now + timedelta(hours=hours)}
        await insert(pool, "sessions", [ends | {"session_hash": uuid4().bytes * 2}])
        await insert(pool, "login_tokens", [ends | {"token_hash": uuid4().bytes * 2}])

    await run(pool)

    left = {"idempotency_keys": 2, "batches": 2, "effects": 2, "workers": 2, "sessions": 1, "login_tokens": 1}
    assert {table: await _count(pool, table) for table in left} == left


async def test_the_audit_log_and_the_ledger_stay(pool: Pool) -> None:
    now = await now_of(pool)
    ages_ago = now - timedelta(days=3000)
    await insert(
        pool,
        "audit_log",
        [
            {
                "at": ages_ago,
                "action": "job.run",
                "target_type": "job",
                "target_id": "1",
                "client": "",
                "actor": "x",
            }
        ],
    )
    job = job_row(now)
    passed = {"first_time": ages_ago, "last_time": ages_ago, "recorded_at": ages_ago, "occurrences": 1}
    passed |= {"shard": job["shard"], "job_id": job["job_id"], "disposition": "paused"}
    await insert(pool, "ledger_ranges", [passed])

    await run(pool)

    assert await _count(pool, "audit_log") == await _count(pool, "ledger_ranges") == 1


async def _ended_long_ago(pool: Pool) -> UUID:
    """Make a job that ran once and has ended."""
    await make_task(pool)
    long_ago = await now_of(pool) - LONG_AGO
    job_id = await make_job(pool, **ONCE, created_at=long_ago, updated_at=long_ago)
    await make_finished(pool, job_id=job_id)
    return job_id


async def is_waited_for(pool: Pool, session: Connection) -> bool:
    """Tell whether some session waits for this one."""
    waiting = await pool.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))",
        session.get_server_pid(),
    )
    return bool(waiting)


def _keys(now: datetime, *, hours_ago: Iterable[int]) -> Iterable[dict[str, Any]]:
    for hours in hours_ago:
        hashes = {"key_hash": uuid4().bytes * 2, "request_hash": uuid4().bytes * 2}
        yield hashes | {"status_code": 201, "answer": b"", "created_at": now - timedelta(hours=hours)}


def _batches(now: datetime, days_ago: Mapping[UUID, int]) -> Iterable[dict[str, Any]]:
    for batch_id, days in days_ago.items():
        row = {"batch_id": batch_id, "user_id": "ada", "total": 1, "created_at": now - timedelta(days=days)}
        yield row | {"first_execution_id": UUID(int=0), "last_execution_id": UUID(int=2**128 - 1)}


async def _count(pool: Pool, table: str) -> int:
    count: int = await pool.fetchval(f"{COUNT}{table}")
    return count


async def waits(pool: Pool) -> bool:
    """Tell whether a partition is being taken off and waits for a reader."""
    waiting = await pool.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%DETACH PARTITION%'"
        " AND datname = current_database()"
    )
    return bool(waiting)


async def _die_while_detaching(pool: Pool, dsn: str, statement: str) -> None:
    """Kill a session that waits for a reader in the middle of a detach."""
    dying = await connect(dsn, application_name="dying")
    async with pool.acquire() as reading, reading.transaction():
        await reading.fetchval("SELECT count(*) FROM onthedot.execution_history")
        detaching = asyncio.create_task(dying.execute(statement))
        await eventually(lambda: waits(pool))
        await pool.execute("SELECT pg_terminate_backend($1)", dying.get_server_pid())
        with pytest.raises(asyncpg.PostgresConnectionError):
            await detaching
    dying.terminate()
