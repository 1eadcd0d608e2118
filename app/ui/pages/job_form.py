"""The form of a job: making one, and changing one."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any
from uuid import UUID, uuid4

import msgspec
from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.response import Template

from app.db.reads.audit import AuditReads, ChangeView
from app.db.reads.jobs import JobReads, JobView
from app.domain.access import Role
from app.domain.conversion import convert
from app.domain.errors import InvalidInput, PreconditionFailed
from app.domain.idempotency import StoredAnswer, idempotent_request
from app.domain.job_changes import JobPatch
from app.domain.jobs import JobRequest
from app.intake.changes import ChangeIntake
from app.intake.jobs import JobIntake, Kept, Submitted
from app.ui.flash import Flash
from app.ui.forms import Form
from app.ui.job_commands import Edited
from app.ui.job_form_words import FOLDS, GAPS, HELP, KINDS, LABELS, LIVE, MISFIRES, OVERLAPS, PRESETS, preset
from app.ui.job_input import DEFAULTS, UNITS, changes_of, document_of, place, values_of, values_of_copy
from app.ui.job_look import JobDesk
from app.ui.job_merge import BASE, Merged, changed_since, digests_of, merge
from app.ui.job_parameters import SHOWN_FOR, missing
from app.ui.parameter_form import Input, beside_inputs
from app.ui.task_words import PRIORITIES
from app.ui.visit import Visit, moved, page, part

SPECIAL = ("starts_at", "ends_at", "gap", "fold", "misfire", "misfire_grace_seconds")
"""Fields that few need: shown where one of them says something."""
VERSION, ONCE = "version", "once"
"""Hidden fields: the version that was opened; what makes a form that is sent twice one request."""
CHANGES_LOOKED_AT = 20
Copied = Annotated[UUID | None, QueryParameter(name="from", description="The job to be like")]


class Made(msgspec.Struct, frozen=True):
    """What a form that is sent a second time is told again."""

    job_id: UUID
    execution_id: UUID | None
    is_immediate: bool


@get("/jobs/new")
async def new_job(
    visit: NamedDependency[Visit],
    job_reads: NamedDependency[JobReads],
    job_desk: NamedDependency[JobDesk],
    task: FromQuery[str] = "",
    copied: Copied = None,
) -> Template:
    """Show the form of a new job, perhaps for a task or like another job."""
    visit.principal.require(Role.OPERATOR)
    values: dict[str, str] = {**DEFAULTS, "schedule.timezone": visit.zone.resolved, "task_id": task}
    if copied:
        values = values_of_copy(await job_reads.get(copied, now=visit.now))
    return await _form_page(visit, job_desk, Form(values={**values, ONCE: str(uuid4())}))


@post("/jobs/new")
async def create_job(
    visit: NamedDependency[Visit], job_desk: NamedDependency[JobDesk], jobs: NamedDependency[JobIntake]
) -> Response[Any]:
    """Make a job; or show the form again, with what is asked for in it or what is wrong with it."""
    visit.principal.require(Role.OPERATOR)
    form = await Form.sent(visit.request)
    if only_looks(form):
        return await _form_page(visit, job_desk, _after_preset(form))
    inputs: list[Input] = []
    try:
        values, inputs = await job_desk.read(form.values)
        request = convert(document_of(values), JobRequest)
        made = await _submit(visit, jobs, request, once=form.values.get(ONCE, ""))
    except InvalidInput as error:
        return await _form_page(visit, job_desk, _refused(form, error, inputs), status_code=400)
    if made.is_immediate:
        return moved(visit, Flash("Created. It runs now."), to=f"/executions/{made.execution_id}")
    return moved(visit, Flash("Created."), to=f"/jobs/{made.job_id}")


@get("/jobs/{job_id:uuid}/edit")
async def edit_job(
    visit: NamedDependency[Visit],
    job_id: FromPath[UUID],
    job_reads: NamedDependency[JobReads],
    job_desk: NamedDependency[JobDesk],
) -> Template:
    """Show the form of a job as it is."""
    visit.principal.require(Role.OPERATOR)
    job = await job_reads.get(job_id, now=visit.now)
    return await _form_page(visit, job_desk, Form(values=_opened(job)), job=job)


@post("/jobs/{job_id:uuid}/edit")
async def change_job(
    visit: NamedDependency[Visit],
    job_id: FromPath[UUID],
    job_reads: NamedDependency[JobReads],
    job_desk: NamedDependency[JobDesk],
    audit_reads: NamedDependency[AuditReads],
    changes: NamedDependency[ChangeIntake],
) -> Response[Any]:
    """Change what the form changes of a job, unless somebody has changed the job since the form was opened."""
    visit.principal.require(Role.OPERATOR)
    form, job = await Form.sent(visit.request), await job_reads.get(job_id, now=visit.now)
    if only_looks(form):
        return await _form_page(visit, job_desk, _after_preset(form), job=job)
    inputs: list[Input] = []
    try:
        values, inputs = await job_desk.read(form.values)
        patch = changes_of(values, changed_since(values))
        version = _version(form)
        if patch:
            await changes.patch_job(job_id, convert(patch, JobPatch), by=visit.principal, if_version=version)
    except InvalidInput as error:
        return await _form_page(visit, job_desk, _refused(form, error, inputs), job=job, status_code=400)
    except PreconditionFailed:
        job = await job_reads.get(job_id, now=visit.now)
        found = await audit_reads.of("job", str(job_id), limit=CHANGES_LOOKED_AT)
        return await _conflict_page(visit, job_desk, merge(values, _opened(job)), job, found)
    flash = Flash("Saved." if patch else "Nothing was changed.")
    return moved(visit, flash, to=f"/jobs/{job_id}")


@post("/ui/schedule/preview", status_code=200)
async def preview_form(visit: NamedDependency[Visit], job_desk: NamedDependency[JobDesk]) -> Template:
    """Answer with what a form comes to as it stands, and with what is wrong beside its fields."""
    form = await Form.sent(visit.request)
    edited = Edited(_job_id(form), _version(form)) if form.text("job_id") else None
    look = await job_desk.look(form.values, now=visit.now, server=_server(visit), edited=edited)
    anew = look.values.get("parameters_for", "") != form.values.get("parameters_for", "") or (
        form.values.get("parameters_task", "") != form.values.get("task_id", "").strip()
    )
    shown = Form(values=look.values, errors=look.errors)
    return part("jobs/form_answer.html", visit, look=look, form=shown, anew=anew, edited=edited, **_words())


def is_special(name: str, form: Form) -> bool:
    """Tell whether a field of the schedule says something that does not go without saying, or something wrong."""
    field = f"schedule.{name}"
    return field in form.errors or (form.text(field) or "") != DEFAULTS.get(field, "")


def only_looks(form: Form) -> bool:
    """Tell whether a form is sent to be looked at, not to be saved: that is how it works without a script."""
    return bool(form.text("preview") or form.text("preset"))


def _after_preset(form: Form) -> Form:
    return Form(values={**form.values, **preset(form.values.get("preset", ""))})


async def _submit(visit: Visit, jobs: JobIntake, request: JobRequest, *, once: str) -> Made:
    """Store the job; of a form that is sent twice, such as by an impatient finger, only one comes."""
    by = visit.principal
    body = msgspec.json.encode(request)
    key = f"form {once[:40]!a} {sha256(body).hexdigest()}"  # changed since, it is another request
    repeat = idempotent_request(key, user_id=by.user_id, method="POST", path=visit.path, query="", body=body)
    done = await jobs.submit(request, by=by, kept=Kept(repeat, _kept))
    return msgspec.json.decode(done.body, type=Made) if isinstance(done, StoredAnswer) else _made(done)


async def _form_page(
    visit: Visit,
    job_desk: JobDesk,
    form: Form,
    *,
    job: JobView | None = None,
    merged: Merged | None = None,
    missed: list[ChangeView] | None = None,
    status_code: int = 200,
) -> Template:
    """Show the form. What the look at it finds wrong stands beside fields that nothing worse is said of."""
    edited = Edited(job.job_id, _version(form)) if job else None
    look = await job_desk.look(form.values, now=visit.now, server=_server(visit), edited=edited)
    shown, choices = (
        Form(values=look.values, errors={**look.errors, **form.errors}, summary=form.summary),
        await job_desk.choices(),
    )
    return page(
        "jobs/form.html",
        visit,
        status_code=status_code,
        form=shown,
        look=look,
        job=job,
        edited=edited,
        choices=choices,
        queues=[(one.queue, one.queue) for one in choices.queues],
        is_special=any(is_special(name, shown) for name in SPECIAL),
        merged=merged,
        missed=missed,
        address=f"/jobs/{job.job_id}/edit" if job else "/jobs/new",
        **_words(),
    )


async def _conflict_page(
    visit: Visit, job_desk: JobDesk, merged: Merged, job: JobView, found: list[ChangeView]
) -> Template:
    """Show the form with the others' changes in it, and who changed what since it was opened."""
    seen = _version(Form(values=merged.values))
    missed = found[: max(0, job.version - seen)]
    base = {VERSION: str(job.version), BASE: digests_of(values_of(job)), SHOWN_FOR: ""}
    form = Form(values={**merged.values, **base})
    return await _form_page(visit, job_desk, form, job=job, merged=merged, missed=missed, status_code=412)


