"""`builtin:workflow`: what the executions of a workflow's job do is to begin a run."""

from app.db.notifier import HintSender
from app.db.stores.workflows.runs import RunStore
from app.domain.errors import NotFound
from app.worker.attempt import Attempt


class NotAWorkflow(Exception):
    """The job has this handler but no steps: somebody has made it by SQL."""

    category = "configuration_error"


class WorkflowHandler:
    """Begins runs. Their steps are executions of their own; the one that begins a run ends at once."""

    def __init__(self, runs: RunStore, hints: HintSender) -> None:
        self._runs = runs
        self._hints = hints

    async def run(self, attempt: Attempt) -> object:
        """Begin the run, or find that an earlier attempt has; return its id. Raises `NotAWorkflow`."""
        try:
            moved = await self._runs.begin(attempt.claim)
        except NotFound as error:
            raise NotAWorkflow(f"{error.detail}: make it by POST /workflows") from None
        moved.announce(self._hints)
        return {"workflow_run_id": str(attempt.claim.execution_id)}
