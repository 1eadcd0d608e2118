"""What is done to one execution or to those that are selected: cancelled, and run again."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from app.db.reads.execution_list import ExecutionListReads
from app.db.reads.execution_rows import ListedExecution
from app.db.stores.execution_control import Cancelling
from app.domain.access import Role
from app.domain.errors import Conflict, NotFound
from app.domain.statuses import FINAL, Status
from app.intake.changes import ChangeIntake
from app.ui.actions import Verb, ask_back, carry_out, told
from app.ui.flash import Flash
from app.ui.forms import Form, selected_ids
from app.ui.visit import Visit, done, moved
from app.ui.words import short_id

RETRY = Verb(
    "Run again",
    "run again",
    ("Each runs now, with the same parameters, as a new execution. What has not ended is left alone.",),
)
CANCEL = Verb(
    "Cancel",
    "cancelled",
    (
        "What has not begun will never run. Of what runs, its worker is asked to stop it.",
        "What has ended stays as it is.",
    ),
    asks_reason=True,
)
_WAITS = "It has not begun, and will never run."
_ARMED = "A worker holds it ready for its instant. It is taken back, and will not run unless it begins this moment."
_RUNS = (
    "It runs. Its worker is asked to stop it, which takes a second or two; what it has done stays done.",
    "A handler that cannot be interrupted (a thread) sees that it was asked to, and ends when it looks.",
)


@post("/executions/{execution_id:uuid}/retry")
async def retry_execution(
    visit: NamedDependency[Visit],
    execution_id: FromPath[UUID],
    execution_list: NamedDependency[ExecutionListReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any]:
    """Run a finished execution's work again."""
    form = await Form.sent(visit.request)
    await _one(execution_list, execution_id)
    new_id = await changes.retry_execution(execution_id, by=visit.principal)
    if visit.request.query_params.get("follow"):
        return moved(visit, Flash("It runs again: this is the new execution."), to=f"/executions/{new_id}")
    flash = Flash("It runs again, as a new execution.", link=f"/executions/{new_id}", link_text="Open it")
    return done(visit, flash, to=form.back_to("/executions"))


@get("/executions/{execution_id:uuid}/cancel")
async def ask_to_cancel(
    visit: NamedDependency[Visit],
    execution_id: FromPath[UUID],
    execution_list: NamedDependency[ExecutionListReads],
) -> Template:
    """Ask why an execution shall be cancelled, and say what that does to it."""
    visit.principal.require(Role.OPERATOR)
    execution = await _one(execution_list, execution_id)
    if execution.status in FINAL:
        raise _ended(execution)
    verb = Verb(CANCEL.word, CANCEL.past, _what_cancelling_does(execution), asks_reason=True)
    return await ask_back(
        visit, verb, "execution", url=f"/executions/{execution_id}/cancel", names=[_name(execution)]
    )


@post("/executions/{execution_id:uuid}/cancel")
async def cancel_execution(
    visit: NamedDependency[Visit],
    execution_id: FromPath[UUID],
    execution_list: NamedDependency[ExecutionListReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any]:
    """Cancel an execution, or ask its worker to."""
    form = await Form.sent(visit.request)
    outcome = await changes.cancel_execution(execution_id, reason=form.text("reason"), by=visit.principal)
    if outcome is Cancelling.ENDED:
        raise _ended(await _one(execution_list, execution_id))
    said = (
        "Cancelled: it will never run."
        if outcome is Cancelling.CANCELLED
        else "Its worker was asked to stop it."
    )
    return done(visit, Flash(said), to=form.back_to(f"/executions/{execution_id}"))


@post("/executions/actions/retry")
async def retry_selected(
    visit: NamedDependency[Visit],
    execution_list: NamedDependency[ExecutionListReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any]:
    """Run the selected executions again."""

    async def retry(execution_id: UUID, _: str | None) -> None:
        await changes.retry_execution(execution_id, by=visit.principal)

    return await _selected(visit, execution_list, RETRY, retry)


@post("/executions/actions/cancel")
async def cancel_selected(
    visit: NamedDependency[Visit],
    execution_list: NamedDependency[ExecutionListReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any]:
    """Cancel the selected executions."""

    async def cancel(execution_id: UUID, reason: str | None) -> None:
        outcome = await changes.cancel_execution(execution_id, reason=reason, by=visit.principal)
        if outcome is Cancelling.ENDED:
            raise Conflict("it had ended already")

    return await _selected(visit, execution_list, CANCEL, cancel)


async def _selected(
    visit: Visit,
    execution_list: ExecutionListReads,
    verb: Verb,
    do: Callable[[UUID, str | None], Awaitable[None]],
) -> Response[Any]:
    """Ask back first, then do it to each."""
    visit.principal.require(Role.OPERATOR)
    form, ids = await Form.sent(visit.request), await selected_ids(visit.request)
    if not form.text("confirmed"):
        names = [_name(one) for one in await execution_list.some(ids)]
        return await ask_back(visit, verb, "execution", url=visit.path, names=names, ids=ids)
    carried = await carry_out(ids, lambda one: do(one, form.text("reason")))
    return done(visit, told(verb, "execution", carried), to=form.back_to("/executions"))


async def _one(execution_list: ExecutionListReads, execution_id: UUID) -> ListedExecution:
    found = await execution_list.some([execution_id])
    if not found:
        raise NotFound(f"there is no execution {execution_id}")
    return found[0]


def _what_cancelling_does(execution: ListedExecution) -> tuple[str, ...]:
    if execution.cancelling:
        return (
            "Its worker has been asked to stop it already. You can ask again, with another reason.",
            _RUNS[1],
        )
    match execution.status:
        case Status.RUNNING:
            return _RUNS
        case Status.SCHEDULED:
            return (_ARMED,)
        case _:
            return (_WAITS,)


def _ended(execution: ListedExecution) -> Conflict:
    return Conflict(f"the execution had ended already: {execution.status}")


def _name(execution: ListedExecution) -> str:
    name = execution.job_name or execution.task_id
    return f"{name}, {execution.status.lower()}, {short_id(execution.execution_id)}"


EXECUTION_ACTIONS = [retry_execution, ask_to_cancel, cancel_execution, retry_selected, cancel_selected]