def _opened(job: JobView) -> dict[str, str]:
    values = values_of(job)
    return {**values, VERSION: str(job.version), BASE: digests_of(values)}


def _job_id(form: Form) -> UUID:
    try:
        return UUID(form.values["job_id"])
    except ValueError:
        raise InvalidInput(
            "this form does not say which job it changes; open it anew", pointer="/job_id"
        ) from None


def _version(form: Form) -> int:
    text = form.values.get(VERSION, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(
            "this form does not say which version it changes; open it anew", pointer="/version"
        )
    return int(text)


def _refused(form: Form, error: InvalidInput, inputs: list[Input]) -> Form:
    """Return the form with what is wrong beside its fields; of parameters in fields, beside those."""
    errors = place(beside_inputs(error, inputs), form.values)
    if inputs and (lacking := missing(form.values, inputs)) and "parameters" in errors:
        errors = {name: told for name, told in errors.items() if name != "parameters"} | lacking
    summary = error.detail if not errors.keys() - {""} else None
    return Form(
        values=form.values,
        errors={name: told for name, told in errors.items() if name},
        summary=summary or error.detail,
    )


def _made(submitted: Submitted) -> Made:
    [job] = submitted.jobs
    return Made(job.job_id, job.execution_id, job.schedule_type == "IMMEDIATE")


def _kept(submitted: Submitted) -> StoredAnswer:
    return StoredAnswer(303, msgspec.json.encode(_made(submitted)))


def _server(visit: Visit) -> str:
    return str(visit.request.base_url).rstrip("/")


def _words() -> Mapping[str, Any]:
    """Return the words of the form's fields."""
    return {
        "help": HELP,
        "labels": LABELS,
        "live": LIVE,
        "kinds": KINDS,
        "presets": PRESETS,
        "units": [unit for unit, _ in UNITS],
        "gaps": GAPS,
        "folds": FOLDS,
        "misfires": MISFIRES,
        "overlaps": OVERLAPS,
        "priorities": [(str(number), f"{number} {word}") for number, word in enumerate(PRIORITIES)],
    }


JOB_FORM_PAGES = [new_job, create_job, edit_job, change_job, preview_form]
