"""`onthedot task`: reusable templates of work."""

from typing import IO

import click

from app.cli.cells import Column
from app.cli.fields import task_fields
from app.cli.options import (
    body_of,
    body_options,
    if_version_option,
    json_object,
    limit_option,
    patch_of,
    yes_option,
)
from app.cli.output import note
from app.cli.session import Nouns, Session, confirm
from app.client.rest import Document, at

COLUMNS = (
    Column("TASK", "task_id"),
    Column("HANDLER", "execution_handler"),
    Column("QUEUE", "queue"),
    Column("PRIORITY", "priority"),
    Column("TIMEOUT", "resource_requirements.timeout_seconds"),
    Column("RETRIES", "resource_requirements.max_retries"),
    Column("VERSION", "version"),
    Column("LABELS", "labels"),
    Column("CONCURRENCY", "concurrency"),
    Column("KEY", "concurrency_key"),
    Column("PER_SECOND", "rate_limit.per_second"),
)


@click.group(cls=Nouns)
def task() -> None:
    """Tasks: reusable templates of work."""


@task.command("list")
@limit_option
@click.pass_obj
def list_tasks(session: Session, limit: int) -> None:
    """List tasks."""
    session.output.items(session.client.items("/tasks", limit=limit), COLUMNS)


@task.command("get")
@click.argument("task_id")
@click.pass_obj
def get_task(session: Session, task_id: str) -> None:
    """Show a task."""
    session.output.item(session.client.get(at("tasks", task_id)))


@task.command("create")
@click.argument("task_id")
@task_fields
@body_options
@click.pass_obj
def create_task(
    session: Session,
    /,
    *,
    task_id: str,
    schema: IO[bytes] | None,
    file: IO[bytes] | None,
    assignments: tuple[str, ...],
    **fields: object,
) -> None:
    """Create a task.

    \b
    onthedot task create ping --handler "http:GET https://example.com/ping"
    onthedot task create backup --handler "shell:tar -czf /backup/etc.tgz /etc"
    onthedot task create deploy --handler python:deploy --set resource_requirements.max_retries=5
    onthedot task create train --handler python:train --label gpu=a100 --concurrency 4
    """
    body = body_of(file, assignments, task_id=task_id, parameter_schema=_json(schema), **fields)
    session.output.item(session.client.post("/tasks", body))
    note(f"created task {task_id}")


@task.command("edit")
@click.argument("task_id")
@task_fields
@body_options
@if_version_option
@click.pass_obj
def edit_task(
    session: Session,
    /,
    *,
    task_id: str,
    schema: IO[bytes] | None,
    file: IO[bytes] | None,
    assignments: tuple[str, ...],
    if_version: int | None,
    **fields: object,
) -> None:
    """Change parts of a task.

    \b
    onthedot task edit ping --priority 1 --rate-limit 2.5 --burst 10
    onthedot task edit sync --concurrency-key 'tenant:{{parameters.tenant}}'
    onthedot task edit sync --set concurrency=null --set rate_limit=null
    """
    body = patch_of(file, assignments, parameter_schema=_json(schema), **fields)
    session.output.item(session.client.patch(at("tasks", task_id), body, if_version=if_version))
    note(f"changed task {task_id}")


@task.command("delete")
@click.argument("task_id")
@yes_option
@click.pass_obj
def delete_task(session: Session, *, task_id: str, yes: bool) -> None:
    """Delete a task that no job uses."""
    confirm(f"Delete the task {task_id}?", yes=yes)
    session.client.delete(at("tasks", task_id))
    note(f"deleted task {task_id}")


def _json(schema: IO[bytes] | None) -> Document | None:
    return json_object(schema) if schema else None
