"""Everything under `/api/v1`."""

from litestar import Router
from litestar.di import Provide

from app.api.auth import KeyAuthentication
from app.api.backfill import BackfillController
from app.api.batches import BatchesController
from app.api.execution_actions import ExecutionActionsController
from app.api.executions import ExecutionsController
from app.api.job_actions import JobActionsController
from app.api.jobs import JobsController
from app.api.keys import KeysController
from app.api.queues import QueuesController
from app.api.schedules import preview_schedule
from app.api.stats import get_stats
from app.api.tasks import TasksController
from app.api.transactions import OneTransaction, current_transaction
from app.api.users import UsersController
from app.api.workers import WorkersController
from app.api.workflow_actions import WorkflowActionsController
from app.api.workflow_runs import WorkflowRunsController
from app.api.workflows import WorkflowsController

MAX_BODY_BYTES = 1024 * 1024


EACH_BY_ITSELF = Router(
    path="/",
    route_handlers=[
        TasksController,
        JobActionsController,
        ExecutionsController,
        ExecutionActionsController,
        UsersController,
        KeysController,
        QueuesController,
        WorkersController,
        BackfillController,
        WorkflowActionsController,
        WorkflowRunsController,
        get_stats,
        preview_schedule,
    ],
    middleware=[OneTransaction()],
    dependencies={"transaction": Provide(current_transaction)},
)
"""Each POST here is a transaction. Those of jobs are committed together (`intake/group_commit.py`)."""

API = Router(
    path="/api/v1",
    route_handlers=[EACH_BY_ITSELF, JobsController, BatchesController, WorkflowsController],
    middleware=[KeyAuthentication],
    request_max_body_size=MAX_BODY_BYTES,
    security=[{"bearer": []}],
)
"""Every request needs a key."""
