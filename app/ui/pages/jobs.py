"""`/jobs`: the list, and what is done to one job or to those that are selected."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from app.db.reads.jobs import JobFilters, JobReads, JobView
from app.db.reads.paging import Page
from app.domain.access import Role
from app.intake.changes import ChangeIntake
from app.ui.actions import Verb, ask_back, carry_out, told
from app.ui.filters import FilterText, ListQuery
from app.ui.flash import Flash
from app.ui.forms import Form, selected_ids
from app.ui.live_rows import Place, asked_ids, count_newer, first_place, rows_url
from app.ui.visit import Visit, done, page, part

RUN = Verb("Run", "started", ("It runs now, apart from its schedule.",))
PAUSE = Verb(
    "Pause",
    "paused",
    ("What is planned and has not begun will not run; what runs goes on.",),
    asks_reason=True,
)
RESUME = Verb("Resume", "resumed", ("It goes on from now; what was due meanwhile stays paused.",))


class JobsQuery(ListQuery, frozen=True, kw_only=True):
    """What the list is narrowed to."""

    PATH: ClassVar[str] = "/jobs"
    NAMES: ClassVar[Mapping[str, str]] = {"task_id": "task", "user_id": "owner"}

    task_id: FilterText | None = None
    user_id: FilterText | None = None


@get("/jobs", name="jobs")
async def list_jobs(visit: NamedDependency[Visit], job_reads: NamedDependency[JobReads]) -> Template:
    """Show a page of jobs."""
    query = JobsQuery.read(visit.request)
    jobs = await _read(query, job_reads, visit)
    ids = [job.job_id for job in jobs.items]
    rows = rows_url(query, ids=ids, top=first_place(jobs, _place))
    return page("jobs/list.html", visit, query=query, jobs=jobs, rows=rows)


@get("/jobs/rows")
async def job_rows(visit: NamedDependency[Visit], job_reads: NamedDependency[JobReads]) -> Template:
    """Answer with the rows of jobs that a page shows, as they are now, and with how many are new since."""
    query, asked = JobsQuery.read(visit.request), asked_ids(visit.request)
    jobs = await job_reads.some(asked, now=visit.now)
    gone = set(asked) - {job.job_id for job in jobs}
    newer = 0 if query.cursor else count_newer(visit.request, await _read(query, job_reads, visit), _place)
    return part("jobs/rows.html", visit, query=query, jobs=jobs, gone=gone, newer=newer)


@post("/jobs/{job_id:uuid}/run")
async def run_job(
    visit: NamedDependency[Visit], job_id: FromPath[UUID], changes: NamedDependency[ChangeIntake]
) -> Response[Any]:
    """Run a job now."""
    form = await Form.sent(visit.request)
    await changes.run_job(job_id, by=visit.principal)
    flash = Flash("Started.", link=f"/executions?job_id={job_id}", link_text="Its executions")
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
    """Ask why a job shall be paused."""
    visit.principal.require(Role.OPERATOR)
    job = await job_reads.get(job_id, now=visit.now)
    return await ask_back(visit, PAUSE, "job", url=f"/jobs/{job_id}/pause", names=[_name(job)])


@post("/jobs/{job_id:uuid}/pause")
async def pause_job(
    visit: NamedDependency[Visit], job_id: FromPath[UUID], changes: NamedDependency[ChangeIntake]
) -> Response[Any]:
    """Pause a job."""
    form = await Form.sent(visit.request)
    await changes.pause_job(job_id, reason=form.text("reason"), until=None, by=visit.principal)
    return done(visit, Flash("Paused."), to=form.back_to("/jobs"))


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
    return await _selected(
        visit,
        job_reads,
        PAUSE,
        lambda one, reason: changes.pause_job(one, reason=reason, until=None, by=visit.principal),
    )


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


async def _selected(
    visit: Visit, job_reads: JobReads, verb: Verb, do: Callable[[UUID, str | None], Awaitable[Any]]
) -> Response[Any]:
    """Ask back first, then do it to each."""
    visit.principal.require(Role.OPERATOR)
    form, ids = await Form.sent(visit.request), await selected_ids(visit.request)
    if not form.text("confirmed"):
        names = [_name(job) for job in await job_reads.some(ids, now=visit.now)]
        return await ask_back(visit, verb, "job", url=visit.path, names=names, ids=ids)
    carried = await carry_out(ids, lambda one: do(one, form.text("reason")))
    return done(visit, told(verb, "job", carried), to=form.back_to("/jobs"))


async def _read(query: JobsQuery, job_reads: JobReads, visit: Visit) -> Page[JobView]:
    filters = JobFilters(task_id=query.task_id, user_id=query.user_id)
    return await job_reads.list_page(filters, query.window(), now=visit.now)


def _name(job: JobView) -> str:
    return job.name or job.task_id


def _place(job: JobView) -> Place:
    return job.created_at, job.job_id


JOB_PAGES = [
    list_jobs,
    job_rows,
    run_job,
    resume_job,
    ask_to_pause,
    pause_job,
    run_selected,
    pause_selected,
    resume_selected,
]
