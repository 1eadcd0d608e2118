"""`/tasks`: the list, a task, how its runs go; and deleting one."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import urlencode

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from app.db.reads.audit import AuditReads
from app.db.reads.jobs import JobFilters, JobReads
from app.db.reads.paging import Page
from app.db.reads.tasks import MOST_JOBS, Span, TaskFigures, TaskFilters, TaskReads, TaskRow
from app.domain.access import Role
from app.domain.schema_outline import outline
from app.intake.tasks import TaskIntake
from app.ui.filters import PAGE_ROWS, FilterText, ListQuery
from app.ui.flash import Flash
from app.ui.task_words import KINDS
from app.ui.visit import Visit, moved, page, part

SHOWN_JOBS, SHOWN_FAILURES, SHOWN_CHANGES = 20, 5, 10
MOST_SCHEMA_CHARACTERS = 20_000
"""Of a schema as it stands, on the page; the API has all of it."""
KIND_CHOICES = list(KINDS.items())


class TasksQuery(ListQuery, frozen=True, kw_only=True):
    """What the list is narrowed to. Tasks are read in the order of their ids: the next page begins after one."""

    PATH: ClassVar[str] = "/tasks"
    NAMES: ClassVar[Mapping[str, str]] = {"text": "search", "kind": "handler"}

    cursor: FilterText | None = None
    text: FilterText | None = None
    kind: Literal["http", "python", "shell", "builtin"] | None = None
    queue: FilterText | None = None


class _Course(NamedTuple):
    """How far back a task's runs are shown, and in how many spans of how many seconds."""

    words: str
    span_seconds: int
    spans: int


COURSES = {
    "24h": _Course("24 hours", 3_600, 24),
    "7d": _Course("7 days", 6 * 3_600, 28),
    "30d": _Course("30 days", 86_400, 30),
}


class TaskPageQuery(ListQuery, frozen=True, kw_only=True):
    """What a task's page shows: how far back its runs, and which page of its jobs."""

    PATH: ClassVar[str] = "/tasks"

    over: Literal["24h", "7d", "30d"] = "24h"


@get("/tasks", name="tasks")
async def list_tasks(visit: NamedDependency[Visit], task_reads: NamedDependency[TaskReads]) -> Template:
    """Show a page of tasks."""
    query = TasksQuery.read(visit.request)
    found = await _read(query, task_reads)
    ids = [task.task_id for task in found.items]
    return page(
        "tasks/list.html",
        visit,
        query=query,
        tasks=found,
        rows=f"/tasks/-/rows?{urlencode({'ids': ','.join(ids)}, safe=',')}",
        kinds=KIND_CHOICES,
        queues=[(one.queue, one.queue) for one in await task_reads.queues()],
        **await _figures(task_reads, ids),
    )


@get("/tasks/-/rows")
async def task_rows(visit: NamedDependency[Visit], task_reads: NamedDependency[TaskReads]) -> Template:
    """Answer with the rows of tasks that a page shows, as they are now. No id is a dash, so no task hides this."""
    asked = [one for one in visit.request.query_params.get("ids", "").split(",") if one][: 2 * PAGE_ROWS]
    found = await task_reads.some(asked)
    gone = sorted(set(asked) - {task.task_id for task in found})
    return part("tasks/rows.html", visit, tasks=found, gone=gone, **await _figures(task_reads, asked))


@get("/tasks/{task_id:str}")
async def show_task(
    visit: NamedDependency[Visit],
    task_id: FromPath[str],
    task_reads: NamedDependency[TaskReads],
    job_reads: NamedDependency[JobReads],
    audit_reads: NamedDependency[AuditReads],
) -> Template:
    """Show a task: what it runs, with what, for which jobs, and how that goes."""
    query = TaskPageQuery.read(visit.request)
    detail = await task_reads.get(task_id)
    window = query.window(SHOWN_JOBS)
    jobs = await job_reads.list_page(JobFilters(task_id=task_id), window, now=visit.now)
    return page(
        "tasks/detail.html",
        visit,
        query=query,
        task=detail.task,
        retries=detail.retries,
        outline=outline(detail.task.parameter_schema),
        most_schema=MOST_SCHEMA_CHARACTERS,
        jobs=jobs,
        changes=await audit_reads.of("task", task_id, limit=SHOWN_CHANGES),
        **await _activity(task_reads, task_id, query.over),
    )


@get("/tasks/{task_id:str}/activity")
async def task_activity(
    visit: NamedDependency[Visit], task_id: FromPath[str], task_reads: NamedDependency[TaskReads]
) -> Template:
    """Answer with how a task's runs go, as it is now."""
    query = TaskPageQuery.read(visit.request)
    detail = await task_reads.get(task_id)
    return part(
        "tasks/activity.html", visit, task=detail.task, **await _activity(task_reads, task_id, query.over)
    )


@get("/tasks/{task_id:str}/delete")
async def ask_to_delete(
    visit: NamedDependency[Visit], task_id: FromPath[str], task_reads: NamedDependency[TaskReads]
) -> Template:
    """Ask whether a task shall be deleted; of one that is used, say why it cannot be."""
    visit.principal.require(Role.OPERATOR)
    detail = await task_reads.get(task_id)
    figures = (await task_reads.figures([task_id]))[task_id]
    return page("tasks/delete.html", visit, task=detail.task, jobs=figures.jobs, most_jobs=MOST_JOBS)


@post("/tasks/{task_id:str}/delete")
async def delete_task(
    visit: NamedDependency[Visit], task_id: FromPath[str], tasks: NamedDependency[TaskIntake]
) -> Response[Any]:
    """Delete a task that no job uses."""
    visit.principal.require(Role.OPERATOR)
    await tasks.delete(task_id, by=visit.principal)
    return moved(visit, Flash(f"The task {task_id} was deleted."), to="/tasks")


async def _read(query: TasksQuery, task_reads: TaskReads) -> Page[TaskRow]:
    filters = TaskFilters(text=query.text, kind=query.kind, queue=query.queue)
    return await task_reads.list_page(filters, limit=PAGE_ROWS, after=query.cursor)


async def _figures(task_reads: TaskReads, task_ids: list[str]) -> dict[str, Any]:
    figures = await task_reads.figures(task_ids) if task_ids else {}
    return {"figures": figures, "unused": TaskFigures(), "most_jobs": MOST_JOBS}


async def _activity(task_reads: TaskReads, task_id: str, over: str) -> dict[str, Any]:
    """Return how a task's runs have gone, for its page and for the part of it that is kept up to date."""
    course = COURSES[over]
    spans = await task_reads.course(task_id, span_seconds=course.span_seconds, spans=course.spans)
    return {
        "over": over,
        "courses": COURSES,
        "course": course,
        "spans": spans,
        "total": _total(spans),
        "figures": (await task_reads.figures([task_id]))[task_id],
        "failures": await task_reads.failures(task_id, limit=SHOWN_FAILURES),
        "most_jobs": MOST_JOBS,
    }


def _total(spans: list[Span]) -> Span:
    return Span(
        begins_at=spans[0].begins_at,
        completed=sum(span.completed for span in spans),
        failed=sum(span.failed for span in spans),
        others=sum(span.others for span in spans),
        late=sum(span.late for span in spans),
        run_ms_sum=sum(span.run_ms_sum for span in spans),
    )


TASK_PAGES = [list_tasks, task_rows, show_task, task_activity, ask_to_delete, delete_task]
