"""What the page of a job's form shows beside what was typed: when it runs, what is wrong, what the task says."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

import msgspec

from app.db.reads.tasks import QueueChoice, TaskDetail, TaskFilters, TaskReads
from app.db.stores.zones import ZoneAliasStore
from app.domain.conversion import convert
from app.domain.errors import FieldError, InvalidInput, NotFound
from app.domain.parameters import ParameterSchema
from app.domain.schedule_preview import SchedulePreview, preview
from app.domain.schema_outline import Outline, outline
from app.domain.stored_schedule import JobSchedule
from app.domain.timezones import Zone, resolve, zone_names
from app.ui.job_commands import Edited, command_line, curl
from app.ui.job_input import Values, changes_of, document_of, parameters_of, place, schedule_of
from app.ui.job_merge import changed_since
from app.ui.job_parameters import EMPTY, fill_fields, inputs_shown, read_into_json
from app.ui.parameter_form import Input, beside_inputs, inputs_of

INSTANTS = 10
MOST_TASKS = 500
"""More are no help to choose from; their ids can be typed."""


class Row(NamedTuple):
    """One instant of the preview, and how long after the one before it comes."""

    at: datetime
    gap: timedelta | None


class Choices(NamedTuple):
    """What the form offers."""

    tasks: list[tuple[str, str]]
    queues: list[QueueChoice]
    zones: list[str]


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to see of a form."""

    values: Mapping[str, str]
    """As they are to be shown: parameters in fields where they can be."""
    document: Mapping[str, Any] | None
    """What the form says, as the API takes it; None where it cannot be read."""
    preview: SchedulePreview | None
    zone: Zone
    """The schedule's; UTC where it has none yet."""
    rows: list[Row]
    errors: Mapping[str, str]
    """By the names of fields; of fields that are empty only `waits_for` speaks."""
    waits_for: str | None
    detail: TaskDetail | None
    outline: Outline | None
    inputs: list[Input]
    """Fields of the parameters; none where JSON is shown."""
    may_use_inputs: bool
    keeps_parameters: bool
    """They are too large for the form and stay as they are."""
    curl: str | None
    command: str | None

    def label(self, name: str) -> str:
        """Return what a field of the parameters is called."""
        return next((one.label for one in self.inputs if one.name == name), name)


class JobDesk:
    """Looks at forms of jobs. Nothing is stored here."""

    def __init__(self, tasks: TaskReads, aliases: ZoneAliasStore) -> None:
        self._tasks = tasks
        self._aliases = aliases

    async def choices(self) -> Choices:
        """Return what the form offers."""
        tasks = await self._tasks.list_page(TaskFilters(), limit=MOST_TASKS, after=None)
        named = [(task.task_id, "" if task.name == task.task_id else task.name) for task in tasks.items]
        return Choices(named, await self._tasks.queues(), _zones())

    async def read(self, values: Values) -> tuple[dict[str, str], list[Input]]:
        """Return a form that was sent, its parameters as JSON, with the fields that they came in.

        Raises `InvalidInput` that points to the fields.
        """
        shown = await self._detail(values.get("parameters_for", ""))
        inputs = inputs_shown(values, shown.task.task_id, shown.task.parameter_schema) if shown else []
        return read_into_json(values, inputs), inputs

    async def look(self, sent: Values, *, now: datetime, server: str, edited: Edited | None = None) -> Look:
        """Return what the form comes to as it stands."""
        detail, errors, values = await self._detail(sent.get("task_id", "").strip()), {}, dict(sent)
        try:
            values, _ = await self.read(sent)
        except InvalidInput as error:
            errors = place(error, sent)
        kept = edited is not None and not sent.keys() & {"parameters", "p0"}
        possible = inputs_of(detail.task.parameter_schema) if detail and not kept else []
        task_id = detail.task.task_id if detail else ""
        shown = fill_fields(values, task_id, possible, defaults=edited is None)
        inputs = inputs_shown(shown, task_id, detail.task.parameter_schema) if detail else []
        found, wrong, waits_for = await self._preview(values, now)
        errors |= wrong | _of_task(values, detail) | _of_parameters(values, detail, inputs)
        document = _document(values, edited)
        instants = found.occurrences if found else []
        return Look(
            values=shown,
            document=document,
            preview=found,
            zone=resolve(found.timezone.resolved if found else "UTC"),
            rows=_rows(instants),
            errors=errors,
            waits_for=waits_for,
            detail=detail,
            outline=outline(detail.task.parameter_schema) if detail else None,
            inputs=inputs,
            may_use_inputs=bool(possible),
            keeps_parameters=kept,
            curl=curl(document, server=server, edited=edited) if document else None,
            command=command_line(document, edited=edited) if document else None,
        )

    async def _preview(
        self, values: Values, now: datetime
    ) -> tuple[SchedulePreview | None, dict[str, str], str | None]:
        """Return what the schedule comes to, or what is wrong with it, or what it lacks."""
        try:
            spec = convert(_schedule(values), JobSchedule)
            return preview(spec, now=now, count=INSTANTS, aliases=await self._aliases.all()), {}, None
        except InvalidInput as error:
            placed = place(
                error if error.pointer.startswith("/schedule") else error.within("/schedule"), values
            )
            errors = {name: detail for name, detail in placed.items() if values.get(name, "").strip()}
            return None, errors, None if errors else next(iter(placed.values()))

    async def _detail(self, task_id: str) -> TaskDetail | None:
        try:
            return await self._tasks.get(task_id) if task_id and "\0" not in task_id else None
        except NotFound:
            return None


def _schedule(values: Values) -> dict[str, Any]:
    problems: list[FieldError] = []
    schedule = schedule_of(values, problems)
    if problems:
        raise InvalidInput(problems[0].detail, errors=tuple(problems))
    return schedule


def _rows(instants: list[datetime]) -> list[Row]:
    before = [None, *instants]
    return [Row(at, at - last if last else None) for last, at in zip(before, instants, strict=False)]


def _of_task(values: Values, detail: TaskDetail | None) -> dict[str, str]:
    task_id = values.get("task_id", "").strip()
    return {"task_id": f"there is no task {task_id!r:.140}"} if task_id and detail is None else {}


def _of_parameters(values: Values, detail: TaskDetail | None, inputs: list[Input]) -> dict[str, str]:
    """Check parameters that somebody has begun to write; `{}` is where everybody begins."""
    if values.get("parameters", "").strip() in {"", EMPTY}:
        return {}
    try:
        parameters = parameters_of(values)
        if detail and isinstance(parameters, dict):
            ParameterSchema(detail.task.parameter_schema).check(parameters)
    except InvalidInput as error:
        placed = place(beside_inputs(error, inputs), values)
        return {name: told for name, told in placed.items() if not (inputs and name == "parameters")}
    return (
        {} if isinstance(parameters, dict) else {"parameters": 'parameters are an object: {"name": "value"}'}
    )


def _document(values: Values, edited: Edited | None) -> dict[str, Any] | None:
    try:
        document = document_of(values) if edited is None else changes_of(values, changed_since(values))
    except InvalidInput:
        return None
    return document if isinstance(document.get("parameters", {}), dict) else None


@cache
def _zones() -> list[str]:
    """Return the zones of places, and UTC; other names can be typed."""
    return ["UTC", *sorted(name for name in zone_names() if "/" in name and not name.startswith("Etc/"))]
