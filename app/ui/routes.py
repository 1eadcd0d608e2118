"""All handlers of the dashboard."""

from collections.abc import Mapping

from litestar import Router
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from app.ui.assets import static_router
from app.ui.csrf import csrf_guard
from app.ui.errors import PAGE
from app.ui.headers import PAGE_HEADERS
from app.ui.pages.events import events
from app.ui.pages.execution import EXECUTION_DETAIL
from app.ui.pages.execution_actions import EXECUTION_ACTIONS
from app.ui.pages.executions import EXECUTION_LIST
from app.ui.pages.job import JOB_PAGE
from app.ui.pages.job_actions import JOB_ACTIONS
from app.ui.pages.job_form import JOB_FORM_PAGES
from app.ui.pages.jobs import JOB_LIST
from app.ui.pages.login import log_in, log_out, probe, show_login
from app.ui.pages.overview import OVERVIEW_PAGES
from app.ui.pages.queues import QUEUE_PAGES
from app.ui.pages.task_form import TASK_FORMS
from app.ui.pages.tasks import TASK_PAGES
from app.ui.pages.workflow import WORKFLOW_PAGE
from app.ui.pages.workflow_actions import WORKFLOW_ACTIONS
from app.ui.pages.workflow_run import WORKFLOW_RUN_PAGES
from app.ui.pages.workflow_run_actions import WORKFLOW_RUN_ACTIONS
from app.ui.pages.workflow_step import WORKFLOW_STEP_PAGES
from app.ui.pages.workflows import WORKFLOW_LIST
from app.ui.same_origin import same_origin
from app.ui.sessions import current_principal
from app.ui.visit import current_visit

MAX_FORM_BYTES = 64 * 1024

PAGES: list[ControllerRouterHandler] = [
    *(show_login, probe, log_in, log_out, events),
    *OVERVIEW_PAGES,
    *QUEUE_PAGES,
    *JOB_LIST,
    *JOB_PAGE,
    *JOB_ACTIONS,
    *JOB_FORM_PAGES,
    *EXECUTION_LIST,
    *EXECUTION_DETAIL,
    *EXECUTION_ACTIONS,
    *WORKFLOW_LIST,
    *WORKFLOW_PAGE,
    *WORKFLOW_ACTIONS,
    *WORKFLOW_RUN_PAGES,
    *WORKFLOW_STEP_PAGES,
    *WORKFLOW_RUN_ACTIONS,
    *TASK_PAGES,
    *TASK_FORMS,
]


def dashboard(parts: Mapping[str, Provide]) -> list[ControllerRouterHandler]:
    """Return the dashboard's routers; `parts` are what its handlers ask for by name, beside what the API has."""
    pages = Router(
        "/",
        route_handlers=PAGES,
        guards=[same_origin, csrf_guard],
        dependencies={**parts, "principal": Provide(current_principal), "visit": Provide(current_visit)},
        response_headers=PAGE_HEADERS,
        request_max_body_size=MAX_FORM_BYTES,
        include_in_schema=False,
        opt={PAGE: True},
    )
    return [pages, static_router()]
