"""`onthedot status`: one screen that tells whether all is well."""

import click

from app.cli.cells import Column
from app.cli.exec import COLUMNS as EXECUTION_COLUMNS
from app.cli.failures import Exit
from app.cli.output import Form, note
from app.cli.queue import COLUMNS as QUEUE_COLUMNS
from app.cli.session import ClientCommand, Session
from app.cli.worker import COLUMNS as WORKER_COLUMNS
from app.client.rest import Document

SHOWN = 1000
FAILURES_SHOWN = 5
STATS_COLUMNS = (
    Column("CREATED/S", "created_per_second"),
    Column("COMPLETED/S", "completed_per_second"),
    Column("FAILED/S", "failed_per_second"),
    Column("RUNNING", "running"),
    Column("DUE", "due"),
    Column("LATE_P50_MS", "lateness_ms.p50"),
    Column("LATE_P99_MS", "lateness_ms.p99"),
    Column("LATE_MAX_MS", "lateness_ms.max"),
)


@click.command("status", cls=ClientCommand)
@click.pass_obj
@click.pass_context
def status(ctx: click.Context, session: Session) -> None:
    """Show whether the server works, what waits, who works, and what failed last.

    Exits with 1 where the server is up but cannot work.
    """
    ready, reason = session.client.is_ready()
    note(f"{session.client.url} is {'ready' if ready else f'not ready: {reason}'}")
    if not ready:
        ctx.exit(Exit.FAILED)
    found = _read(session)
    if session.output.form in {Form.JSON, Form.JSONL}:
        session.output.item(found)
        return
    for title, items, columns in (
        ("LAST MINUTE", [found["stats"]], STATS_COLUMNS),
        ("QUEUES", found["queues"], QUEUE_COLUMNS),
        ("WORKERS", found["workers"], WORKER_COLUMNS),
        ("FAILED LAST", found["failed"], EXECUTION_COLUMNS),
    ):
        click.echo(f"\n{title}")
        session.output.items(items, columns)


def _read(session: Session) -> Document:
    client = session.client
    return {
        "stats": client.get("/stats"),
        "queues": list(client.items("/queues", limit=SHOWN)),
        "workers": list(client.items("/workers", limit=SHOWN)),
        "failed": list(client.items("/executions", limit=FAILURES_SHOWN, status="FAILED")),
    }
