"""`onthedot queue`: classes of work with promises of their own."""

from typing import IO

import click

from app.cli.cells import Column
from app.cli.fields import queue_fields
from app.cli.options import (
    body_of,
    body_options,
    if_version_option,
    limit_option,
    patch_of,
    reason_option,
    until_option,
)
from app.cli.output import note
from app.cli.session import Nouns, Session
from app.client.rest import at

COLUMNS = (
    Column("QUEUE", "queue"),
    Column("PRIORITY", "priority"),
    Column("DEPTH", "depth"),
    Column("RUNNING", "running"),
    Column("OLDEST_S", "oldest_due_seconds"),
    Column("LATE_P50_MS", "lateness_ms.p50"),
    Column("LATE_P99_MS", "lateness_ms.p99"),
    Column("MAX_DELAY_MS", "max_delay_ms"),
    Column("PAUSED_BY", "paused.by"),
    Column("PAUSED_UNTIL", "paused.until"),
    Column("MAX_CONCURRENCY", "max_concurrency"),
    Column("PER_SECOND", "rate_limit.per_second"),
)


@click.group(cls=Nouns)
def queue() -> None:
    """Queues: classes of work with promises of their own."""


@queue.command("list")
@limit_option
@click.pass_obj
def list_queues(session: Session, limit: int) -> None:
    """List queues and what waits in them."""
    session.output.items(session.client.items("/queues", limit=limit), COLUMNS)


@queue.command("get")
@click.argument("name")
@click.pass_obj
def get_queue(session: Session, name: str) -> None:
    """Show a queue."""
    session.output.item(session.client.get(at("queues", name)))


@queue.command("create")
@click.argument("name")
@queue_fields
@body_options
@click.pass_obj
def create_queue(
    session: Session,
    /,
    *,
    name: str,
    file: IO[bytes] | None,
    assignments: tuple[str, ...],
    **fields: object,
) -> None:
    """Create a queue: onthedot queue create etl --priority 1 --max-concurrency 20."""
    body = body_of(file, assignments, queue=name, **fields)
    session.output.item(session.client.post("/queues", body))
    note(f"created queue {name}")


@queue.command("edit")
@click.argument("name")
@queue_fields
@body_options
@if_version_option
@click.pass_obj
def edit_queue(
    session: Session,
    /,
    *,
    name: str,
    file: IO[bytes] | None,
    assignments: tuple[str, ...],
    if_version: int | None,
    **fields: object,
) -> None:
    """Change parts of a queue.

    \b
    onthedot queue edit etl --max-concurrency 20 --rate-limit 100
    onthedot queue edit etl --set max_concurrency=null --set max_retries=5
    """
    body = patch_of(file, assignments, **fields)
    session.output.item(session.client.patch(at("queues", name), body, if_version=if_version))
    note(f"changed queue {name}")


@queue.command("pause")
@click.argument("name")
@reason_option
@until_option
@click.pass_obj
def pause_queue(session: Session, *, name: str, reason: str | None, until: str | None) -> None:
    """Pause a queue: what waits in it waits on, what has begun goes on."""
    body = {"reason": reason, "until": until}
    session.output.item(session.client.post(at("queues", name, "actions", "pause"), body))
    note(f"paused queue {name}; undo: onthedot queue resume {name}")


@queue.command("resume")
@click.argument("name")
@click.pass_obj
def resume_queue(session: Session, name: str) -> None:
    """Resume a queue."""
    session.output.item(session.client.post(at("queues", name, "actions", "resume")))
    note(f"resumed queue {name}")
