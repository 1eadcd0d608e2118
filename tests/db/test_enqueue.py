"""`SELECT onthedot.enqueue(…)`: a job exists if and only if the caller commits, and once under one key."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest
import pytest_asyncio

from app.db.pools import Connection, Pool, connect
from app.db.stores.execution_control import ExecutionControl
from app.db.stores.executions import ExecutionStore
from app.db.stores.job_control import JobControl
from app.domain.access import Actor
from app.domain.hints import Ready
from app.domain.ids import SHARDS, new_execution_id, shard_of
from app.domain.job_changes import Change
from app.worker.marks import START
from tests.factories import insert, make_finished, make_task, now_of
from tests.polling import eventually

ENQUEUE = "SELECT onthedot.enqueue('report', $1::text::jsonb)"
KEYED = "SELECT onthedot.enqueue('report', idempotency_key => $1)"


@pytest.fixture
async def other(dsn: str) -> AsyncIterator[Connection]:
    """Return a session beside the pool's."""
    connection = await connect(dsn, application_name="other")
    yield connection
    await connection.close()


@pytest_asyncio.fixture(autouse=True)
async def report(pool: Pool) -> None:
    """Make the task `report`, which is enqueued here."""
    await make_task(pool, queue="bulk", priority=1, max_retries=7)


async def job(pool: Pool, job_id: UUID) -> asyncpg.Record:
    """Return a job."""
    row = await pool.fetchrow("SELECT * FROM onthedot.jobs WHERE job_id = $1", job_id)
    assert row is not None
    return row


async def execution(pool: Pool, job_id: UUID) -> asyncpg.Record:
    """Return the live execution of a job."""
    [row] = await pool.fetch("SELECT * FROM onthedot.executions WHERE job_id = $1", job_id)
    return row


async def test_a_job_and_its_execution_are_made_as_the_api_makes_them(pool: Pool) -> None:
    began = await now_of(pool)
    job_id = await pool.fetchval(ENQUEUE, '{"n": [1, "é"]}')
    ended = await now_of(pool)

    made, planned = await job(pool, job_id), await execution(pool, job_id)
    assert (made["schedule_type"], made["scheduled_time"], made["task_id"]) == ("IMMEDIATE", None, "report")
    assert (made["user_id"], made["is_active"], made["version"]) == ("sql", True, 1)
    assert began <= made["created_at"] == made["updated_at"] == made["materialized_until"] <= ended
    assert (planned["status"], planned["trigger"], planned["run_key"]) == ("PENDING", "schedule", "")
    assert (planned["queue"], planned["priority"], planned["max_attempts"]) == ("bulk", 1, 8)
    assert made["created_at"] == planned["due_at"] == planned["first_due_at"] == planned["scheduled_time"]
    assert json.loads(made["parameters"]) == json.loads(planned["parameters"]) == {"n": [1, "é"]}
    assert not made["parameters_checked"]
    assert not planned["parameters_checked"]
    assert job_id.version == planned["execution_id"].version == 7
    assert made["shard"] == planned["shard"] == shard_of(job_id) == shard_of(planned["execution_id"])


async def test_a_job_exists_if_and_only_if_its_transaction_commits(pool: Pool, other: Connection) -> None:
    async with pool.acquire() as connection:
        for how in ("rollback", "commit"):
            transaction = connection.transaction()
            await transaction.start()
            job_id = await connection.fetchval(ENQUEUE, "{}")
            here = "SELECT count(*) FROM onthedot.executions WHERE job_id = $1"
            assert await connection.fetchval(here, job_id) == 1
            assert await other.fetchval(here, job_id) == 0
            await (transaction.rollback() if how == "rollback" else transaction.commit())
            assert await other.fetchval(here, job_id) == (how == "commit")


async def test_a_worker_finds_it_without_being_told(pool: Pool) -> None:
    job_id = await pool.fetchval(ENQUEUE, "{}")
    place = Ready(shard_of(job_id), "bulk", 1, await now_of(pool))
    store = ExecutionStore(pool)

    assert [
        r.shard for r in await store.peek(lookahead_seconds=0, queues=[], marks=dict.fromkeys(SHARDS, START))
    ] == [place.shard]
    [claim] = await store.claim_due(place, limit=10, worker_id=uuid4(), lease_seconds=30, mark=START)
    assert (claim.job_id, claim.task_id) == (job_id, "report")


