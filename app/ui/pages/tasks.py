"""`/tasks`: the list."""

from typing import ClassVar

from litestar import get
from litestar.di import NamedDependency
from litestar.response import Template

from app.db.reads.paging import Page
from app.intake.tasks import TaskIntake
from app.ui.filters import PAGE_ROWS, FilterText, ListQuery
from app.ui.visit import Visit, page


class TasksQuery(ListQuery, frozen=True, kw_only=True):
    """Tasks are read in the order of their ids: the next page begins after one."""

    PATH: ClassVar[str] = "/tasks"

    cursor: FilterText | None = None


@get("/tasks", name="tasks")
async def list_tasks(visit: NamedDependency[Visit], tasks: NamedDependency[TaskIntake]) -> Template:
    """Show a page of tasks."""
    query = TasksQuery.read(visit.request)
    found = await tasks.list_page(limit=PAGE_ROWS + 1, after=query.cursor)
    more = found[PAGE_ROWS - 1].task_id if len(found) > PAGE_ROWS else None
    return page("tasks/list.html", visit, query=query, tasks=Page(found[:PAGE_ROWS], more))


TASK_PAGES = [list_tasks]
