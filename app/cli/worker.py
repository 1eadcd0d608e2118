"""`onthedot worker list|get|drain`: the processes that claim and run executions."""

import click

from app.cli.cells import Column
from app.cli.options import limit_option
from app.cli.output import note
from app.cli.session import ClientCommand, Session
from app.client.rest import at

COLUMNS = (
    Column("WORKER", "worker_id"),
    Column("HOST", "host"),
    Column("PID", "pid"),
    Column("STATE", "state"),
    Column("WHY", "drain_reason"),
    Column("RUNNING", "running"),
    Column("SLOTS", "slots"),
    Column("QUEUES", "queues"),
    Column("HEARTBEAT", "heartbeat_at"),
    Column("STARTED", "started_at"),
    Column("VERSION", "version"),
    Column("LABELS", "labels"),
    Column("CORES", "cpu_cores"),
    Column("MEMORY_MB", "memory_mb"),
)


@click.command("list", cls=ClientCommand)
@limit_option
@click.pass_obj
def list_workers(session: Session, limit: int) -> None:
    """List worker processes, the last started first."""
    session.output.items(session.client.items("/workers", limit=limit), COLUMNS)


@click.command("get", cls=ClientCommand)
@click.argument("worker_id")
@click.pass_obj
def get_worker(session: Session, worker_id: str) -> None:
    """Show a worker process."""
    session.output.item(session.client.get(at("workers", worker_id)))


@click.command("drain", cls=ClientCommand)
@click.argument("worker_id")
@click.pass_obj
def drain_worker(session: Session, worker_id: str) -> None:
    """Have a worker process claim nothing more and finish what it has."""
    session.output.item(session.client.post(at("workers", worker_id, "actions", "drain")))
    note("it hears of that within seconds")


COMMANDS = (list_workers, get_worker, drain_worker)
"""They hang below `onthedot worker`, which by itself runs a worker process."""
