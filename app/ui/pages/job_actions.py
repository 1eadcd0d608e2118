"""What is done to jobs: one, or those that are selected in a list."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from app.db.reads.jobs import JobReads
from app.domain.access import Role
from app.domain.errors import InvalidInput
from app.intake.changes import ChangeIntake
from app.ui.actions import Verb, ask_back, asked_until, carry_out, told
from app.ui.flash import Flash
from app.ui.forms import Form, selected_ids
from app.ui.visit import Visit, done, moved

RUN = Verb("Run", "started", ("It runs now, apart from its schedule.",))
PAUSE = Verb(
    "Pause",
    "paused",
    ("What is planned and has not begun will not run; what runs goes on.",),
    asks_reason=True,
    asks_until=True,
)
RESUME = Verb("Resume", "resumed", ("It goes on from now; what was due meanwhile stays paused.",))
DELETE = Verb(
    "Delete",
    "deleted",
    ("What waits never runs; what has begun goes on. What it has run stays in the history.",),
    is_dangerous=True,
)
LONGEST_REASON = 1000

Act = Callable[[UUID, Form], Awaitable[Any]]


@post("/jobs/{job_id:uuid}/run")
async def run_job(
    visit: NamedDependency[Visit], job_id: FromPath[UUID], changes: NamedDependency[ChangeIntake]
) -> Response[Any]:
    """Run a job now."""
    form = await Form.sent(visit.request)
    execution_id = await changes.run_job(job_id, by=visit.principal)
    flash = Flash("Started.", link=f"/executions/{execution_id}", link_text="Its execution")
    return done(visit, flash, to=form.back_to("/jobs"))


@post("/jobs/{job_id:uuid}/resume")
async def resume_job(
    visit: NamedDependency[Visit], job_id: FromPath[UUID], changes: NamedDependency[ChangeIntake]
) -> Response[Any]:
    """Resume a job."""
    form = await Form.sent(visit.request)
    await changes.resume_job(job_id, by=visit.principal)
    return done(visit, Flash("Resumed from now on."), to=form.back_to("/jobs"))


@get("/jobs/{job_id:uuid}/pause")
async def ask_to_pause(
    visit: NamedDependency[Visit], job_id: FromPath[UUID], job_reads: NamedDependency[JobReads]
) -> Template:
    """Ask why a job shall be paused, and until when."""
    return await _ask_about(visit, PAUSE, job_id, job_reads)


@post("/jobs/{job_id:uuid}/pause")
async def pause_job(
    visit: NamedDependency[Visit],
    job_id: FromPath[UUID],
    job_reads: NamedDependency[JobReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any] | Template:
    """Pause a job."""
    visit.principal.require(Role.OPERATOR)
    form = await Form.sent(visit.request)
    try:
        await _pauses(visit, changes)(job_id, form)
    except InvalidInput as error:
        return await _ask_about(visit, PAUSE, job_id, job_reads, refused=form.refused(error))
    return done(visit, Flash("Paused."), to=form.back_to("/jobs"))


@get("/jobs/{job_id:uuid}/delete")
async def ask_to_delete(
    visit: NamedDependency[Visit], job_id: FromPath[UUID], job_reads: NamedDependency[JobReads]
) -> Template:
    """Ask whether a job shall be deleted."""
    return await _ask_about(visit, DELETE, job_id, job_reads)


@post("/jobs/{job_id:uuid}/delete")
async def delete_job(
    visit: NamedDependency[Visit], job_id: FromPath[UUID], changes: NamedDependency[ChangeIntake]
) -> Response[Any]:
    """Delete a job: a list stays where it is, from the job's own page it goes to the list."""
    form = await Form.sent(visit.request)
    changed = await changes.delete_job(job_id, by=visit.principal)
    goes_on = f" {len(changed.running)} of its executions had begun and go on." if changed.running else ""
    flash, back = Flash(f"Deleted.{goes_on}"), form.back_to("/jobs")
    if back.startswith(f"/jobs/{job_id}"):
        return moved(visit, flash, to="/jobs")
    return done(visit, flash, to=back)


@post("/jobs/actions/run")
async def run_selected(
    visit: NamedDependency[Visit],
    job_reads: NamedDependency[JobReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any]:
    """Run the selected jobs."""
    return await _selected(visit, job_reads, RUN, lambda one, _: changes.run_job(one, by=visit.principal))


@post("/jobs/actions/pause")
async def pause_selected(
    visit: NamedDependency[Visit],
    job_reads: NamedDependency[JobReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any]:
    """Pause the selected jobs."""
    return await _selected(visit, job_reads, PAUSE, _pauses(visit, changes))


@post("/jobs/actions/resume")
async def resume_selected(
    visit: NamedDependency[Visit],
    job_reads: NamedDependency[JobReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any]:
    """Resume the selected jobs."""
    return await _selected(
        visit, job_reads, RESUME, lambda one, _: changes.resume_job(one, by=visit.principal)
    )


@post("/jobs/actions/delete")
async def delete_selected(
    visit: NamedDependency[Visit],
    job_reads: NamedDependency[JobReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any]:
    """Delete the selected jobs."""
    return await _selected(
        visit, job_reads, DELETE, lambda one, _: changes.delete_job(one, by=visit.principal)
    )


async def _ask_about(
    visit: Visit, verb: Verb, job_id: UUID, job_reads: JobReads, *, refused: Form | None = None
) -> Template:
    visit.principal.require(Role.OPERATOR)
    job = await job_reads.get(job_id, now=visit.now)
    url = f"/jobs/{job_id}/{verb.word.lower()}"
    return await ask_back(visit, verb, "job", url=url, names=[job.name or job.task_id], refused=refused)


async def _selected(visit: Visit, job_reads: JobReads, verb: Verb, act: Act) -> Response[Any]:
    """Ask back first, then do it to each; an answer that fits none of them is asked for again."""
    visit.principal.require(Role.OPERATOR)
    form, ids = await Form.sent(visit.request), await selected_ids(visit.request)
    refused = None
    if form.text("confirmed"):
        try:
            carried = await carry_out(ids, lambda one: act(one, form))
            return done(visit, told(verb, "job", carried), to=form.back_to("/jobs"))
        except InvalidInput as error:
            refused = form.refused(error)
    names = [job.name or job.task_id for job in await job_reads.some(ids, now=visit.now)]
    return await ask_back(visit, verb, "job", url=visit.path, names=names, ids=ids, refused=refused)


def _pauses(visit: Visit, changes: ChangeIntake) -> Act:
    """Return what pauses a job as a form says."""

    async def pause(job_id: UUID, form: Form) -> None:
        reason, until = form.text("reason"), asked_until(form, visit)
        if reason and len(reason) > LONGEST_REASON:
            raise InvalidInput(f"use at most {LONGEST_REASON:,} characters", pointer="/reason")
        await changes.pause_job(job_id, reason=reason, until=until, by=visit.principal)

    return pause


JOB_ACTIONS = [
    run_job,
    resume_job,
    ask_to_pause,
    pause_job,
    ask_to_delete,
    delete_job,
    run_selected,
    pause_selected,
    resume_selected,
    delete_selected,
]
