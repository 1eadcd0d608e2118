"""`onthedot wf`: workflows, which are jobs whose work is a graph of steps, and their runs."""

from typing import IO

import click

from app.cli.cells import Column
from app.cli.options import (
    assignment,
    body_options,
    if_version_option,
    json_object,
    limit_option,
    patch_of,
    reason_option,
    until_option,
    yes_option,
)
from app.cli.output import Form, note
from app.cli.session import Nouns, Session, confirm
from app.cli.wf_runs import COLUMNS as RUN_COLUMNS
from app.cli.wf_runs import COMMANDS, STATUSES, follow_options, follow_run
from app.client.rest import Document, at

COLUMNS = (
    Column("WORKFLOW", "workflow_id"),
    Column("NAME", "name"),
    Column("OWNER", "user_id"),
    Column("TYPE", "schedule.type"),
    Column("EXPRESSION", "schedule.expression"),
    Column("ZONE", "schedule.timezone"),
    Column("ACTIVE", "is_active"),
    Column("NEXT", "next_at"),
    Column("STEPS", "step_count"),
    Column("OVERLAP", "overlap"),
    Column("LATEST", "latest_run.status"),
    Column("STARTED", "latest_run.started_at"),
)
STEP_COLUMNS = (
    Column("STEP", "key"),
    Column("TASK", "task_id"),
    Column("AFTER", "depends_on"),
    Column("WHEN", "when"),
    Column("MAP", "map"),
    Column("PARAMETERS", "parameters"),
)


@click.group(cls=Nouns)
def wf() -> None:
    """Workflows: jobs whose work is a graph of steps; and their runs."""


@wf.command("list")
@limit_option
@click.pass_obj
def list_workflows(session: Session, limit: int) -> None:
    """List workflows, the newest first."""
    found = session.client.items("/workflows", limit=limit)
    session.output.items((_with_next(item) for item in found), COLUMNS)


@wf.command("show")
@click.argument("workflow_id")
@click.pass_obj
def show_workflow(session: Session, workflow_id: str) -> None:
    """Show a workflow with its steps."""
    _show(session, session.client.get(at("workflows", workflow_id)))


@wf.command("create")
@click.argument("file", type=click.File("rb"))
@click.pass_obj
def create_workflow(session: Session, file: IO[bytes]) -> None:
    """Create a workflow from a file of JSON; - reads stdin.

    \b
    onthedot wf create nightly.json
    """
    created = session.client.post("/workflows", json_object(file))
    note(f"created workflow {created['workflow_id']}")
    for warning in created["warnings"]:
        note(f"! {warning['detail']}")
    _show(session, created)
    if created["workflow_run_id"] is not None:
        _note_run(created["workflow_run_id"])


@wf.command("edit")
@click.argument("workflow_id")
@body_options
@if_version_option
@click.pass_obj
def edit_workflow(
    session: Session,
    /,
    *,
    workflow_id: str,
    file: IO[bytes] | None,
    assignments: tuple[str, ...],
    if_version: int | None,
) -> None:
    """Change parts of a workflow; runs that have begun keep the steps that they began with.

    \b
    onthedot wf edit WORKFLOW --set overlap=skip --set deadline_seconds=3600
    onthedot wf edit WORKFLOW -f nightly.json
    """
    body = patch_of(file, assignments)
    _show(session, session.client.patch(at("workflows", workflow_id), body, if_version=if_version))
    note(f"changed workflow {workflow_id}")


@wf.command("run")
@click.argument("workflow_id")
@click.option(
    "-p",
    "--param",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Instead of the workflow's parameter of this name; JSON or else text",
)
@follow_options
@click.pass_obj
def run_workflow(
    session: Session,
    /,
    *,
    workflow_id: str,
    parameters: tuple[str, ...],
    follow: bool,
    timeout_seconds: float | None,
) -> None:
    """Begin a run now, apart from the schedule; also while the workflow is paused.

    \b
    onthedot wf run WORKFLOW --param day=2030-01-31 --follow
    """
    body = _run_body(session, workflow_id, dict(map(assignment, parameters)))
    started = session.client.post(at("workflows", workflow_id, "actions", "run"), body)
    if follow:
        note(f"run {started['workflow_run_id']}")
        follow_run(session, started["workflow_run_id"], timeout_seconds=timeout_seconds)
    else:
        session.output.item(started)
        _note_run(started["workflow_run_id"])


@wf.command("pause")
@click.argument("workflow_id")
@reason_option
@until_option
@click.pass_obj
def pause_workflow(session: Session, *, workflow_id: str, reason: str | None, until: str | None) -> None:
    """Pause a workflow: its schedule begins no run; runs under way go on."""
    body = {"reason": reason, "until": until}
    _show(session, session.client.post(at("workflows", workflow_id, "actions", "pause"), body))
    note(f"paused workflow {workflow_id}; undo: onthedot wf resume {workflow_id}")


@wf.command("resume")
@click.argument("workflow_id")
@click.pass_obj
def resume_workflow(session: Session, workflow_id: str) -> None:
    """Resume a workflow from now on."""
    _show(session, session.client.post(at("workflows", workflow_id, "actions", "resume")))
    note(f"resumed workflow {workflow_id}")


@wf.command("delete")
@click.argument("workflow_id")
@yes_option
@click.pass_obj
def delete_workflow(session: Session, *, workflow_id: str, yes: bool) -> None:
    """Delete a workflow: no run begins any more; those under way go on."""
    confirm(f"Delete the workflow {workflow_id}?", yes=yes)
    session.client.delete(at("workflows", workflow_id))
    note(f"deleted workflow {workflow_id}; runs under way go on")


@wf.command("runs")
@click.argument("workflow_id", required=False)
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False))
@limit_option
@click.pass_obj
def list_runs(session: Session, *, workflow_id: str | None, status: str | None, limit: int) -> None:
    """List a workflow's runs, or those of all, the newest first."""
    path = at("workflow-runs") if workflow_id is None else at("workflows", workflow_id, "runs")
    session.output.items(session.client.items(path, limit=limit, status=status), RUN_COLUMNS)


for command in COMMANDS:
    wf.add_command(command)


def _show(session: Session, workflow: Document) -> None:
    """Print a workflow: its own fields, and below them its steps."""
    if session.output.form in {Form.JSON, Form.JSONL}:
        session.output.item(workflow)
        return
    session.output.item({name: value for name, value in workflow.items() if name != "steps"})
    click.echo("\nSTEPS")
    session.output.items(
        ({"depends_on": [], "when": "all_success"} | step for step in workflow["steps"]), STEP_COLUMNS
    )


def _run_body(session: Session, workflow_id: str, given: Document) -> Document:
    """Return what a run is asked for with: the API takes all of its parameters, or none."""
    if not given:
        return {}
    own: Document = session.client.get(at("workflows", workflow_id))["parameters"]
    return {"parameters": own | given}


def _with_next(workflow: Document) -> Document:
    return workflow | {"next_at": next(iter(workflow["next_occurrences"]), None)}


def _note_run(run_id: str) -> None:
    note(f"follow it: onthedot wf status {run_id} --follow")
