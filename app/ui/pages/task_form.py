"""Making a task, changing one, and trying one out."""

from typing import Any, Literal

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Template

from app.db.reads.audit import AuditReads, ChangeView
from app.db.reads.tasks import TaskReads
from app.db.stores.tasks import Task
from app.domain.access import Role
from app.domain.errors import Conflict, InvalidInput, PreconditionFailed
from app.domain.jobs import JobRequest
from app.intake.jobs import JobIntake, Submitted
from app.intake.tasks import TaskIntake
from app.ui.flash import Flash
from app.ui.forms import Form
from app.ui.parameter_form import Input, as_one_field, beside_inputs, inputs_of, read_parameters
from app.ui.task_forms import (
    BUILTIN_CHOICES,
    METHOD_CHOICES,
    as_request,
    new_task_form,
    placed,
    read_change,
    read_json,
    read_new_task,
    task_form,
)
from app.ui.task_words import PRIORITIES, handler
from app.ui.visit import Visit, moved, page

Kind = Literal["http", "python", "shell", "builtin"]
KINDS: tuple[tuple[str, str], ...] = (
    ("http", "Call a web service"),
    ("python", "Run a Python function"),
    ("shell", "Run a command"),
    ("builtin", "Try a built-in one"),
)
TRIED = "try-it"
"""The tag of jobs that were made to try a task out."""
CHANGES_LOOKED_AT = 20
_AS_THE_QUEUE = [("", "as the queue")]


@get("/tasks/-/new")
async def new_task(
    visit: NamedDependency[Visit], task_reads: NamedDependency[TaskReads], kind: FromQuery[Kind] = "http"
) -> Template:
    """Show the form of a new task."""
    visit.principal.require(Role.OPERATOR)
    return await _form_page(visit, task_reads, new_task_form(kind), kind)


@post("/tasks/-/new")
async def create_task(
    visit: NamedDependency[Visit],
    task_reads: NamedDependency[TaskReads],
    tasks: NamedDependency[TaskIntake],
    kind: FromQuery[Kind] = "http",
) -> Response[Any] | Template:
    """Make a task."""
    visit.principal.require(Role.OPERATOR)
    form = await Form.sent(visit.request)
    try:
        task = await tasks.create(read_new_task(form, kind), by=visit.principal)
    except InvalidInput as error:
        return await _form_page(visit, task_reads, form.refused(placed(error)), kind, status_code=400)
    except Conflict as error:
        taken = InvalidInput(error.detail, pointer="/task_id")
        return await _form_page(visit, task_reads, form.refused(taken), kind, status_code=409)
    return moved(visit, Flash("Created. Try it, or make a job of it."), to=f"/tasks/{task.task_id}")


@get("/tasks/{task_id:str}/edit")
async def edit_task(
    visit: NamedDependency[Visit],
    task_id: FromPath[str],
    task_reads: NamedDependency[TaskReads],
    kind: FromQuery[Kind | None] = None,
) -> Template:
    """Show the form of a task as it is."""
    visit.principal.require(Role.OPERATOR)
    task = (await task_reads.get(task_id)).task
    chosen = kind or _kind_of(task)
    return await _form_page(visit, task_reads, task_form(task, chosen), chosen, task=task)


@post("/tasks/{task_id:str}/edit")
async def change_task(
    visit: NamedDependency[Visit],
    task_id: FromPath[str],
    task_reads: NamedDependency[TaskReads],
    tasks: NamedDependency[TaskIntake],
    audit_reads: NamedDependency[AuditReads],
    kind: FromQuery[Kind] = "http",
) -> Response[Any] | Template:
    """Change a task as the form has it, unless somebody changed it since the form was made."""
    visit.principal.require(Role.OPERATOR)
    form, task = await Form.sent(visit.request), (await task_reads.get(task_id)).task
    try:
        change = read_change(form, kind, task)
        await tasks.patch(task_id, change, by=visit.principal, if_version=_version(form))
    except InvalidInput as error:
        refused = form.refused(placed(error))
        return await _form_page(visit, task_reads, refused, kind, task=task, status_code=400)
    except PreconditionFailed:
        missed = await _missed(audit_reads, task_id, _version(form))
        return await _form_page(visit, task_reads, form, kind, task=task, missed=missed, status_code=412)
    return moved(visit, Flash("Saved. What waits runs by it, too."), to=f"/tasks/{task_id}")


