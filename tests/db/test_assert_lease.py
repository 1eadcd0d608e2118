"""`SELECT onthedot.assert_lease(…)`: effects in PostgreSQL commit only under the lease they were made under."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from asyncpg.pool import PoolConnectionProxy

from app.db.pools import Connection, Pool, connect
from app.db.primary import timeline_of
from app.db.queries import load
from app.db.stores.executions import ExecutionStore, Lease, renew
from app.domain.ids import shard_of
from tests.factories import FAILURE, make_execution, now_of
from tests.polling import eventually


@pytest.fixture
async def other(dsn: str) -> AsyncIterator[Connection]:
    """Return a session beside the pool's."""
    connection = await connect(dsn, application_name="other")
    yield connection
    await connection.close()


async def token(pool: Pool, execution_id: UUID) -> int:
    """Return the fencing token that a handler of an execution sees now."""
    epoch = await pool.fetchval(
        "SELECT lease_epoch FROM onthedot.executions WHERE execution_id = $1", execution_id
    )
    return (await timeline_of(pool) << 40) + int(epoch)


async def assert_lease(
    connection: "PoolConnectionProxy[asyncpg.Record]", execution_id: UUID, fencing_token: int | None
) -> None:
    """Assert a lease in the connection's transaction."""
    await connection.fetchval("SELECT onthedot.assert_lease($1, $2)", execution_id, fencing_token)


async def has_lapsed(pool: Pool) -> bool:
    """Tell whether the only lease there is has run out."""
    lapsed: bool = await pool.fetchval("SELECT lease_expires_at < clock_timestamp() FROM onthedot.executions")
    return lapsed


async def test_a_lease_in_force_is_asserted(pool: Pool) -> None:
    execution_id = await make_execution(pool, status="RUNNING", lease_epoch=7)

    async with pool.acquire() as connection:
        await assert_lease(connection, execution_id, await token(pool, execution_id))


@pytest.mark.parametrize(
    ("columns", "off", "problem"),
    [
        ({"status": "RUNNING"}, 1, "somebody else"),
        ({"status": "RUNNING"}, -1, "somebody else"),
        ({"status": "RUNNING"}, 1 << 40, "somebody else"),
        ({"status": "RUNNING"}, -(1 << 40), "somebody else"),
        ({"status": "RUNNING"}, None, "somebody else"),
        ({"status": "RUNNING", "lease_ends_in_seconds": -1}, 0, "ran out"),
        ({"status": "SCHEDULED"}, 0, "does not run"),
        ({"status": "RETRYING", "lease_epoch": 1}, 0, "does not run"),
        (None, 0, "does not run"),
    ],
)
async def test_a_lease_that_is_not_in_force_is_an_error(
    pool: Pool, columns: dict[str, Any] | None, off: int | None, problem: str
) -> None:
    known = await make_execution(pool, **(columns or {"status": "RUNNING"}))
    fencing_token = None if off is None else await token(pool, known) + off
    execution_id = known if columns is not None else UUID(int=known.int ^ 1 << 60)

    with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError, match=problem):
        async with pool.acquire() as connection:
            await assert_lease(connection, execution_id, fencing_token)


async def test_a_lease_asserted_late_in_a_long_transaction_is_judged_by_the_clock(pool: Pool) -> None:
    execution_id = await make_execution(pool, status="RUNNING", lease_ends_in_seconds=0.1)
    fencing_token = await token(pool, execution_id)
    async with pool.acquire() as connection, connection.transaction():
        await connection.fetchval("SELECT now()")
        await eventually(lambda: has_lapsed(pool))
        with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError, match="ran out"):
            await assert_lease(connection, execution_id, fencing_token)


@pytest.mark.parametrize(
    "columns",
    [{"attempt_number": 1}, {"attempt_number": 4}, {"cancel_requested_at": datetime(2026, 1, 1, tzinfo=UTC)}],
    ids=["to be run again", "to be failed", "to be cancelled"],
)
async def test_an_asserted_lease_is_nobody_elses_before_the_commit(
    pool: Pool, columns: dict[str, Any]
) -> None:
    """The lease lapses while the transaction is open: a reaper passes it by, and takes it afterwards."""
    execution_id = await make_execution(pool, status="RUNNING", **columns)
    shard, store = shard_of(execution_id), ExecutionStore(pool)
    async with pool.acquire() as connection, connection.transaction():
        await assert_lease(connection, execution_id, await token(pool, execution_id))
        await pool.execute(
            "UPDATE onthedot.executions SET lease_expires_at = now() - interval '1 s' WHERE execution_id = $1",
            execution_id,
        )
        assert (await store.reap(shard, limit=10)).transitions == 0
    assert (await store.reap(shard, limit=10)).transitions == 1


async def test_an_asserted_lease_is_renewed_and_its_execution_asked_to_stop_meanwhile(
    pool: Pool, other: Connection
) -> None:
    execution_id, now = await make_execution(pool, status="RUNNING"), await now_of(pool)
    shard = shard_of(execution_id)
    async with pool.acquire() as connection, connection.transaction():
        await assert_lease(connection, execution_id, await token(pool, execution_id))
        await other.execute("SET lock_timeout = '5s'")
        assert not (await renew(other, [Lease(shard, execution_id, 1, 90.0, None)])).lost
        assert await other.fetch(load("request_cancel"), shard, execution_id, now, FAILURE)

    row = await pool.fetchrow("SELECT * FROM onthedot.executions WHERE execution_id = $1", execution_id)
    assert row is not None
    assert row["lease_expires_at"] > now + timedelta(seconds=60)
    assert row["cancel_requested_at"] == now
