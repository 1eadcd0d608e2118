"""Programs that ask the API and people who ask `audit.attempts` are told the same of every attempt."""

from uuid import uuid4

import msgspec
import pytest

from app.db.reads.attempts import AttemptView
from app.db.reads.executions import ErrorView
from app.db.stores.executions import ExecutionStore, Settlement
from app.domain.claims import Claim
from app.domain.failures import Failure
from app.domain.statuses import Disposition, Status
from tests.api.conftest import Site
from tests.db.bench import PLACE, Bench
from tests.factories import now_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

VIEW = """SELECT attempt_number, worker_id, started_at, ended_at, outcome, error, lease_epoch
            FROM audit.attempts WHERE execution_id = $1 ORDER BY attempt_number"""
ERRORS = {"failed": RuntimeError("no"), "timeout": TimeoutError("too long")}


async def lose(bench: Bench) -> None:
    """Let the worker die: the reaper finds what it ran."""
    await bench.lapse()
    assert (await bench.store.reap(PLACE.shard, limit=10)).transitions == 1


async def end(site: Site, bench: Bench, claim: Claim, outcome: str | None) -> None:
    """Let an attempt come to an outcome, the way it comes to it in earnest; None: it runs on."""
    match outcome:
        case "completed":
            assert await bench.settle(claim)
        case "failed" | "timeout":
            error = msgspec.json.encode(Failure.of(ERRORS[outcome])).decode()
            await settle(bench, claim, Status.FAILED, Disposition.FAILED, error)
        case "lost":
            await lose(bench)
        case "cancelled":
            answer = await site.post(f"/executions/{claim.execution_id}/actions/cancel", {})
            assert answer.status_code == 202
            await settle(bench, claim, Status.CANCELLED, Disposition.CANCELLED, None)


async def settle(
    bench: Bench, claim: Claim, status: Status, disposition: Disposition, error: str | None
) -> None:
    """Write down the end of an execution, as its worker does."""
    now = await now_of(bench.pool)
    assert await bench.store.settle([Settlement(claim, status, disposition, now, now, 1.5, error=error)])


@pytest.mark.parametrize("outcome", ["completed", "failed", "timeout", "lost", "cancelled", None])
async def test_api_and_view_say_the_same_of_every_attempt(site: Site, outcome: str | None) -> None:
    bench = Bench(site.pool, ExecutionStore(site.pool), uuid4())
    [execution_id] = await bench.make({"max_attempts": 2})
    await bench.claim()
    await lose(bench)
    [second] = await bench.claim()
    await end(site, bench, second, outcome)

    answer = (await site.get(f"/executions/{execution_id}/attempts")).json()
    told = msgspec.convert(answer["items"], list[AttemptView])

    assert [attempt.outcome for attempt in told] == ["lost", outcome]
    shown = [dict(row) for row in await site.pool.fetch(VIEW, execution_id)]
    for row in shown:
        row["error"] = msgspec.json.decode(row["error"] or "null", type=ErrorView | None)
        row["outcome"] = None if row["outcome"] == "running" else row["outcome"]
    assert told == [AttemptView(**row) for row in shown]
    assert all(attempt.started_at for attempt in told)
    assert bool(told[-1].error) == (outcome not in {"completed", None})
    await site.pool.execute("DELETE FROM onthedot.executions")
