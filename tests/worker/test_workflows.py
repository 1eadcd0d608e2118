"""Runs of workflows by a whole worker: in order, with what was returned handed on, stopped, tried again."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app import Context
from app.db.notifier import HintSender
from app.db.reads.workflow_runs import RunDetail, StepView, WorkflowRunReads
from app.db.stores.workflows.control import RunControl
from app.db.stores.workflows.definitions import DefinitionStore
from app.db.stores.workflows.runs import RunStore
from app.domain.access import Actor
from app.domain.claims import Claim
from app.domain.errors import Conflict, InvalidInput
from app.domain.ids import new_execution_id
from app.maintenance.workflows import WorkflowKeeper
from app.tasks import Handler, task
from tests.factories import make_workflow
from tests.polling import eventually
from tests.worker.conftest import OWNER, Bench

ADA = Actor("user:ada")
MENDED = "UPDATE onthedot.tasks SET execution_handler = 'builtin:noop' WHERE task_id = 'builtin-fail'"
ASKED_TO_STOP = "SELECT true FROM onthedot.executions WHERE cancel_requested_at IS NOT NULL"
BEGAN = "SELECT h.*, h.parameters::text AS parameters FROM onthedot.execution_history AS h WHERE execution_id = $1"
CANCEL_UNTOLD = """
    WITH ended AS (DELETE FROM onthedot.executions WHERE execution_id = $1 RETURNING *)
    INSERT INTO onthedot.execution_history
           (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
            scheduled_time, due_at, first_due_at, parameters, max_attempts, attempt_number, lease_epoch, completed_at)
    SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, 'CANCELLED', 'cancelled', trigger, run_key,
           scheduled_time, due_at, first_due_at, parameters, max_attempts, attempt_number, lease_epoch + 1, now()
      FROM ended"""


@pytest.fixture
async def tasks(bench: Bench) -> None:
    """Make what steps run."""
    await bench.pool.execute(OWNER)
    for handler in ("builtin:noop", "builtin:echo", "builtin:sleep"):
        await bench.task(handler)
    await bench.task("builtin:fail", max_retries=0)


async def begun(bench: Bench, *steps: Mapping[str, Any], **fields: Any) -> UUID:
    """Store a workflow that runs at once; return its run."""
    job = await make_workflow(bench.pool, *steps, user_id="t", **fields)
    assert job.execution_id is not None
    return job.execution_id


async def over(bench: Bench, run_id: UUID) -> RunDetail:
    """Wait until a run is over and return it."""

    async def probe() -> RunDetail | None:
        if not await bench.pool.fetchval(
            "SELECT true FROM onthedot.workflow_runs WHERE workflow_run_id = $1 AND status <> 'RUNNING'",
            run_id,
        ):
            return None
        return await WorkflowRunReads(bench.engine).get(run_id)

    return await eventually(probe)


async def running(bench: Bench, run_id: UUID, step: str) -> StepView:
    """Wait until a handler runs a step."""

    async def probe() -> StepView | None:
        rows = await bench.pool.fetch(
            "SELECT true FROM onthedot.executions WHERE status = 'RUNNING' AND run_key LIKE $1",
            f"w:{run_id}/{step}/%",
        )
        return steps_of(await WorkflowRunReads(bench.engine).get(run_id))[step] if rows else None

    return await eventually(probe)


def steps_of(run: RunDetail) -> dict[str, StepView]:
    return {step.key: step for step in run.steps}


def statuses(run: RunDetail) -> dict[str, str]:
    return {step.key: step.status for step in run.steps}


def control(bench: Bench) -> RunControl:
    return RunControl(bench.pool, DefinitionStore(), bench.clock)


def keeper(bench: Bench) -> WorkflowKeeper:
    runs = RunStore(bench.pool, DefinitionStore(), bench.clock)
    return WorkflowKeeper(runs, hints=HintSender(bench.pool))


async def claim_like(bench: Bench, run_id: UUID) -> Claim:
    """Return a claim like the one that began a run, of another execution of the workflow."""
    row = await bench.pool.fetchrow(BEGAN, run_id)
    assert row is not None
    claim = Claim(**{name: row.get(name) for name in Claim.__struct_fields__})
    new_id = new_execution_id(claim.job_id, bench.clock.unix_microseconds())
    return msgspec.structs.replace(claim, execution_id=new_id)


@pytest.mark.usefixtures("tasks")
async def test_results_are_handed_on_spread_out_and_brought_together(bench: Bench) -> None:
    await bench.start_worker()
    run_id = await begun(
        bench,
        {
            "key": "extract",
            "task_id": "builtin-echo",
            "parameters": {"rows": [3, 5], "day": {"$from": "parameters.day"}},
        },
        {
            "key": "double",
            "task_id": "builtin-echo",
            "depends_on": ["extract"],
            "map": {"$from": "extract.rows"},
            "parameters": {"row": {"$from": "item"}, "nth": {"$from": "index"}},
        },
        {
            "key": "load",
            "task_id": "builtin-echo",
            "depends_on": ["double"],
            "parameters": {"all": {"$from": "double"}, "first": {"$from": "double.0.row"}},
        },
        parameters={"day": "Tue"},
    )

    run = await over(bench, run_id)
    steps = steps_of(run)

    assert (run.status, run.trigger, run.parameters) == ("COMPLETED", "schedule", {"day": "Tue"})
    assert steps["extract"].result == {"rows": [3, 5], "day": "Tue"}
    assert steps["double"].result == [{"row": 3, "nth": 0}, {"row": 5, "nth": 1}]
    assert steps["load"].result == {"all": steps["double"].result, "first": 3}
    assert steps["double"].instances
    assert steps["double"].instances.by_status == {"COMPLETED": 2}
    began = await bench.ended(run_id)  # the workflow's own execution, under the run's id
    assert began.result == {"workflow_run_id": str(run_id)}
    assert began.job_id == run.workflow_id


@pytest.mark.usefixtures("tasks")
async def test_a_handler_knows_what_the_steps_before_have_returned(
    bench: Bench, register: dict[str, Handler]
) -> None:
    seen: list[Mapping[str, Any]] = []

    @task
    async def look(ctx: Context) -> None:
        seen.append(ctx.upstream)

    register["look"] = look
    await bench.task("python:look")
    await bench.start_worker()
    run_id = await begun(
        bench,
        {"key": "a", "task_id": "builtin-echo", "parameters": {"n": 1}},
        {"key": "b", "task_id": "builtin-fail"},
        {"key": "m", "task_id": "builtin-echo", "map": [1, 2], "parameters": {"n": {"$from": "item"}}},
        {"key": "look", "task_id": "python-look", "depends_on": ["a", "b", "m"], "when": "all_done"},
    )

    await over(bench, run_id)

    assert seen == [{"a": {"n": 1}, "b": None, "m": [{"n": 1}, {"n": 2}]}]
    other = await bench.job("python-look")
    await bench.ended(other)
    assert seen[1] == {}


@pytest.mark.usefixtures("tasks")
async def test_a_failure_skips_what_follows_but_for_who_waits_for_it(bench: Bench) -> None:
    await bench.start_worker()
    run_id = await begun(
        bench,
        {"key": "a", "task_id": "builtin-fail", "parameters": {"message": "disk full"}},
        {"key": "b", "task_id": "builtin-noop", "depends_on": ["a"]},
        {"key": "alert", "task_id": "builtin-echo", "depends_on": ["b"], "when": "any_failed"},
        {"key": "tidy", "task_id": "builtin-noop", "depends_on": ["a"], "when": "all_done"},
    )

    run = await over(bench, run_id)

    assert run.status == "FAILED"
    assert statuses(run) == {"a": "FAILED", "b": "SKIPPED", "alert": "COMPLETED", "tidy": "COMPLETED"}
    assert steps_of(run)["a"].cause == "disk full"
    assert steps_of(run)["b"].cause == "all_success: a FAILED"


@pytest.mark.usefixtures("tasks")
async def test_what_failed_runs_again_with_all_that_follows_and_nothing_else(bench: Bench) -> None:
    await bench.start_worker()
    run_id = await begun(
        bench,
        {"key": "a", "task_id": "builtin-noop"},
        {"key": "b", "task_id": "builtin-fail", "depends_on": ["a"]},
        {"key": "c", "task_id": "builtin-noop", "depends_on": ["b"]},
    )
    failed = await over(bench, run_id)
    await bench.pool.execute(
        "UPDATE onthedot.tasks SET execution_handler = 'builtin:noop' WHERE task_id = 'builtin-fail'"
    )

    wanted = [control(bench).retry(run_id, None, actor=ADA) for _ in range(20)]
    answers = await asyncio.gather(*wanted, return_exceptions=True)
    run = await over(bench, run_id)

    assert len([each for each in answers if isinstance(each, Conflict)]) == 19, answers
    assert run.status == "COMPLETED"
    rounds = {step.key: step.round for step in run.steps}
    assert rounds == {"a": 1, "b": 2, "c": 1}
    assert steps_of(run)["a"].execution_id == steps_of(failed)["a"].execution_id
    assert steps_of(run)["b"].execution_id != steps_of(failed)["b"].execution_id


@pytest.mark.usefixtures("tasks")
async def test_a_retry_from_a_step_takes_along_what_had_succeeded_after_it(bench: Bench) -> None:
    await bench.start_worker()
    run_id = await begun(
        bench,
        {"key": "a", "task_id": "builtin-noop"},
        {"key": "b", "task_id": "builtin-noop", "depends_on": ["a"]},
        {"key": "c", "task_id": "builtin-noop", "depends_on": ["b"]},
    )
    await over(bench, run_id)

    await control(bench).retry(run_id, ["b"], actor=ADA)
    run = await over(bench, run_id)

    assert {step.key: step.round for step in run.steps} == {"a": 1, "b": 2, "c": 2}
    with pytest.raises(InvalidInput) as error:
        await control(bench).retry(run_id, ["b", "x"], actor=ADA)
    assert error.value.pointer == "/steps/1"
    with pytest.raises(Conflict):
        await control(bench).retry(run_id, None, actor=ADA)


@pytest.mark.usefixtures("tasks")
async def test_a_step_that_is_passed_over_lets_the_run_go_on(bench: Bench) -> None:
    await bench.start_worker()
    run_id = await begun(
        bench,
        {"key": "a", "task_id": "builtin-fail"},
        {
            "key": "b",
            "task_id": "builtin-echo",
            "depends_on": ["a"],
            "parameters": {"a": {"$from": "a.rows"}},
        },
    )
    await over(bench, run_id)

    await control(bench).skip(run_id, "a", cause="by ada: known", reason="known", actor=ADA)
    run = await over(bench, run_id)

    assert run.status == "COMPLETED"
    assert statuses(run) == {"a": "SKIPPED", "b": "COMPLETED"}
    assert steps_of(run)["a"].cause == "passed over by ada: known"
    assert steps_of(run)["b"].result == {"a": None}
    with pytest.raises(Conflict):
        await control(bench).skip(run_id, "a", cause="", reason=None, actor=ADA)


@pytest.mark.usefixtures("tasks")
async def test_cancelling_a_run_stops_what_runs_and_begins_nothing_more(bench: Bench) -> None:
    worker = await bench.start_worker()
    run_id = await begun(
        bench,
        {"key": "a", "task_id": "builtin-sleep", "parameters": {"seconds": 600}},
        {"key": "b", "task_id": "builtin-noop", "depends_on": ["a"]},
        {"key": "c", "task_id": "builtin-noop"},
    )
    await running(bench, run_id, "a")

    moved = await control(bench).cancel(run_id, cause="by ada", reason=None, actor=ADA)
    worker.on_cancels(moved.stopping)
    run = await over(bench, run_id)

    assert (run.status, run.cause) == ("CANCELLED", "by ada")
    assert statuses(run) == {"a": "CANCELLED", "b": "CANCELLED", "c": "COMPLETED"}
    with pytest.raises(Conflict):
        await control(bench).cancel(run_id, cause="again", reason=None, actor=ADA)


@pytest.mark.usefixtures("tasks")
async def test_a_run_that_waits_for_a_worker_is_over_at_once_when_it_is_cancelled(bench: Bench) -> None:
    await bench.start_worker()
    await bench.pool.execute("UPDATE onthedot.tasks SET queue = 'bulk' WHERE task_id = 'builtin-noop'")
    await bench.pool.execute("UPDATE onthedot.queues SET paused_at = now() WHERE queue = 'bulk'")
    run_id = await begun(bench, {"key": "a", "task_id": "builtin-noop"})
    await eventually(lambda: bench.pool.fetchval("SELECT true FROM onthedot.workflow_runs"))

    await control(bench).cancel(run_id, cause="by ada", reason=None, actor=ADA)

    run = await WorkflowRunReads(bench.engine).get(run_id)
    assert (run.status, statuses(run)) == ("CANCELLED", {"a": "CANCELLED"})
    assert await bench.pool.fetchval("SELECT count(*) FROM onthedot.executions") == 0


@pytest.mark.usefixtures("tasks")
async def test_a_run_past_its_deadline_fails(bench: Bench) -> None:
    worker = await bench.start_worker()
    run_id = await begun(
        bench,
        {"key": "a", "task_id": "builtin-sleep", "parameters": {"seconds": 600}},
        {"key": "b", "task_id": "builtin-noop", "depends_on": ["a"]},
        deadline_seconds=0.2,
    )
    execution = await running(bench, run_id, "a")
    assert execution.execution_id is not None

    async def stopping() -> bool:
        await keeper(bench).tick()
        return bool(
            await bench.pool.fetchval(
                "SELECT true FROM onthedot.executions WHERE cancel_requested_at IS NOT NULL"
            )
        )

    await eventually(stopping)
    worker.on_cancels([execution.execution_id])
    run = await over(bench, run_id)

    assert run.status == "FAILED"
    assert run.cause
    assert "0.2 s" in run.cause
    assert statuses(run) == {"a": "CANCELLED", "b": "CANCELLED"}


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize(
    ("overlap", "first", "second"),
    [
        ("allow", "COMPLETED", "COMPLETED"),
        ("skip", "COMPLETED", "CANCELLED"),
        ("queue", "COMPLETED", "COMPLETED"),
        ("cancel_running", "CANCELLED", "COMPLETED"),
    ],
)
async def test_runs_of_a_workflow_overlap_as_it_says(
    bench: Bench, register: dict[str, Handler], overlap: str, first: str, second: str
) -> None:
    gate, begun_here = asyncio.Event(), list[UUID]()

    @task
    async def wait(ctx: Context) -> None:
        begun_here.append(ctx.execution_id)
        if len(begun_here) == 1:
            await gate.wait()

    register["wait"] = wait
    await bench.task("python:wait")
    worker = await bench.start_worker()
    job = await make_workflow(
        bench.pool, {"key": "a", "task_id": "python-wait"}, user_id="t", overlap=overlap
    )
    assert job.execution_id is not None
    await running(bench, job.execution_id, "a")

    runs = RunStore(bench.pool, DefinitionStore(), bench.clock)
    claim = await claim_like(bench, job.execution_id)
    moved = await runs.begin(claim)
    worker.on_cancels(moved.stopping)
    if overlap != "cancel_running":
        under_way = await bench.pool.fetchval("SELECT count(*) FROM onthedot.workflow_runs WHERE is_queued")
        assert under_way == (overlap == "queue")
        gate.set()

    assert (await over(bench, job.execution_id)).status == first
    later = await over(bench, claim.execution_id)
    assert later.status == second
    if overlap == "skip":
        assert later.cause
        assert str(job.execution_id) in later.cause


@pytest.mark.usefixtures("tasks")
async def test_what_nobody_told_is_found_by_maintenance(bench: Bench) -> None:
    """As after a crash between the end of a step and its run: an execution that somebody cancels tells nobody."""
    await bench.start_worker()
    run_id = await begun(
        bench,
        {"key": "a", "task_id": "builtin-sleep", "parameters": {"seconds": 600}},
        {"key": "b", "task_id": "builtin-noop", "depends_on": ["a"], "when": "all_done"},
    )
    step = await running(bench, run_id, "a")
    await bench.pool.execute(CANCEL_UNTOLD, step.execution_id)

    await keeper(bench).tick()
    run = await over(bench, run_id)

    assert statuses(run) == {"a": "CANCELLED", "b": "COMPLETED"}


@pytest.mark.usefixtures("tasks")
async def test_a_task_that_is_gone_fails_its_step(bench: Bench) -> None:
    await bench.start_worker()
    await bench.task("builtin:echo", task_id="gone")
    run_id = await begun(
        bench,
        {"key": "a", "task_id": "builtin-sleep", "parameters": {"seconds": 0.2}},
        {"key": "b", "task_id": "gone", "depends_on": ["a"]},
        {"key": "c", "task_id": "builtin-noop", "depends_on": ["b"]},
    )
    await bench.pool.execute("DELETE FROM onthedot.tasks WHERE task_id = 'gone'")

    run = await over(bench, run_id)

    assert statuses(run) == {"a": "COMPLETED", "b": "FAILED", "c": "SKIPPED"}
    assert "there is no task gone" in (steps_of(run)["b"].cause or "")


@pytest.mark.usefixtures("tasks")
async def test_a_second_attempt_to_begin_a_run_begins_no_second(bench: Bench) -> None:
    await bench.start_worker()
    run_id = await begun(bench, {"key": "a", "task_id": "builtin-noop"})
    await over(bench, run_id)
    claim = await claim_like(bench, run_id)

    moved = await RunStore(bench.pool, DefinitionStore(), bench.clock).begin(
        msgspec.structs.replace(claim, execution_id=run_id)
    )

    assert moved.ready == []
    assert await bench.pool.fetchval("SELECT count(*) FROM onthedot.workflow_runs") == 1
    ran = await bench.pool.fetchval(
        "SELECT count(*) FROM onthedot.execution_history WHERE trigger = 'workflow'"
    )
    assert ran == 1


@pytest.mark.usefixtures("tasks")
async def test_a_fan_out_joins_after_its_last_end_though_some_are_tried_again(
    bench: Bench, register: dict[str, Handler]
) -> None:
    ended: list[int] = []

    @task
    async def flaky(ctx: Context) -> None:
        if ctx.attempt_number == 1 and ctx.parameters["n"] % 50 == 0:
            raise RuntimeError("once more")
        ended.append(ctx.parameters["n"])

    @task
    async def join(_: Context) -> int:
        return len(ended)

    register |= {"flaky": flaky, "join": join}
    await bench.task("python:flaky", retry_delay_seconds=0.05, retry_policy="fixed")
    await bench.task("python:join")
    await bench.start_worker()
    run_id = await begun(
        bench,
        {
            "key": "m",
            "task_id": "python-flaky",
            "map": list(range(500)),
            "parameters": {"n": {"$from": "item"}},
        },
        {"key": "z", "task_id": "python-join", "depends_on": ["m"]},
    )

    run = await over(bench, run_id)

    assert steps_of(run)["z"].result == 500
    assert run.status == "COMPLETED"
