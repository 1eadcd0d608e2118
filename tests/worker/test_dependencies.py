"""Jobs after other jobs: each execution waits for the occurrence that belongs to its own instant."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.db.notifier import HintSender
from app.db.reads.explanations import ExplanationReads
from app.db.reads.paces import PaceReads
from app.db.stores.dependencies import DependencyStore
from app.db.stores.execution_control import Cancelling, ExecutionControl
from app.db.stores.job_control import JobControl
from app.domain.access import Actor
from app.domain.errors import InvalidInput
from app.domain.job_changes import Change
from app.maintenance.dependencies import DependencyKeeper
from tests.factories import make_executions, make_finished, make_job, now_of
from tests.worker.conftest import OWNER, Bench

ADA = Actor("user:ada")
STATUS = "SELECT status FROM onthedot.executions WHERE execution_id = $1"


@pytest.fixture
async def tasks(bench: Bench) -> None:
    """Make what jobs run."""
    await bench.pool.execute(OWNER)
    for handler in ("builtin:noop", "builtin:sleep"):
        await bench.task(handler)
    await bench.task("builtin:fail", max_retries=0)


async def look(bench: Bench) -> None:
    """Have maintenance look."""
    keeper = DependencyKeeper(DependencyStore(bench.pool), hints=HintSender(bench.pool), clock=bench.clock)
    await keeper.tick()


async def job_of(bench: Bench, execution_id: UUID) -> UUID:
    job_id: UUID = await bench.pool.fetchval(
        """SELECT job_id FROM onthedot.executions WHERE execution_id = $1 UNION ALL
           SELECT job_id FROM onthedot.execution_history WHERE execution_id = $1""",
        execution_id,
    )
    return job_id


async def after(bench: Bench, *upstream: UUID, **fields: Any) -> UUID:
    """Create a job after the jobs of these executions; return its execution."""
    jobs = [str(await job_of(bench, each)) for each in upstream]
    return await bench.job("builtin-noop", depends_on=jobs, **fields)


@pytest.mark.usefixtures("tasks")
async def test_a_job_begins_when_the_jobs_before_it_have_completed(bench: Bench) -> None:
    """No maintenance runs here: a worker that ends what others wait for lets them begin, once it knows of them."""
    first = await bench.job("builtin-noop")
    second = await bench.job("builtin-sleep", parameters={"seconds": 1.5})
    last = await after(bench, first, second)
    assert await bench.pool.fetchval(STATUS, last) == "BLOCKED"

    await bench.start_worker()
    done = await bench.ended(last)

    assert done.status == "COMPLETED"
    for each in (first, second):
        before = await bench.ended(each)
        assert before.completed_at
        assert done.started_at
        assert before.completed_at <= done.started_at


@pytest.mark.usefixtures("tasks")
async def test_a_job_after_one_that_has_ended_is_found_by_maintenance(bench: Bench) -> None:
    await bench.start_worker()
    first = await bench.job("builtin-noop")
    await bench.ended(first)
    last = await after(bench, first)

    await look(bench)

    assert (await bench.ended(last)).status == "COMPLETED"


@pytest.mark.usefixtures("tasks")
async def test_what_waits_for_a_job_that_failed_is_skipped_and_says_so(bench: Bench) -> None:
    await bench.start_worker()
    first = await bench.job("builtin-fail")
    await bench.ended(first)
    last = await after(bench, first)
    further = await after(bench, last)

    await look(bench)
    await look(bench)

    skipped = await bench.ended(last)
    assert (skipped.status, skipped.disposition) == ("SKIPPED", "cancelled")
    assert skipped.error
    assert skipped.error.type == "UpstreamFailed"
    assert str(first) in skipped.error.message
    assert (await bench.ended(further)).status == "SKIPPED"


@pytest.mark.usefixtures("tasks")
async def test_what_is_run_by_hand_waits_for_nothing(bench: Bench) -> None:
    first = await bench.job("builtin-sleep", in_seconds=3600)
    last = await after(bench, first)
    control = JobControl(bench.pool, horizon_seconds=60)
    by_hand = UUID(int=last.int ^ 1 << 70)

    await control.run(await job_of(bench, last), by_hand, now=bench.clock.now(), actor=ADA)

    assert await bench.pool.fetchval(STATUS, by_hand) == "PENDING"
    assert await bench.pool.fetchval(STATUS, last) == "BLOCKED"


@pytest.mark.usefixtures("tasks")
async def test_what_waits_can_be_cancelled(bench: Bench) -> None:
    first = await bench.job("builtin-sleep", in_seconds=3600)
    last = await after(bench, first)

    outcome = await ExecutionControl(bench.pool).cancel(
        last, error="{}", now=bench.clock.now(), actor=ADA, reason=None
    )

    assert outcome is Cancelling.CANCELLED


async def occurrences(bench: Bench, hour: datetime) -> tuple[UUID, UUID, UUID]:
    """Make an hourly job, planned beyond this hour, and a daily one after it; return both, and what waits of it."""
    hourly = await make_job(
        bench.pool,
        schedule_type="RECURRING",
        expression="0 * * * *",
        every_seconds=None,
        starts_at=None,
        materialized_until=hour + timedelta(hours=1),
    )
    daily = await make_job(
        bench.pool,
        schedule_type="RECURRING",
        expression="0 10 * * *",
        every_seconds=None,
        starts_at=None,
        depends_on=[hourly],
    )
    (waiting,) = await make_executions(
        bench.pool,
        [{"job_id": daily, "status": "BLOCKED", "scheduled_time": hour, "task_id": "builtin-noop"}],
    )
    return hourly, daily, waiting


@pytest.mark.usefixtures("tasks")
async def test_an_execution_is_bound_to_the_run_of_its_own_instant_whatever_else_runs(bench: Bench) -> None:
    """An hourly job and a daily one after it: that an old hour is run again by hand matters to nobody."""
    hour = (await now_of(bench.pool)).replace(minute=0, second=0, microsecond=0)
    hourly, _, waiting = await occurrences(bench, hour)
    old = hour - timedelta(hours=7)
    await make_finished(bench.pool, job_id=hourly, scheduled_time=old, status="FAILED", disposition="failed")
    await make_finished(
        bench.pool, job_id=hourly, scheduled_time=hour, trigger="manual", run_key="again", status="FAILED"
    )
    (its_own,) = await make_executions(
        bench.pool, [{"job_id": hourly, "scheduled_time": hour, "task_id": "builtin-noop"}]
    )

    await look(bench)
    assert await bench.pool.fetchval(STATUS, waiting) == "BLOCKED"
    paces = PaceReads(bench.engine, bench.clock)
    (reason,) = (await ExplanationReads(bench.engine, paces, bench.clock).get(waiting)).reasons
    assert (reason.code, reason.link) == ("dependency", f"/api/v1/executions/{its_own}")
    await bench.start_worker()
    await bench.ended(its_own)
    await look(bench)

    assert (await bench.ended(waiting)).status == "COMPLETED"


@pytest.mark.usefixtures("tasks")
async def test_nothing_begins_before_it_is_known_what_the_job_before_has_planned(bench: Bench) -> None:
    hour = (await now_of(bench.pool)).replace(minute=0, second=0, microsecond=0)
    hourly, _, waiting = await occurrences(bench, hour)
    before = hour - timedelta(hours=1)
    await make_finished(bench.pool, job_id=hourly, scheduled_time=before)
    planned = "UPDATE onthedot.jobs SET materialized_until = $2, materialize_at = now() WHERE job_id = $1"
    await bench.pool.execute(planned, hourly, before)

    await look(bench)
    assert await bench.pool.fetchval(STATUS, waiting) == "BLOCKED"
    await bench.pool.execute(planned, hourly, hour)
    await look(bench)

    assert await bench.pool.fetchval(STATUS, waiting) == "PENDING"


@pytest.mark.usefixtures("tasks")
async def test_jobs_cannot_wait_for_each_other(bench: Bench) -> None:
    first = await bench.job("builtin-noop", in_seconds=3600)
    second = await after(bench, first)
    third = await after(bench, second)
    jobs = [await job_of(bench, each) for each in (first, second, third)]
    control = JobControl(bench.pool, horizon_seconds=60)

    for upstream in (jobs[0], jobs[1], jobs[2]):
        with pytest.raises(InvalidInput) as error:
            await control.change(jobs[0], Change({"depends_on": [upstream]}), if_version=None, actor=ADA)
        assert (error.value.code, error.value.pointer) == ("circular_jobs", "/depends_on")
        assert str(upstream) in error.value.detail
    assert await bench.pool.fetchval("SELECT depends_on FROM onthedot.jobs WHERE job_id = $1", jobs[0]) == []


@pytest.mark.usefixtures("tasks")
async def test_a_change_of_what_it_depends_on_holds_for_what_waits(bench: Bench) -> None:
    first = await bench.job("builtin-noop", in_seconds=3600)
    second = await after(bench, first)
    job = await job_of(bench, second)
    control = JobControl(bench.pool, horizon_seconds=60)

    await control.change(job, Change({"depends_on": []}), if_version=None, actor=ADA)
    assert await bench.pool.fetchval(STATUS, second) == "PENDING"
    await control.change(
        job, Change({"depends_on": [await job_of(bench, first)]}), if_version=None, actor=ADA
    )

    assert await bench.pool.fetchval(STATUS, second) == "BLOCKED"