@get("/tasks/{task_id:str}/try")
async def ask_what_to_try(
    visit: NamedDependency[Visit],
    task_id: FromPath[str],
    task_reads: NamedDependency[TaskReads],
    as_json: FromQuery[bool] = False,  # noqa: FBT002 - of the address
) -> Template:
    """Ask with which parameters a task shall be run once."""
    visit.principal.require(Role.OPERATOR)
    task = (await task_reads.get(task_id)).task
    inputs = [] if as_json else inputs_of(task.parameter_schema)
    return _try_page(visit, task, Form(), inputs)


@post("/tasks/{task_id:str}/try")
async def try_task(
    visit: NamedDependency[Visit],
    task_id: FromPath[str],
    task_reads: NamedDependency[TaskReads],
    jobs: NamedDependency[JobIntake],
) -> Response[Any] | Template:
    """Run a task once, now."""
    visit.principal.require(Role.OPERATOR)
    form, task = await Form.sent(visit.request), (await task_reads.get(task_id)).task
    inputs = [] if "parameters" in form.values else inputs_of(task.parameter_schema)
    if form.text("version") != str(task.version):
        changed = form.refused(InvalidInput("the task was changed meanwhile; look at its fields again"))
        return _try_page(visit, task, changed, inputs, status_code=412)
    try:
        parameters = _parameters(form, inputs)
        done = await jobs.submit(_one_run(task_id, parameters), by=visit.principal)
    except InvalidInput as error:
        placed = beside_inputs(error, inputs) if inputs else as_one_field(error)
        return _try_page(visit, task, form.refused(placed), inputs, status_code=400)
    return moved(visit, Flash("It runs once, now."), to=_its_execution(done))


def _try_page(
    visit: Visit, task: Task, form: Form, inputs: list[Input], *, status_code: int = 200
) -> Template:
    return page(
        "tasks/try.html",
        visit,
        status_code=status_code,
        task=task,
        form=form,
        inputs=inputs,
        may_use_inputs=bool(inputs_of(task.parameter_schema)),
    )


def _parameters(form: Form, inputs: list[Input]) -> dict[str, Any]:
    return read_parameters(form, inputs) if inputs else read_json(form.text("parameters"), {})


def _one_run(task_id: str, parameters: dict[str, Any]) -> JobRequest:
    schedule = {"type": "IMMEDIATE"}
    values = {"task_id": task_id, "schedule": schedule, "parameters": parameters, "tags": [TRIED]}
    return as_request(values, JobRequest)


def _its_execution(done: Any) -> str:  # noqa: ANN401 - a stored answer only where a request may come again
    [job] = done.jobs if isinstance(done, Submitted) else [None]
    return f"/executions/{job.execution_id}" if job else "/executions"


async def _form_page(
    visit: Visit,
    task_reads: TaskReads,
    form: Form,
    kind: str,
    *,
    task: Task | None = None,
    missed: list[ChangeView] | None = None,
    status_code: int = 200,
) -> Template:
    queues = await task_reads.queues()
    return page(
        "tasks/form.html",
        visit,
        status_code=status_code,
        form=form,
        kind=kind,
        kinds=KINDS,
        task=task,
        missed=missed,
        queues=[(queue.queue, queue.queue) for queue in queues],
        priorities=[
            *_AS_THE_QUEUE[task is not None :],
            *((str(n), f"{n} {word}") for n, word in enumerate(PRIORITIES)),
        ],
        policies=[
            ("exponential", "doubling"),
            ("linear", "growing by the first delay"),
            ("fixed", "the same each time"),
        ],
        methods=METHOD_CHOICES,
        builtins=BUILTIN_CHOICES,
    )


def _kind_of(task: Task) -> str:
    kind = handler(task.execution_handler).kind
    return kind if kind in dict(KINDS) else "python"


def _version(form: Form) -> int | None:
    text = form.text("version") or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


async def _missed(audit_reads: AuditReads, task_id: str, version: int | None) -> list[ChangeView]:
    """Return the changes that the form did not know of."""
    changes = await audit_reads.of("task", task_id, limit=CHANGES_LOOKED_AT)
    return [one for one in changes if one.after and one.after.get("version", 0) > (version or 0)]


TASK_FORMS = [new_task, create_task, edit_task, change_task, ask_what_to_try, try_task]
