"""`onthedot user`: the owners of jobs."""

from typing import IO

import click

from app.cli.cells import Column
from app.cli.exec import COLUMNS as EXECUTION_COLUMNS
from app.cli.exec import STATUSES
from app.cli.fields import user_fields
from app.cli.options import body_of, body_options, if_version_option, limit_option, patch_of, yes_option
from app.cli.output import note
from app.cli.session import Nouns, Session, confirm
from app.client.rest import at

COLUMNS = (
    Column("USER", "user_id"),
    Column("NAME", "name"),
    Column("EMAIL", "email"),
    Column("ROLE", "role"),
    Column("CONCURRENT", "job_quotas.max_concurrent_jobs"),
    Column("PER_HOUR", "job_quotas.max_jobs_per_hour"),
    Column("VERSION", "version"),
    Column("PER_SECOND", "job_quotas.rate_limit.per_second"),
)


@click.group(cls=Nouns)
def user() -> None:
    """Users: the owners of jobs."""


@user.command("list")
@limit_option
@click.pass_obj
def list_users(session: Session, limit: int) -> None:
    """List users."""
    session.output.items(session.client.items("/users", limit=limit), COLUMNS)


@user.command("get")
@click.argument("user_id")
@click.pass_obj
def get_user(session: Session, user_id: str) -> None:
    """Show a user."""
    session.output.item(session.client.get(at("users", user_id)))


@user.command("create")
@click.argument("user_id")
@user_fields
@body_options
@click.pass_obj
def create_user(
    session: Session,
    /,
    *,
    user_id: str,
    file: IO[bytes] | None,
    assignments: tuple[str, ...],
    **fields: object,
) -> None:
    """Create a user: onthedot user create ada --role operator --max-concurrent-jobs 10."""
    body = body_of(file, assignments, user_id=user_id, **fields)
    session.output.item(session.client.post("/users", body))
    note(f"created user {user_id}; make a key: onthedot key create {user_id}")


@user.command("edit")
@click.argument("user_id")
@user_fields
@body_options
@if_version_option
@click.pass_obj
def edit_user(
    session: Session,
    /,
    *,
    user_id: str,
    file: IO[bytes] | None,
    assignments: tuple[str, ...],
    if_version: int | None,
    **fields: object,
) -> None:
    """Change parts of a user.

    \b
    onthedot user edit ada --role viewer
    onthedot user edit ada --max-jobs-per-hour 1000 --set job_quotas.max_concurrent_jobs=null
    """
    body = patch_of(file, assignments, **fields)
    session.output.item(session.client.patch(at("users", user_id), body, if_version=if_version))
    note(f"changed user {user_id}")


@user.command("delete")
@click.argument("user_id")
@yes_option
@click.pass_obj
def delete_user(session: Session, *, user_id: str, yes: bool) -> None:
    """Delete a user who owns no jobs, with their keys."""
    confirm(f"Delete the user {user_id} and their keys?", yes=yes)
    session.client.delete(at("users", user_id))
    note(f"deleted user {user_id}")


@user.command("executions")
@click.argument("user_id")
@click.option("--task", "task_id")
@click.option("--queue")
@click.option("--priority", type=click.IntRange(0, 3))
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False))
@limit_option
@click.pass_obj
def list_executions(session: Session, /, *, user_id: str, limit: int, **filters: str | int | None) -> None:
    """List the executions of a user's jobs, the newest instant first."""
    found = session.client.items(at("users", user_id, "executions"), limit=limit, **filters)
    session.output.items(found, EXECUTION_COLUMNS)


@user.command("summary")
@click.argument("user_id")
@click.option("--since", metavar="TIME", help="RFC 3339 or Unix seconds; without it: all that is kept")
@click.pass_obj
def show_summary(session: Session, *, user_id: str, since: str | None) -> None:
    """Count a user's executions by status, task and queue."""
    session.output.item(session.client.get(at("users", user_id, "summary"), since=since))
