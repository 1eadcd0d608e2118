"""`/executions`: the list."""

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from app.db.reads.executions import ExecutionFilters, ExecutionReads, ExecutionView
from app.db.reads.paging import Page
from app.domain.statuses import FINAL, Status
from app.intake.changes import ChangeIntake
from app.ui.filters import FilterText, ListQuery
from app.ui.flash import Flash
from app.ui.forms import Form
from app.ui.live_rows import Place, asked_ids, count_newer, first_place, rows_url
from app.ui.visit import Visit, done, page, part


class ExecutionsQuery(ListQuery, frozen=True, kw_only=True):
    """What the list is narrowed to."""

    PATH: ClassVar[str] = "/executions"
    NAMES: ClassVar[Mapping[str, str]] = {"task_id": "task", "user_id": "owner", "job_id": "job"}

    status: Status | None = None
    job_id: UUID | None = None
    task_id: FilterText | None = None
    queue: FilterText | None = None
    user_id: FilterText | None = None


@get("/executions", name="executions")
async def list_executions(
    visit: NamedDependency[Visit], execution_reads: NamedDependency[ExecutionReads]
) -> Template:
    """Show a page of executions."""
    query = ExecutionsQuery.read(visit.request)
    executions = await _read(query, execution_reads)
    changing = [one.execution_id for one in executions.items if one.status not in FINAL]
    rows = rows_url(query, ids=changing, top=first_place(executions, _place))
    return page(
        "executions/list.html",
        visit,
        query=query,
        executions=executions,
        rows=rows,
        statuses=[(status, status.capitalize()) for status in Status],
    )


@get("/executions/rows")
async def execution_rows(
    visit: NamedDependency[Visit], execution_reads: NamedDependency[ExecutionReads]
) -> Template:
    """Answer with the rows that had not ended when a page was made, as they are now, and how many are new since."""
    query, asked = ExecutionsQuery.read(visit.request), asked_ids(visit.request)
    executions = await execution_reads.some(asked)
    gone = set(asked) - {one.execution_id for one in executions}
    newer = 0 if query.cursor else count_newer(visit.request, await _read(query, execution_reads), _place)
    return part("executions/rows.html", visit, query=query, executions=executions, gone=gone, newer=newer)


@post("/executions/{execution_id:uuid}/retry")
async def retry_execution(
    visit: NamedDependency[Visit], execution_id: FromPath[UUID], changes: NamedDependency[ChangeIntake]
) -> Response[Any]:
    """Run a finished execution's work again."""
    form = await Form.sent(visit.request)
    await changes.retry_execution(execution_id, by=visit.principal)
    return done(visit, Flash("It runs again, as a new execution."), to=form.back_to("/executions"))


async def _read(query: ExecutionsQuery, execution_reads: ExecutionReads) -> Page[ExecutionView]:
    return await execution_reads.list_page(ExecutionFilters(**query.filters), query.window())


def _place(execution: ExecutionView) -> Place:
    return execution.scheduled_time, execution.execution_id


EXECUTION_PAGES = [list_executions, execution_rows, retry_execution]
