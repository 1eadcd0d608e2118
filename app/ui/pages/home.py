"""The first page: the newest jobs and the newest executions."""

from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromQuery
from litestar.response import Template

from app.db.clock import DatabaseClock
from app.db.reads.executions import ExecutionFilters, ExecutionReads
from app.db.reads.jobs import JobFilters, JobReads
from app.db.reads.paging import Window
from app.domain.access import Principal
from app.domain.cursors import read_cursor
from app.domain.statuses import Status
from app.ui.sessions import AnyRequest

JOBS_SHOWN = 25
EXECUTIONS_SHOWN = 50


class HomeState(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows. It is the query of the page's address, so that links and the back button keep it."""

    jobs_cursor: str | None = None
    executions_cursor: str | None = None
    status: Status | None = None

    def url(self, **changes: Any) -> str:  # noqa: ANN401 - values of the fields above
        """Return the address of the page with these changes."""
        values = msgspec.structs.asdict(msgspec.structs.replace(self, **changes))
        query = urlencode({name: value for name, value in values.items() if value is not None})
        return f"/?{query}" if query else "/"

    def jobs_window(self) -> Window:
        """Return which jobs to read. Raises `InvalidCursor`."""
        filters = {"list": "jobs"}
        return Window(JOBS_SHOWN, read_cursor(self.jobs_cursor, filters), filters)

    def executions_window(self) -> Window:
        """Return which executions to read. Raises `InvalidCursor`."""
        filters = {"list": "executions", "status": self.status}
        return Window(EXECUTIONS_SHOWN, read_cursor(self.executions_cursor, filters), filters)


@get("/", name="home")
async def home(
    request: AnyRequest,
    principal: NamedDependency[Principal],
    job_reads: NamedDependency[JobReads],
    execution_reads: NamedDependency[ExecutionReads],
    clock: NamedDependency[DatabaseClock],
    jobs_cursor: FromQuery[str | None] = None,
    executions_cursor: FromQuery[str | None] = None,
    status: FromQuery[Status | None] = None,
) -> Template:
    """Show both lists; each goes on by its own cursor."""
    state = HomeState(jobs_cursor=jobs_cursor, executions_cursor=executions_cursor, status=status)
    now = clock.now()
    jobs = await job_reads.list_page(JobFilters(), state.jobs_window(), now=now)
    executions = await execution_reads.list_page(ExecutionFilters(status=status), state.executions_window())
    context = {
        "principal": principal,
        "state": state,
        "now": now,
        "jobs": jobs,
        "executions": executions,
        "statuses": list(Status),
        "server_url": str(request.base_url).rstrip("/"),
    }
    return Template("home.html", context=context)
