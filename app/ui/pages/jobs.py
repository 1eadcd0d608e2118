"""`/jobs`: the list."""

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from litestar import get
from litestar.di import NamedDependency
from litestar.response import Template

from app.db.reads.job_list import FoundJobs, JobKind, JobListFilters, JobListReads, JobState
from app.ui.filters import Chip, FilterText, ListQuery
from app.ui.job_rows import JobTable
from app.ui.live_rows import Place, asked_ids, count_newer, first_place, rows_url
from app.ui.visit import Visit, page, part

Kind: TypeAlias = Literal["once", "all"]
State: TypeAlias = Literal["enabled", "paused", "failing", "never_run"]
KINDS: tuple[tuple[str, Kind | None], ...] = (("Repeating", None), ("Run once", "once"), ("All", "all"))
"""Which jobs: programs make jobs that run once by the million, people look for those that repeat."""
STATES = (("enabled", "enabled"), ("paused", "paused"), ("failing", "failing"), ("never_run", "never run"))


class JobsQuery(ListQuery, frozen=True, kw_only=True):
    """What the list is narrowed to."""

    PATH: ClassVar[str] = "/jobs"
    NAMES: ClassVar[Mapping[str, str]] = {"task_id": "task", "user_id": "owner"}

    kind: Kind | None = None
    name: FilterText | None = None
    task_id: FilterText | None = None
    user_id: FilterText | None = None
    tag: FilterText | None = None
    state: State | None = None

    @property
    def chips(self) -> list[Chip]:
        """Return the filters in force for people, without the kind, which the tab says."""
        shown = {name: value for name, value in self.filters.items() if name != "kind"}
        return [
            Chip(
                self.NAMES.get(name, name),
                dict(STATES).get(value, value),
                self.url(**{name: None, "cursor": None}),
            )
            for name, value in shown.items()
        ]

    @property
    def tabs(self) -> list[tuple[str, str]]:
        """Return word and address of each kind of jobs."""
        return [(word, self.url(kind=kind, cursor=None)) for word, kind in KINDS]

    @property
    def tab(self) -> str:
        """Return the word of the kind that is shown."""
        return next(word for word, kind in KINDS if kind == self.kind)

    def narrowed(self) -> JobListFilters:
        """Return it for the database."""
        return JobListFilters(
            kind=JobKind(self.kind or "repeating"),
            state=JobState(self.state) if self.state else None,
            name=self.name,
            task_id=self.task_id,
            user_id=self.user_id,
            tag=self.tag,
        )


@get("/jobs", name="jobs")
async def list_jobs(
    visit: NamedDependency[Visit],
    job_list: NamedDependency[JobListReads],
    job_table: NamedDependency[JobTable],
) -> Template:
    """Show a page of jobs."""
    query = JobsQuery.read(visit.request)
    found = await _find(query, job_list)
    ids = [job_id for _, job_id in found.page.items]
    return page(
        "jobs/list.html",
        visit,
        query=query,
        found=found,
        jobs=await job_table.some(ids, now=visit.now),
        rows=rows_url(query, ids=ids, top=first_place(found.page, _place)),
        states=STATES,
        any_job=bool(ids) or await job_list.any(),
    )


@get("/jobs/rows")
async def job_rows(
    visit: NamedDependency[Visit],
    job_list: NamedDependency[JobListReads],
    job_table: NamedDependency[JobTable],
) -> Template:
    """Answer with the rows of jobs that a page shows, as they are now, and with how many are new since."""
    query, asked = JobsQuery.read(visit.request), asked_ids(visit.request)
    jobs = await job_table.some(asked, now=visit.now)
    newest = None if query.cursor else await _find(query, job_list)
    return part(
        "jobs/rows.html",
        visit,
        query=query,
        jobs=jobs,
        gone=set(asked) - {row.job.job_id for row in jobs},
        newer=count_newer(visit.request, newest.page, _place) if newest else 0,
    )


async def _find(query: JobsQuery, job_list: JobListReads) -> FoundJobs:
    return await job_list.page(query.narrowed(), query.window())


def _place(place: Place) -> Place:
    return place


JOB_LIST = [list_jobs, job_rows]
