"""Which leases a worker holds, by its own clock."""

import time
from datetime import UTC, datetime
from uuid import uuid4

import msgspec
import pytest

from app.db.pools import Pool
from app.db.stores.workers import WorkerIdentity
from app.domain.claims import Claim, LeaseId
from app.domain.ids import shard_of
from app.worker.leases import HeldLease, LeaseKeeper
from tests.domain.test_retry import a_claim
from tests.factories import make_execution
from tests.worker.conftest import Bench

LEASE_SECONDS = 30.0
NOWHERE = "postgresql://127.0.0.1:1/none"


def keeper(dsn: str = NOWHERE) -> LeaseKeeper:
    """Return a keeper that does not run: nothing is renewed but by its tick."""
    worker = WorkerIdentity(worker_id=uuid4(), host="ant", pid=1, version="1", queues=(), slots=1)
    return LeaseKeeper(
        dsn, worker=worker, lease_seconds=LEASE_SECONDS, on_lost=lambda _: None, on_cut_off=lambda: None
    )


def held(claim: Claim, *, seconds_ago: float) -> HeldLease:
    """Return the lease of a claim that was made so long ago."""
    return HeldLease(claim, claim.lease, LEASE_SECONDS, time.monotonic() - seconds_ago)


def test_nothing_may_begin_under_a_lease_that_has_lapsed_or_is_not_held() -> None:
    leases, claim = keeper(), a_claim(attempt_number=1, max_attempts=3)
    assert not leases.allows_beginning(claim.lease)

    leases.hold(held(claim, seconds_ago=LEASE_SECONDS - 5))
    assert leases.allows_beginning(claim.lease)

    leases.hold(held(claim, seconds_ago=LEASE_SECONDS + 0.1))  # frozen meanwhile
    assert not leases.allows_beginning(claim.lease)


def test_the_end_of_an_old_lease_is_not_the_end_of_the_next_one() -> None:
    leases, old = keeper(), a_claim(attempt_number=1, max_attempts=3)
    again = msgspec.structs.replace(old, lease_epoch=3, attempt_number=2)
    leases.hold(held(old, seconds_ago=40))
    leases.hold(held(again, seconds_ago=0))

    leases.drop(old.lease)
    leases.began(LeaseId(old.execution_id, 2), datetime(2026, 1, 1, tzinfo=UTC))

    assert leases.allows_beginning(again.lease)
    assert not leases.allows_beginning(old.lease)


async def test_whose_leases_have_all_lapsed_claims_nothing_and_is_told_to_end() -> None:
    leases, claim = keeper(), a_claim(attempt_number=1, max_attempts=3)
    assert not leases.are_all_lapsed()  # nothing is held

    leases.hold(held(claim, seconds_ago=LEASE_SECONDS + 0.1))
    assert leases.are_all_lapsed()  # frozen, and thawed: before its thread has had its turn

    with pytest.raises(OSError, match="Connect call failed"):
        await leases.tick()
    assert leases.draining
    assert not leases.are_all_lapsed()


async def test_who_was_frozen_leaves_work_to_others(bench: Bench) -> None:
    worker = await bench.make_worker()
    lapsed = held(a_claim(attempt_number=1, max_attempts=3), seconds_ago=LEASE_SECONDS + 0.1)
    worker._leases.hold(lapsed)
    execution_id = await bench.job(await bench.task("builtin:noop"))

    assert not await worker._claimer.tick()
    await bench.in_status(execution_id, "PENDING")

    worker._leases.drop(lapsed.claim.lease)
    assert await worker._claimer.tick()


async def test_a_lease_is_believed_no_longer_because_its_row_was_locked_when_it_was_to_be_renewed(
    dsn: str, pool: Pool
) -> None:
    execution_id = await make_execution(pool, status="RUNNING")
    claim = msgspec.structs.replace(
        a_claim(attempt_number=1, max_attempts=3),
        execution_id=execution_id, shard=shard_of(execution_id), lease_epoch=1,
    )  # fmt: skip
    leases, lease = keeper(dsn), held(claim, seconds_ago=LEASE_SECONDS / 2)
    before = lease.renewed_at
    leases.hold(lease)

    async with pool.acquire() as other, other.transaction():
        await other.execute(
            "SELECT FROM onthedot.executions WHERE execution_id = $1 FOR UPDATE", execution_id
        )
        await leases.tick()
        assert lease.renewed_at == before
    await leases.tick()

    assert lease.renewed_at > before
    assert leases.allows_beginning(claim.lease)
    await leases._sign_off()  # as its thread would, if it ran
