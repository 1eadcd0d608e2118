"""What is done to workflows: run, paused, resumed, deleted."""

from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from app.db.reads.workflows import WorkflowReads
from app.domain.access import Role
from app.domain.errors import InvalidInput
from app.intake.changes import ChangeIntake
from app.intake.workflows import WorkflowIntake
from app.ui.actions import Verb, ask_back, asked_until
from app.ui.flash import Flash
from app.ui.forms import Form
from app.ui.pages.job_actions import LONGEST_REASON
from app.ui.visit import Visit, done, moved
from app.ui.workflow_words import workflow_name

PAUSE = Verb(
    "Pause",
    "paused",
    ("Its schedule begins no run until it is resumed; runs that are under way go on.",),
    asks_reason=True,
    asks_until=True,
)
DELETE = Verb(
    "Delete",
    "deleted",
    ("No run begins any more; those under way go on. What it has run stays in the history.",),
    is_dangerous=True,
)


@post("/workflows/{workflow_id:uuid}/run")
async def run_workflow(
    visit: NamedDependency[Visit], workflow_id: FromPath[UUID], workflows: NamedDependency[WorkflowIntake]
) -> Response[Any]:
    """Begin a run now."""
    visit.principal.require(Role.OPERATOR)
    form = await Form.sent(visit.request)
    run_id = await workflows.run(workflow_id, None, by=visit.principal)
    flash = Flash("Started.", link=f"/workflow-runs/{run_id}", link_text="Its run")
    return done(visit, flash, to=form.back_to(f"/workflows/{workflow_id}"))


@post("/workflows/{workflow_id:uuid}/resume")
async def resume_workflow(
    visit: NamedDependency[Visit],
    workflow_id: FromPath[UUID],
    workflow_reads: NamedDependency[WorkflowReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any]:
    """Resume a workflow."""
    visit.principal.require(Role.OPERATOR)
    form = await Form.sent(visit.request)
    await workflow_reads.require(workflow_id)
    await changes.resume_job(workflow_id, by=visit.principal)
    return done(visit, Flash("Resumed from now on."), to=form.back_to(f"/workflows/{workflow_id}"))


@get("/workflows/{workflow_id:uuid}/pause")
async def ask_to_pause_workflow(
    visit: NamedDependency[Visit],
    workflow_id: FromPath[UUID],
    workflow_reads: NamedDependency[WorkflowReads],
) -> Template:
    """Ask why a workflow shall be paused, and until when."""
    return await _ask_about(visit, PAUSE, workflow_id, workflow_reads)


@post("/workflows/{workflow_id:uuid}/pause")
async def pause_workflow(
    visit: NamedDependency[Visit],
    workflow_id: FromPath[UUID],
    workflow_reads: NamedDependency[WorkflowReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any] | Template:
    """Pause a workflow."""
    visit.principal.require(Role.OPERATOR)
    form = await Form.sent(visit.request)
    await workflow_reads.require(workflow_id)
    try:
        reason, until = asked_reason(form), asked_until(form, visit)
        await changes.pause_job(workflow_id, reason=reason, until=until, by=visit.principal)
    except InvalidInput as error:
        return await _ask_about(visit, PAUSE, workflow_id, workflow_reads, refused=form.refused(error))
    return done(visit, Flash("Paused."), to=form.back_to(f"/workflows/{workflow_id}"))


@get("/workflows/{workflow_id:uuid}/delete")
async def ask_to_delete_workflow(
    visit: NamedDependency[Visit],
    workflow_id: FromPath[UUID],
    workflow_reads: NamedDependency[WorkflowReads],
) -> Template:
    """Ask whether a workflow shall be deleted."""
    return await _ask_about(visit, DELETE, workflow_id, workflow_reads)


@post("/workflows/{workflow_id:uuid}/delete")
async def delete_workflow(
    visit: NamedDependency[Visit], workflow_id: FromPath[UUID], workflows: NamedDependency[WorkflowIntake]
) -> Response[Any]:
    """Delete a workflow, and go to the list."""
    visit.principal.require(Role.OPERATOR)
    await workflows.delete(workflow_id, by=visit.principal)
    return moved(visit, Flash("Deleted. Runs that are under way go on."), to="/workflows")


def asked_reason(form: Form) -> str | None:
    """Return the reason that a form gives. Raises `InvalidInput`."""
    reason = form.text("reason")
    if reason and len(reason) > LONGEST_REASON:
        raise InvalidInput(f"use at most {LONGEST_REASON:,} characters", pointer="/reason")
    return reason


async def _ask_about(
    visit: Visit,
    verb: Verb,
    workflow_id: UUID,
    workflow_reads: WorkflowReads,
    *,
    refused: Form | None = None,
) -> Template:
    visit.principal.require(Role.OPERATOR)
    workflow = await workflow_reads.get(workflow_id, now=visit.now)
    url = f"/workflows/{workflow_id}/{verb.word.lower()}"
    names = [workflow_name(workflow.name, workflow_id)]
    return await ask_back(visit, verb, "workflow", url=url, names=names, refused=refused)


WORKFLOW_ACTIONS = [
    run_workflow,
    resume_workflow,
    ask_to_pause_workflow,
    pause_workflow,
    ask_to_delete_workflow,
    delete_workflow,
]
