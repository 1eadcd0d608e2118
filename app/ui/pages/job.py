"""`/jobs/{job_id}`: one job, with its runs, its definition, its changes, and how to reach it by program."""

from typing import Literal, TypeAlias
from uuid import UUID

import msgspec
from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Template

from app.db.reads.audit import AuditReads
from app.db.reads.execution_list import ExecutionListReads, Found
from app.db.reads.execution_rows import ListedExecution
from app.db.reads.execution_walks import ListFilters
from app.domain.statuses import FINAL, LIVE, Status
from app.ui.changes import shown_changes
from app.ui.filters import AnyRequest, Chip, ListQuery
from app.ui.job_detail import JobDetails
from app.ui.job_ways import ways_to
from app.ui.job_words import shown_parameters
from app.ui.live_rows import Place, asked_ids, count_newer, first_place, rows_url
from app.ui.visit import Visit, page, part

Shown: TypeAlias = Literal[
    "PENDING", "RUNNING", "RETRYING", "COMPLETED", "FAILED", "LATE", "CANCELLED", "SKIPPED"
]
STATUSES = (("PENDING", "planned"), ("RUNNING", "running"), ("RETRYING", "retrying"), ("COMPLETED", "completed"),
            ("FAILED", "failed"), ("LATE", "late"), ("CANCELLED", "cancelled"), ("SKIPPED", "skipped"))  # fmt: skip


class RunsQuery(ListQuery, frozen=True, kw_only=True):
    """What the runs of a job are narrowed to."""

    job_id: UUID | None = None
    """Stands in the path."""
    status: Shown | None = None

    @classmethod
    def of(cls, job_id: UUID, request: AnyRequest) -> "RunsQuery":
        """Read the query of the page of a job. Raises `InvalidInput`."""
        return msgspec.structs.replace(cls.read(request), job_id=job_id)

    @property
    def path(self) -> str:
        """Return the job's page."""
        return f"/jobs/{self.job_id}"

    @property
    def filters(self) -> dict[str, str]:
        """Return the filters in force."""
        return {"status": self.status} if self.status else {}

    @property
    def chips(self) -> list[Chip]:
        """Return the filters in force for people."""
        return [Chip("status", dict(STATUSES)[self.status], self.url(status=None))] if self.status else []

    def narrowed(self) -> ListFilters:
        """Return it for the database. A single status means all of it, as in the API."""
        if self.status in {None, "LATE"}:
            return ListFilters(job_id=self.job_id, late=self.status == "LATE")
        status = Status(str(self.status))
        return ListFilters(job_id=self.job_id, statuses=frozenset({status}), include_future=status in LIVE)


@get("/jobs/{job_id:uuid}")
async def show_job(
    visit: NamedDependency[Visit],
    job_id: FromPath[UUID],
    job_details: NamedDependency[JobDetails],
    execution_list: NamedDependency[ExecutionListReads],
) -> Template:
    """Show a job with its runs."""
    query = RunsQuery.of(job_id, visit.request)
    detail = await job_details.get(job_id, now=visit.now)
    found = await _read(query, execution_list)
    runs = found.page.items
    return page(
        "jobs/runs.html",
        visit,
        detail=detail,
        query=query,
        found=found,
        rows=rows_url(query, ids=_changing(runs), top=first_place(found.page, _place)),
        statuses=STATUSES,
        starters=await execution_list.starters(runs),
    )


@get("/jobs/{job_id:uuid}/rows")
async def job_run_rows(
    visit: NamedDependency[Visit],
    job_id: FromPath[UUID],
    execution_list: NamedDependency[ExecutionListReads],
) -> Template:
    """Answer with the runs that had not ended when a page was made, as they are now, and how many are new since."""
    query, asked = RunsQuery.of(job_id, visit.request), asked_ids(visit.request)
    runs = await execution_list.some(asked)
    newest = None if query.cursor else await _read(query, execution_list)
    return part(
        "jobs/run_rows.html",
        visit,
        query=query,
        runs=runs,
        gone=set(asked) - {run.execution_id for run in runs},
        newer=count_newer(visit.request, newest.page, _place) if newest else 0,
        starters=await execution_list.starters(runs),
    )


@get("/jobs/{job_id:uuid}/state")
async def job_state(
    visit: NamedDependency[Visit], job_id: FromPath[UUID], job_details: NamedDependency[JobDetails]
) -> Template:
    """Answer with the head of a job's page as it is now."""
    return part("jobs/state.html", visit, detail=await job_details.get(job_id, now=visit.now))


@get("/jobs/{job_id:uuid}/definition")
async def job_definition(
    visit: NamedDependency[Visit], job_id: FromPath[UUID], job_details: NamedDependency[JobDetails]
) -> Template:
    """Show what a job is."""
    detail = await job_details.get(job_id, now=visit.now)
    parameters, left_out = shown_parameters(detail.row.job)
    return page("jobs/definition.html", visit, detail=detail, parameters=parameters, left_out=left_out)


@get("/jobs/{job_id:uuid}/changes")
async def job_changes(
    visit: NamedDependency[Visit],
    job_id: FromPath[UUID],
    job_details: NamedDependency[JobDetails],
    audit_reads: NamedDependency[AuditReads],
    before: FromQuery[int | None] = None,
) -> Template:
    """Show who changed a job, and what; `before`: the changes older than that one."""
    detail = await job_details.get(job_id, now=visit.now)
    changes = await shown_changes(audit_reads, job_id, before)
    return page("jobs/changes.html", visit, detail=detail, **changes)


@get("/jobs/{job_id:uuid}/api")
async def job_api(
    visit: NamedDependency[Visit], job_id: FromPath[UUID], job_details: NamedDependency[JobDetails]
) -> Template:
    """Show how to do by program, command line and SQL what the page does."""
    detail = await job_details.get(job_id, now=visit.now)
    server = str(visit.request.base_url).rstrip("/")
    return page("jobs/api.html", visit, detail=detail, ways=ways_to(job_id, server))


async def _read(query: RunsQuery, execution_list: ExecutionListReads) -> Found:
    return await execution_list.page(query.narrowed(), query.window())


def _changing(runs: list[ListedExecution]) -> list[UUID]:
    return [run.execution_id for run in runs if run.status not in FINAL]


def _place(run: ListedExecution) -> Place:
    return run.scheduled_time, run.execution_id


JOB_PAGE = [show_job, job_run_rows, job_state, job_definition, job_changes, job_api]