async def test_whatever_is_run_of_it_later_is_checked_until_its_parameters_are_replaced(pool: Pool) -> None:
    """What the API writes has been checked; what came by SQL is checked in the worker, by whatever way it runs."""
    control, executions = JobControl(pool, horizon_seconds=60), ExecutionControl(pool)
    job_id, now = await pool.fetchval(ENQUEUE, '{"n": 1}'), await now_of(pool)
    ended = await make_finished(pool, job_id=job_id, parameters='{"n": 1}')

    async def checked(*changes: Change) -> list[bool]:
        for change in changes:
            await control.change(job_id, change, if_version=None, actor=Actor("user:ada"))
        await control.run(job_id, new_execution_id(job_id, 1), now=now, actor=Actor("user:ada"))
        await executions.run_again(ended, new_execution_id(job_id, 1), now=now, actor=Actor("user:ada"))
        query = "DELETE FROM onthedot.executions WHERE trigger = $1 RETURNING parameters_checked"
        rows = [await pool.fetchrow(query, trigger) for trigger in ("manual", "retry")]
        return [row["parameters_checked"] for row in rows if row] + [
            (await execution(pool, job_id))["parameters_checked"]
        ]

    assert await checked() == [False, False, False]
    assert await checked(Change({"priority": 0}), Change({"parameters": '{"n": 1}'})) == [False, False, False]
    assert await checked(Change({"parameters": '{"n": 2}'})) == [True, False, True]
    assert await checked(Change({"parameters": '{"n": 1}'})) == [True, True, True]


@pytest.mark.parametrize(
    ("run_at", "due"),
    [
        ("now() + interval '1 hour'", timedelta(hours=1)),
        ("now() - interval '1 hour'", timedelta(0)),
        ("'1970-01-01 00:00Z'", timedelta(0)),
    ],
)
async def test_it_runs_at_its_instant_and_never_before_it_was_made(
    pool: Pool, run_at: str, due: timedelta
) -> None:
    job_id = await pool.fetchval(f"SELECT onthedot.enqueue('report', run_at => {run_at})")

    made, planned = await job(pool, job_id), await execution(pool, job_id)
    assert made["schedule_type"] == "ONCE"
    assert made["scheduled_time"] == planned["scheduled_time"]
    assert planned["due_at"] == planned["first_due_at"] == max(planned["scheduled_time"], made["created_at"])
    assert abs(planned["due_at"] - made["created_at"] - due) < timedelta(seconds=10)


