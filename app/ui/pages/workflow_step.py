"""`/workflow-runs/{run_id}/steps/{step}`: the executions of a step that maps over a list."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from app.db.reads.execution_list import ExecutionListReads
from app.db.reads.workflow_runs import RunDetail, StepView, WorkflowRunReads
from app.db.reads.workflow_steps import StepReads
from app.domain.errors import InvalidInput, NotFound
from app.domain.statuses import Status
from app.domain.workflows.run_keys import Round
from app.ui.filters import PAGE_ROWS, AnyRequest
from app.ui.visit import Visit, page, part
from app.ui.workflow_words import ENDED, counts_in_words

TABS = (None, Status.FAILED, Status.RUNNING, Status.RETRYING, Status.PENDING, Status.COMPLETED)
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class InstancesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which executions of a step are shown."""

    first: Number = 0
    """The index of the first one."""
    status: Status | None = None
    round: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """None: the latest."""

    @classmethod
    def read(cls, request: AnyRequest) -> "InstancesQuery":
        """Read the query of a request; what is empty is none. Raises `InvalidInput`."""
        given = {name: value for name, value in request.query_params.items() if value}
        try:
            return msgspec.convert(given, cls, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidInput(str(error)) from None

    def url(self, path: str, **changes: Any) -> str:  # noqa: ANN401 - values of the fields
        """Return an address with this query and these changes."""
        values = msgspec.structs.asdict(msgspec.structs.replace(self, **changes))
        query = urlencode({name: value for name, value in values.items() if value})
        return f"{path}?{query}" if query else path

    def tabs(self, path: str) -> list[tuple[str, str]]:
        """Return word and address of each view."""
        return [(_word(status), self.url(path, status=status, first=0)) for status in TABS]

    @property
    def tab(self) -> str:
        """Return the word of the view that is shown."""
        return _word(self.status)


@get("/workflow-runs/{run_id:uuid}/steps/{step:str}")
async def show_step(
    visit: NamedDependency[Visit],
    run_id: FromPath[UUID],
    step: FromPath[str],
    run_reads: NamedDependency[WorkflowRunReads],
    step_reads: NamedDependency[StepReads],
    execution_list: NamedDependency[ExecutionListReads],
) -> Template:
    """Show the executions of a step, in the order of the items that it maps over."""
    run = await run_reads.get(run_id, with_results=False)
    return page("workflow_runs/step.html", visit, **await _now(run, step, visit, step_reads, execution_list))


@get("/workflow-runs/{run_id:uuid}/steps/{step:str}/now")
async def step_now(
    visit: NamedDependency[Visit],
    run_id: FromPath[UUID],
    step: FromPath[str],
    run_reads: NamedDependency[WorkflowRunReads],
    step_reads: NamedDependency[StepReads],
    execution_list: NamedDependency[ExecutionListReads],
) -> Template:
    """Answer with the part of the page that changes while the step runs."""
    run = await run_reads.get(run_id, with_results=False)
    now = await _now(run, step, visit, step_reads, execution_list)
    return part("workflow_runs/instances.html", visit, **now)


def step_of(run: RunDetail, key: str) -> StepView:
    """Return a step of a run. Raises `NotFound`."""
    found = next((step for step in run.steps if step.key == key), None)
    if found is None:
        raise NotFound(f"the run has no step {key:.100}")
    return found


async def _now(
    run: RunDetail, key: str, visit: Visit, step_reads: StepReads, execution_list: ExecutionListReads
) -> Mapping[str, Any]:
    step, query = step_of(run, key), InstancesQuery.read(visit.request)
    number = min(query.round or step.round, step.round)
    found = await step_reads.instances(
        Round(run.workflow_run_id, key, number),
        run_started_at=run.started_at,
        first=query.first,
        status=query.status,
        limit=PAGE_ROWS,
    )
    listed = await execution_list.some([execution_id for _, execution_id in found.instances])
    by_id = {execution.execution_id: execution for execution in listed}
    return {
        "run": run,
        "step": step,
        "number": number,
        "query": query,
        "path": f"/workflow-runs/{run.workflow_run_id}/steps/{key}",
        "executions": [(index, by_id[one]) for index, one in found.instances if one in by_id],
        "counts": counts_in_words(step.instances.by_status)
        if step.instances and number == step.round
        else "",
        "next_index": found.next_index,
        "is_live": step.status not in ENDED,
    }


def _word(status: Status | None) -> str:
    return status.capitalize() if status else "All"


WORKFLOW_STEP_PAGES = [show_step, step_now]
