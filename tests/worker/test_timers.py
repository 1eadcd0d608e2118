"""Whoever asks to stop an execution as it is armed finds it in no worker's memory for ever after."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from app.db.pools import Pool, open_pool
from app.db.queries import load
from app.db.stores.execution_control import Cancelling
from app.db.stores.executions import ExecutionStore
from app.domain.claims import Claim, LeaseId
from app.domain.hints import Ready
from app.domain.statuses import Status
from app.worker.timers import Timers
from tests.chaos.proxy import Proxy
from tests.polling import eventually
from tests.worker.conftest import Bench
from tests.worker.test_worker import cancel

AHEAD_SECONDS = 5.0


class Armed:
    """Timers whose database is behind a proxy, and what they did with claims."""

    def __init__(self, bench: Bench, behind: Pool, claim: Claim, proxy: Proxy) -> None:
        self.claim, self.proxy = claim, proxy
        self.fired: list[Claim] = []
        self.cancelled: list[Claim] = []
        self.lost: list[LeaseId] = []
        self.timers = Timers(
            executions=ExecutionStore(behind),
            clock=bench.clock,
            fire=self.fired.extend,
            lost=self.lost.append,
            cancelled=self.cancelled.append,
        )

    async def is_settled(self) -> bool:
        """Tell whether anything has become of the claim."""
        return bool(self.fired or self.cancelled or self.lost)


@pytest.fixture
def proxy(dsn: str) -> Iterator[Proxy]:
    with Proxy(dsn) as made:
        yield made


@pytest.fixture
async def behind(proxy: Proxy) -> AsyncIterator[Pool]:
    pool = await open_pool(proxy.dsn, size=2, application_name="timers", statement_timeout_seconds=5)
    yield pool
    await pool.close()


@pytest.fixture
async def armed(bench: Bench, proxy: Proxy, behind: Pool) -> AsyncIterator[Armed]:
    """Lease an execution that is due in a second, ahead of its instant, and have it fired then."""
    execution_id = await bench.job(await bench.task("builtin:noop"), in_seconds=1.0)
    await behind.fetch(load("arm"), 0, [], [])  # prepared before anything comes between
    made = Armed(bench, behind, await _leased_ahead(bench, execution_id), proxy)
    made.timers.add(made.claim)
    yield made
    await made.timers.take_back()


async def _leased_ahead(bench: Bench, execution_id: UUID) -> Claim:
    store = ExecutionStore(bench.pool)
    row = await bench.pool.fetchrow(
        "SELECT shard, queue, priority, due_at FROM onthedot.executions WHERE execution_id = $1", execution_id
    )
    (claim,) = await store.claim_ahead(
        Ready(*row, limited=False),
        limit=1,
        worker_id=uuid4(),
        lease_seconds=30,
        lookahead_seconds=AHEAD_SECONDS,
    )
    return claim


async def test_what_is_cancelled_while_it_is_being_armed_does_not_run(bench: Bench, armed: Armed) -> None:
    armed.proxy.silent = frozenset({"down"})
    await bench.in_status(armed.claim.execution_id, "RUNNING")
    assert await cancel(bench, armed.claim.execution_id) is Cancelling.REQUESTED
    armed.timers.cancel(armed.claim.execution_id)
    armed.proxy.silent = frozenset()

    await eventually(armed.is_settled)
    assert not armed.fired
    assert [claim.execution_id for claim in armed.cancelled] == [armed.claim.execution_id]
    assert not len(armed.timers)


async def test_what_is_cancelled_when_the_reply_to_its_arming_is_lost_is_ended(
    bench: Bench, armed: Armed
) -> None:
    loss = armed.proxy.lose("-- arm", "reply")
    await asyncio.to_thread(loss.done.wait, 30)
    assert await cancel(bench, armed.claim.execution_id) is Cancelling.REQUESTED
    armed.timers.cancel(armed.claim.execution_id)

    await eventually(armed.is_settled)
    assert not armed.fired
    assert [claim.attempt_number for claim in armed.cancelled] == [1]


async def test_what_is_cancelled_before_its_instant_is_lost(bench: Bench, armed: Armed) -> None:
    assert await cancel(bench, armed.claim.execution_id) is Cancelling.CANCELLED
    armed.timers.cancel(armed.claim.execution_id)

    await eventually(armed.is_settled)
    assert armed.lost == [armed.claim.lease]
    assert not armed.cancelled
    assert not armed.fired


async def test_a_worker_leaves_nothing_running_that_is_cancelled_as_the_reply_to_its_arming_is_lost(
    bench: Bench, proxy: Proxy, behind: Pool
) -> None:
    worker = await replace(bench, dsn=proxy.dsn, pool=behind).start_worker()
    loss = proxy.lose("-- arm", "reply")
    execution_id = await bench.job(await bench.task("builtin:noop"), in_seconds=1.0)
    await asyncio.to_thread(loss.done.wait, 30)
    assert await cancel(bench, execution_id) is Cancelling.REQUESTED
    worker.on_cancels([execution_id])

    ended = await bench.ended(execution_id)

    assert (ended.status, ended.attempt_number) == (Status.CANCELLED, 1)
    assert ended.error_details == "cancelled by ada"