async def test_in_a_transaction_that_is_open_for_long_it_is_due_when_it_was_made(pool: Pool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        began = await connection.fetchval("SELECT now()")
        await connection.fetchval(ENQUEUE, "{}")
        due_at = await connection.fetchval("SELECT due_at FROM onthedot.executions")

    assert due_at > began


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ("enqueue('nothing')", asyncpg.NoDataFoundError, "there is no task 'nothing'"),
        ("enqueue(NULL)", asyncpg.NoDataFoundError, "there is no task NULL"),
        ("enqueue('report', '[]')", asyncpg.InvalidParameterValueError, "parameters: .* not array"),
        ("enqueue('report', '1')", asyncpg.InvalidParameterValueError, "parameters: .* not number"),
        ("enqueue('report', NULL)", asyncpg.InvalidParameterValueError, "parameters: .* not NULL"),
        (
            "enqueue('report', jsonb_build_object('x', repeat('x', 1048576)))",
            asyncpg.InvalidParameterValueError,
            "parameters: use at most 1 MiB",
        ),
        ("enqueue('report', run_at => NULL)", asyncpg.InvalidParameterValueError, "run_at: .* not NULL"),
        ("enqueue('report', run_at => 'infinity')", asyncpg.InvalidParameterValueError, "run_at: .*infinity"),
        ("enqueue('report', run_at => '10000-01-01Z')", asyncpg.InvalidParameterValueError, "run_at: "),
        ("enqueue('report', run_at => '1969-12-31Z')", asyncpg.InvalidParameterValueError, "run_at: "),
        ("enqueue('report', idempotency_key => '')", asyncpg.InvalidParameterValueError, "idempotency_key: "),
    ],
)
async def test_what_cannot_run_is_refused_and_leaves_nothing(
    pool: Pool, call: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await pool.fetchval(f"SELECT onthedot.{call}")
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 0


async def test_the_owner_is_the_user_called_like_the_login(pool: Pool) -> None:
    await insert(pool, "users", [{"user_id": "onthedot", "name": "Jobs of ours", "role": "operator"}])

    job_id = await pool.fetchval(ENQUEUE, "{}")

    assert (await job(pool, job_id))["user_id"] == (await execution(pool, job_id))["user_id"] == "onthedot"


async def test_under_one_key_there_is_one_job(pool: Pool) -> None:
    first = await pool.fetchval(KEYED, "order 7")
    again = await pool.fetchval(KEYED, "order 7")
    other = await pool.fetchval(KEYED, "order 8")

    assert first == again != other
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 2
    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions") == 2


async def test_a_key_that_stood_for_something_else_is_warned_of(other: Connection, pool: Pool) -> None:
    warnings: list[str] = []
    other.add_log_listener(lambda _connection, message: warnings.append(str(message)))
    call = "SELECT onthedot.enqueue('report', $1::text::jsonb, $2, 'order 7')"
    now = await now_of(pool)

    first = await other.fetchval(call, '{"a": 1, "b": 2}', now)
    assert await other.fetchval(call, '{"b": 2,   "a": 1}', now + timedelta(1)) == first
    assert warnings == []
    assert await other.fetchval(call, '{"a": 2}', now) == first
    assert len(warnings) == 1
    assert "idempotency_key" in warnings[0]


async def test_a_key_rolled_back_stands_for_nothing(pool: Pool) -> None:
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        undone = await connection.fetchval(KEYED, "order 7")
        await transaction.rollback()

    job_id = await pool.fetchval(KEYED, "order 7")
    assert job_id != undone
    assert await pool.fetchval("SELECT array_agg(job_id) FROM onthedot.jobs") == [job_id]


@pytest.mark.parametrize("how", ["commit", "rollback"])
async def test_a_key_in_use_is_waited_for(pool: Pool, other: Connection, how: str) -> None:
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        first = await connection.fetchval(KEYED, "order 7")
        waiting = asyncio.create_task(other.fetchval(KEYED, "order 7"))
        await eventually(lambda: is_blocked(pool, other))
        await (transaction.commit() if how == "commit" else transaction.rollback())

    assert (await waiting == first) is (how == "commit")
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 1


async def test_many_at_once_under_one_key_make_one_job(pool: Pool) -> None:
    ids = await asyncio.gather(*(pool.fetchval(KEYED, f"order {i % 3}") for i in range(60)))

    assert len(set(ids)) == 3
    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions") == 3


async def test_a_key_belongs_to_its_login(pool: Pool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        first = await connection.fetchval(KEYED, "order 7")
        await connection.execute("CREATE ROLE enqueue_test")
        await connection.execute("SET LOCAL SESSION AUTHORIZATION enqueue_test")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with connection.transaction():
                await connection.fetchval(KEYED, "order 7")
        await connection.execute("RESET SESSION AUTHORIZATION; GRANT onthedot_producer TO enqueue_test")
        await connection.execute("SET LOCAL SESSION AUTHORIZATION enqueue_test")
        second = await connection.fetchval(KEYED, "order 7")
        assert await connection.fetchval(KEYED, "order 7") == second != first
        await connection.execute("RESET SESSION AUTHORIZATION; DROP ROLE enqueue_test")


async def test_ids_sort_by_time_and_carry_the_moment_and_the_byte(pool: Pool) -> None:
    rows = await pool.fetch(
        "SELECT onthedot.uuid7(i % 256) AS id, clock_timestamp() AS at FROM generate_series(1, 2000) AS i"
    )

    ids = [row["id"] for row in rows]
    assert [i.int & 0xFF for i in ids] == [i % 256 for i in range(1, 2001)]
    assert {(i.version, i.variant) for i in ids} == {(7, "specified in RFC 4122")}
    assert len({i.int >> 64 for i in ids}) > 100  # a fraction of the millisecond is in it
    assert [i.int >> 64 for i in ids] == sorted(i.int >> 64 for i in ids)
    for row in rows:
        made = datetime.fromtimestamp((row["id"].int >> 80) / 1000, UTC)
        assert timedelta(0) <= row["at"] - made < timedelta(seconds=5)
    unforced = [row[0] for row in await pool.fetch("SELECT onthedot.uuid7() FROM generate_series(1, 2000)")]
    assert {shard_of(i) for i in unforced} == set(SHARDS)


async def is_blocked(pool: Pool, session: Connection) -> bool:
    """Tell whether a session waits for another one."""
    blockers = await pool.fetchval("SELECT pg_blocking_pids($1)", session.get_server_pid())
    return bool(blockers)
