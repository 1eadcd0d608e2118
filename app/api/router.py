"""Everything under `/api/v1`."""

from litestar import Router

from app.api.auth import KeyAuthentication
from app.api.batches import BatchesController
from app.api.execution_actions import ExecutionActionsController
from app.api.executions import ExecutionsController
from app.api.job_actions import JobActionsController
from app.api.jobs import JobsController
from app.api.keys import KeysController
from app.api.queues import QueuesController
from app.api.stats import get_stats
from app.api.tasks import TasksController
from app.api.users import UsersController
from app.api.workers import WorkersController

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
        UsersController,
        KeysController,
        QueuesController,
        WorkersController,
        get_stats,
    ],
    middleware=[KeyAuthentication],
    request_max_body_size=MAX_BODY_BYTES,
    security=[{"bearer": []}],
)
"""Every request needs a key."""
