"""Everything under `/api/v1`."""

from litestar import Router

from app.api.auth import KeyAuthentication
from app.api.batches import BatchesController
from app.api.execution_actions import ExecutionActionsController
from app.api.executions import ExecutionsController
from app.api.job_actions import JobActionsController
from app.api.jobs import JobsController
from app.api.tasks import TasksController

MAX_BODY_BYTES = 1024 * 1024


API = Router(
    path="/api/v1",
    route_handlers=[
        TasksController,
        JobsController,
        BatchesController,
        JobActionsController,
        ExecutionsController,
        ExecutionActionsController,
    ],
    middleware=[KeyAuthentication],
    request_max_body_size=MAX_BODY_BYTES,
    security=[{"bearer": []}],
)
"""Every request needs a key."""
