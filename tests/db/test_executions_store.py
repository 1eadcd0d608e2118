"""Executions change hands: claimed once, fenced ever after, and given to the next when a lease lapses."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.db.pools import Pool, open_pool
from app.db.stores.executions import ExecutionStore, FailedAttempt, Lease, Settlement, renew
from app.domain.claims import Claim
from app.domain.hints import Ready
from app.domain.ids import SHARDS, new_execution_id, uuid7
from app.domain.statuses import Disposition, Status
from tests.factories import FAILURE, make_execution, make_executions, make_task, now_of

SHARD = SHARDS[0]
WORKER = uuid4()
PLACE = Ready(SHARD, "general", 2, datetime.min)


@pytest.fixture
def store(pool: Pool) -> ExecutionStore:
    """Return the store under test."""
    return ExecutionStore(pool)


def a_job() -> UUID:
    """Return a job of the first shard."""
    return uuid7(0, last_byte=0)


async def claim(store: ExecutionStore, *, limit: int = 1000, worker_id: UUID = WORKER) -> list[Claim]:
    """Claim what is due in the first shard."""
    return await store.claim_due(PLACE, limit=limit, worker_id=worker_id, lease_seconds=30)


async def claim_ahead(store: ExecutionStore, *, lookahead_seconds: float = 2) -> list[Claim]:
    """Lease what falls due soon in the first shard."""
    return await store.claim_ahead(
        PLACE, limit=1000, worker_id=WORKER, lease_seconds=30, lookahead_seconds=lookahead_seconds
    )


async def settlement(pool: Pool, claimed: Claim) -> Settlement:
    """Return the settlement of an execution that completed now."""
    now = await now_of(pool)
    return Settlement(claimed, Status.COMPLETED, Disposition.RAN, now, now, 1.5, result="{}")


async def failure(pool: Pool, claimed: Claim, *, retry_in_seconds: float = 60) -> FailedAttempt:
    """Return a failed attempt that is tried again."""
    now = await now_of(pool)
    due_at = now + timedelta(seconds=retry_in_seconds)
    return FailedAttempt(claimed, due_at, now, now, 1.5, "failed", FAILURE)


async def live(pool: Pool, execution_id: UUID) -> asyncpg.Record | None:
    """Return a live execution."""
    return await pool.fetchrow("SELECT * FROM onthedot.executions WHERE execution_id = $1", execution_id)


async def finished(pool: Pool, execution_id: UUID) -> asyncpg.Record | None:
    """Return a finished execution."""
    return await pool.fetchrow("SELECT * FROM onthedot.execution_history WHERE execution_id = $1", execution_id)
