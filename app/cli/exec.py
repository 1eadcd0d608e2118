"""`onthedot exec`: what ran, runs and will run."""

import time
from collections.abc import Iterator

import click

from app.cli.cells import Column
from app.cli.options import limit_option, reason_option
from app.cli.output import note
from app.cli.session import Nouns, Session
from app.cli.waiting import POLL_SECONDS, exit_of, has_ended, wait_for
from app.client.rest import Document, RestClient, at

COLUMNS = (
    Column("EXECUTION", "execution_id"),
    Column("TASK", "task_id"),
    Column("QUEUE", "queue"),
    Column("STATUS", "status"),
    Column("SCHEDULED", "scheduled_time"),
    Column("STARTED", "started_at"),
    Column("LATE_MS", "lateness_ms"),
    Column("ATTEMPT", "attempt_number"),
    Column("ERROR", "error.message"),
)
ATTEMPTS = (
    Column("ATTEMPT", "attempt_number"),
    Column("OUTCOME", "outcome"),
    Column("STARTED", "started_at"),
    Column("ENDED", "ended_at"),
    Column("WORKER", "worker_id"),
    Column("ERROR", "error.message"),
)
STATUSES = (
    "BLOCKED",
    "PENDING",
    "SCHEDULED",
    "RUNNING",
    "RETRYING",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "SKIPPED",
)

_WITHOUT_REASONS = {
    "PENDING": "nothing is in its way: the next worker with room takes it",
    "RETRYING": "nothing is in its way: the next worker with room takes it",
    "SCHEDULED": "a worker holds it ready and starts it on the dot",
    "RUNNING": "it runs",
}


@click.group(name="exec", cls=Nouns)
def executions() -> None:
    """Executions: what ran, runs and will run."""


@executions.command("list")
@click.option("--user", "user_id")
@click.option("--task", "task_id")
@click.option("--queue")
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False))
@click.option("--future", is_flag=True, help="Also those whose instant has not come")
@limit_option
@click.pass_obj
def list_executions(session: Session, /, *, limit: int, future: bool, **filters: str | None) -> None:
    """List executions, the newest instant first."""
    found = session.client.items("/executions", limit=limit, include="future" if future else None, **filters)
    session.output.items(found, COLUMNS)


@executions.command("get")
@click.argument("execution_id")
@click.pass_obj
def get_execution(session: Session, execution_id: str) -> None:
    """Show an execution."""
    session.output.item(session.client.get(at("executions", execution_id)))


@executions.command("explain")
@click.argument("execution_id")
@click.pass_obj
def explain(session: Session, execution_id: str) -> None:
    """Say why an execution waits, its place in line, and when it may start."""
    found = session.client.get(at("executions", execution_id, "explain"))
    session.output.item(found, fields=list(_with_reasons(found)))
    if not found["reasons"]:
        note(_WITHOUT_REASONS.get(found["status"], f"it has ended: onthedot exec get {execution_id}"))


@executions.command("attempts")
@click.argument("execution_id")
@click.pass_obj
def list_attempts(session: Session, execution_id: str) -> None:
    """List what each attempt came to."""
    session.output.items(session.client.get(at("executions", execution_id, "attempts"))["items"], ATTEMPTS)


@executions.command("logs")
@click.argument("execution_id")
@click.option("-f", "--follow", is_flag=True, help="Go on until the execution has ended")
@click.pass_obj
def show_logs(session: Session, *, execution_id: str, follow: bool) -> None:
    """Print what an execution logged and printed."""
    session.output.lines(_log(session.client, execution_id, follow=follow), "message")


@executions.command("wait")
@click.argument("execution_id")
@click.option(
    "--timeout", "timeout_seconds", type=click.FloatRange(0), help="Seconds; without it: as long as it takes"
)
@click.pass_obj
@click.pass_context
def wait(ctx: click.Context, session: Session, *, execution_id: str, timeout_seconds: float | None) -> None:
    """Wait until an execution has ended. Exits with 0 if it completed, 1 if not, 6 if the time ran out."""
    execution = wait_for(session.client, execution_id, timeout_seconds=timeout_seconds)
    session.output.item(execution)
    ctx.exit(exit_of(execution))


@executions.command("cancel")
@click.argument("execution_id")
@reason_option
@click.pass_obj
def cancel(session: Session, *, execution_id: str, reason: str | None) -> None:
    """Cancel an execution, or ask its worker to stop it."""
    execution = session.client.post(at("executions", execution_id, "actions", "cancel"), {"reason": reason})
    session.output.item(execution)
    note("asked its worker to stop it" if not has_ended(execution) else "cancelled; it will never run")


@executions.command("retry")
@click.argument("execution_id")
@click.pass_obj
def retry(session: Session, execution_id: str) -> None:
    """Run a finished execution's work again."""
    created = session.client.post(at("executions", execution_id, "actions", "retry"))
    session.output.item(created)
    note(f"follow it: onthedot exec logs -f {created['execution_id']}")


def _with_reasons(explanation: Document) -> Iterator[tuple[str, object]]:
    """Yield the fields of an explanation, its reasons in words, a line each."""
    for name, value in explanation.items():
        if name == "reasons":
            yield from ((f"reasons.{reason['code']}", reason["detail"]) for reason in value)
        else:
            yield name, value


def _log(client: RestClient, execution_id: str, *, follow: bool) -> Iterator[Document]:
    """Yield the lines of a log; to follow it, its last page is read again and again until the execution ends."""
    path, cursor, printed = at("executions", execution_id, "logs"), None, (0, 0)
    while True:
        ended = not follow or has_ended(client.get(at("executions", execution_id)))
        page = client.get(path, cursor=cursor)
        for line in page["items"]:
            place = (line["attempt_number"], line["sequence"])
            if place > printed:
                printed = place
                yield line
        if page["next_cursor"] is not None:
            cursor = page["next_cursor"]
        elif ended:
            return
        else:
            time.sleep(POLL_SECONDS)
