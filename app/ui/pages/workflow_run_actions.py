"""What is done to runs of workflows: cancelled, run again in part, steps passed over."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from app.db.reads.workflow_runs import RunDetail, WorkflowRunReads
from app.domain.access import Role
from app.domain.errors import Conflict, InvalidInput
from app.domain.workflows.progress import RunStatus
from app.intake.workflows import WorkflowIntake
from app.ui.actions import Verb, ask_back, ask_whether
from app.ui.flash import Flash
from app.ui.forms import Form
from app.ui.pages.workflow_actions import asked_reason
from app.ui.pages.workflow_step import step_of
from app.ui.visit import Visit, done
from app.ui.words import counted
from app.ui.workflow_words import again, workflow_name

MOST_NAMED = 40
"""Of the steps that run again."""
CANCEL = Verb(
    "Cancel",
    "cancelled",
    (
        "Steps that have not begun will never run. Those that run are asked to stop; what they have done stays done.",
        "The run is over when the last of them has ended. Its steps can be run again later.",
    ),
    asks_reason=True,
)
SKIP = Verb(
    "Skip",
    "skipped",
    (
        "What comes after it goes on as if it had succeeded; a result it has none, and who refers to it gets null.",
        "A run that is over goes on.",
    ),
    asks_reason=True,
)


@get("/workflow-runs/{run_id:uuid}/cancel")
async def ask_to_cancel_run(
    visit: NamedDependency[Visit], run_id: FromPath[UUID], run_reads: NamedDependency[WorkflowRunReads]
) -> Template:
    """Ask why a run shall be cancelled."""
    return await _ask_to_cancel(visit, run_id, run_reads)


@post("/workflow-runs/{run_id:uuid}/cancel")
async def cancel_run(
    visit: NamedDependency[Visit],
    run_id: FromPath[UUID],
    run_reads: NamedDependency[WorkflowRunReads],
    workflows: NamedDependency[WorkflowIntake],
) -> Response[Any] | Template:
    """Cancel a run."""
    visit.principal.require(Role.OPERATOR)
    form = await Form.sent(visit.request)
    try:
        await workflows.cancel_run(run_id, reason=asked_reason(form), by=visit.principal)
    except InvalidInput as error:
        return await _ask_to_cancel(visit, run_id, run_reads, refused=form.refused(error))
    run = await run_reads.get(run_id, with_results=False)
    stops = run.status is RunStatus.RUNNING
    flash = Flash("What runs of it was asked to stop." if stops else "Cancelled.")
    return done(visit, flash, to=form.back_to(f"/workflow-runs/{run_id}"))


@get("/workflow-runs/{run_id:uuid}/retry")
async def ask_to_retry_run(
    visit: NamedDependency[Visit], run_id: FromPath[UUID], run_reads: NamedDependency[WorkflowRunReads]
) -> Template:
    """Say which steps run again where those that failed do."""
    run = await _run(visit, run_id, run_reads)
    return await _ask_to_retry(visit, run, again(run, None), url=f"/workflow-runs/{run_id}/retry")


@post("/workflow-runs/{run_id:uuid}/retry")
async def retry_run(
    visit: NamedDependency[Visit], run_id: FromPath[UUID], workflows: NamedDependency[WorkflowIntake]
) -> Response[Any]:
    """Have the steps that failed or were cancelled run again."""
    return await _retry(visit, run_id, None, workflows)


@get("/workflow-runs/{run_id:uuid}/steps/{step:str}/retry")
async def ask_to_retry_step(
    visit: NamedDependency[Visit],
    run_id: FromPath[UUID],
    step: FromPath[str],
    run_reads: NamedDependency[WorkflowRunReads],
) -> Template:
    """Say which steps run again from one on."""
    run = await _run(visit, run_id, run_reads)
    step_of(run, step)
    url = f"/workflow-runs/{run_id}/steps/{step}/retry"
    return await _ask_to_retry(visit, run, again(run, [step]), url=url)


@post("/workflow-runs/{run_id:uuid}/steps/{step:str}/retry")
async def retry_step(
    visit: NamedDependency[Visit],
    run_id: FromPath[UUID],
    step: FromPath[str],
    run_reads: NamedDependency[WorkflowRunReads],
    workflows: NamedDependency[WorkflowIntake],
) -> Response[Any]:
    """Have a step run again, and all that come after it."""
    step_of(await _run(visit, run_id, run_reads), step)
    return await _retry(visit, run_id, [step], workflows)


@get("/workflow-runs/{run_id:uuid}/steps/{step:str}/skip")
async def ask_to_skip_step(
    visit: NamedDependency[Visit],
    run_id: FromPath[UUID],
    step: FromPath[str],
    run_reads: NamedDependency[WorkflowRunReads],
) -> Template:
    """Ask why a step shall be passed over."""
    return await _ask_to_skip(visit, run_id, step, run_reads)


@post("/workflow-runs/{run_id:uuid}/steps/{step:str}/skip")
async def skip_step(
    visit: NamedDependency[Visit],
    run_id: FromPath[UUID],
    step: FromPath[str],
    run_reads: NamedDependency[WorkflowRunReads],
    workflows: NamedDependency[WorkflowIntake],
) -> Response[Any] | Template:
    """Pass a step over."""
    step_of(await _run(visit, run_id, run_reads), step)
    form = await Form.sent(visit.request)
    try:
        await workflows.skip_step(run_id, step, reason=asked_reason(form), by=visit.principal)
    except InvalidInput as error:
        return await _ask_to_skip(visit, run_id, step, run_reads, refused=form.refused(error))
    return done(visit, Flash(f"Passed over: {step}."), to=form.back_to(f"/workflow-runs/{run_id}"))


async def _run(visit: Visit, run_id: UUID, run_reads: WorkflowRunReads) -> RunDetail:
    visit.principal.require(Role.OPERATOR)
    return await run_reads.get(run_id, with_results=False)


async def _ask_to_cancel(
    visit: Visit, run_id: UUID, run_reads: WorkflowRunReads, *, refused: Form | None = None
) -> Template:
    run = await _run(visit, run_id, run_reads)
    if run.status is not RunStatus.RUNNING:
        raise Conflict(f"the run is over: {run.status}")
    url = f"/workflow-runs/{run_id}/cancel"
    return await ask_back(visit, CANCEL, "run", url=url, names=[_name(run)], refused=refused)


async def _ask_to_retry(visit: Visit, run: RunDetail, keys: Sequence[str], *, url: str) -> Template:
    if not keys:
        raise Conflict("no step of the run has failed or was cancelled")
    statuses = {step.key: step.status.lower() for step in run.steps}
    verb = Verb("Run again", "run again", _what_again_does(run, keys))
    names = [f"{key}, now {statuses[key]}" for key in keys[:MOST_NAMED]]
    title = f"Run {counted(len(keys), 'step')} again?"
    return await ask_whether(visit, verb, title, url=url, names=names, count=len(keys))


def _what_again_does(run: RunDetail, keys: Sequence[str]) -> tuple[str, ...]:
    kept = sum(step.status == "COMPLETED" for step in run.steps if step.key not in set(keys))
    rest = f" What has completed otherwise, {counted(kept, 'step')}, stays as it is." if kept else ""
    return (f"They run in their order, with the definition that the run began with.{rest}",)


async def _retry(
    visit: Visit, run_id: UUID, steps: Sequence[str] | None, workflows: WorkflowIntake
) -> Response[Any]:
    visit.principal.require(Role.OPERATOR)
    form = await Form.sent(visit.request)
    await workflows.retry_run(run_id, steps, by=visit.principal)
    return done(visit, Flash("The run goes on."), to=form.back_to(f"/workflow-runs/{run_id}"))


async def _ask_to_skip(
    visit: Visit, run_id: UUID, step: str, run_reads: WorkflowRunReads, *, refused: Form | None = None
) -> Template:
    step_of(await _run(visit, run_id, run_reads), step)
    url = f"/workflow-runs/{run_id}/steps/{step}/skip"
    return await ask_back(visit, SKIP, "step", url=url, names=[step], refused=refused)


def _name(run: RunDetail) -> str:
    return f"{workflow_name(run.name, run.workflow_id)}, begun {run.started_at:%Y-%m-%d %H:%M:%S} UTC"


WORKFLOW_RUN_ACTIONS = [
    ask_to_cancel_run,
    cancel_run,
    ask_to_retry_run,
    retry_run,
    ask_to_retry_step,
    retry_step,
    ask_to_skip_step,
    skip_step,
]
