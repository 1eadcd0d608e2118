"""`onthedot wf status|cancel|retry|skip`: runs of workflows, and what is done to them."""

import time
from collections.abc import Iterator

import click

from app.cli.cells import Column, one_line
from app.cli.failures import Exit
from app.cli.options import Function, reason_option
from app.cli.output import Form, Output, note
from app.cli.session import ClientCommand, Session
from app.cli.waiting import FIRST_POLL_SECONDS, POLL_SECONDS, exit_of, has_ended
from app.client.errors import ApiError, TimedOut
from app.client.rest import Document, RestClient, at

STATUSES = ("RUNNING", "COMPLETED", "FAILED", "CANCELLED")
COLUMNS = (
    Column("RUN", "workflow_run_id"),
    Column("WORKFLOW", "workflow_id"),
    Column("NAME", "name"),
    Column("STATUS", "status"),
    Column("TRIGGER", "trigger"),
    Column("SCHEDULED", "scheduled_time"),
    Column("STARTED", "started_at"),
    Column("COMPLETED", "completed_at"),
    Column("CAUSE", "cause"),
)
STEP_COLUMNS = (
    Column("STEP", "key"),
    Column("STATUS", "status"),
    Column("TASK", "task_id"),
    Column("EXECUTION", "execution_id"),
    Column("COMPLETED", "instances.by_status.COMPLETED"),
    Column("OF", "instances.total"),
    Column("ROUND", "round"),
    Column("STARTED", "started_at"),
    Column("ENDED", "completed_at"),
    Column("CAUSE", "cause"),
)


def follow_options(function: Function) -> Function:
    """Add `--follow` and `--timeout`; `follow_run` obeys them."""
    timeout = click.option("--timeout", "timeout_seconds", type=click.FloatRange(0), help="Seconds to follow")
    follow = click.option(
        "-f", "--follow", is_flag=True, help="Tell what becomes of its steps; exit with 1 unless it completes"
    )
    return follow(timeout(function))


@click.command("status", cls=ClientCommand)
@click.argument("run_id")
@follow_options
@click.option("--json", "as_json", is_flag=True, help="The same as -o json")
@click.pass_obj
def show_run(
    session: Session, *, run_id: str, follow: bool, timeout_seconds: float | None, as_json: bool
) -> None:
    """Show a run: the steps, what has become of each, and why."""
    if as_json:
        session = Session(client=session.client, output=Output(Form.JSON))
    if follow:
        follow_run(session, run_id, timeout_seconds=timeout_seconds)
    else:
        print_run(session, session.client.get(at("workflow-runs", run_id)))


@click.command("cancel", cls=ClientCommand)
@click.argument("run_id")
@reason_option
@click.pass_obj
def cancel_run(session: Session, *, run_id: str, reason: str | None) -> None:
    """Cancel a run: what waits never runs, what runs is asked to stop."""
    print_run(session, _act(session, run_id, "cancel", {"reason": reason}))


@click.command("retry", cls=ClientCommand)
@click.argument("run_id")
@click.option("--from", "steps", multiple=True, metavar="STEP", help="Run this again; may be repeated")
@click.pass_obj
def retry_run(session: Session, *, run_id: str, steps: tuple[str, ...]) -> None:
    """Have steps run again, and all that come after them; by default those that failed or were cancelled.

    \b
    onthedot wf retry RUN
    onthedot wf retry RUN --from extract --from clean
    """
    print_run(session, _act(session, run_id, "retry", {"steps": list(steps) or None}))


@click.command("skip", cls=ClientCommand)
@click.argument("run_id")
@click.argument("step")
@reason_option
@click.pass_obj
def skip_step(session: Session, *, run_id: str, step: str, reason: str | None) -> None:
    """Pass a step over: what comes after it goes on as if it had succeeded, without a result."""
    print_run(session, _act(session, run_id, "skip", {"step": step, "reason": reason}))


COMMANDS = (show_run, cancel_run, retry_run, skip_step)
"""They hang below `onthedot wf`."""


def print_run(session: Session, run: Document) -> None:
    """Print a run: its steps as a list, and on stderr how it stands itself; JSON has both."""
    if session.output.form in {Form.JSON, Form.JSONL}:
        session.output.item(run)
    else:
        session.output.items(run["steps"], STEP_COLUMNS)
    note(_in_words(run))


def follow_run(session: Session, run_id: str, *, timeout_seconds: float | None) -> None:
    """Tell of a run's steps on stderr until it is over, print it, and leave with 1 unless it has completed.

    Raises `TimedOut`.
    """
    told: dict[str, Document] = {}
    for run in _looks(session.client, run_id, timeout_seconds=timeout_seconds):
        _tell(run, told)
        if run["status"] != "RUNNING":
            print_run(session, run)
            click.get_current_context().exit(exit_of(run))
    note(f"the run {run_id} never began: onthedot exec get {run_id}")
    click.get_current_context().exit(Exit.FAILED)


def _looks(client: RestClient, run_id: str, *, timeout_seconds: float | None) -> Iterator[Document]:
    """Yield a run as it is, again and again; end where it will never begin. Raises `TimedOut`."""
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    pause_seconds = FIRST_POLL_SECONDS
    while True:
        looked_at = time.monotonic()
        run = _run_or_none(client, run_id)
        if run is not None:
            yield run
        elif _never_begins(client, run_id):
            return
        took_seconds = (
            time.monotonic() - looked_at
        )  # a run of thousands of steps is not asked for all the time
        if deadline is not None and time.monotonic() + pause_seconds > deadline:
            state = "RUNNING" if run is not None else "yet to begin"
            raise TimedOut(f"the run is {state} after {timeout_seconds:g} s; it goes on")
        time.sleep(max(pause_seconds, 4 * took_seconds))
        pause_seconds = min(POLL_SECONDS, 2 * pause_seconds)


def _run_or_none(client: RestClient, run_id: str) -> Document | None:
    try:
        return client.get(at("workflow-runs", run_id))
    except ApiError as error:
        if error.problem.code == "not_found":
            return None
        raise


def _never_begins(client: RestClient, run_id: str) -> bool:
    """Tell whether what was to begin a run has ended without having begun it. It has the run's id."""
    execution = client.get(at("executions", run_id))
    return has_ended(execution) and execution["status"] != "COMPLETED"


def _tell(run: Document, told: dict[str, Document]) -> None:
    """Note the steps that have moved since they were told of."""
    for step in run["steps"]:
        before = told.get(step["key"], {"status": "BLOCKED", "round": 0})
        if (step["status"], step["round"]) != (before["status"], before["round"]):
            note(_line(step["key"], step))
        told[step["key"]] = step


def _line(name: str, state: Document) -> str:
    cause = f": {one_line(state['cause'])}" if state["cause"] else ""
    return f"{name} {state['status']}{cause}"


def _in_words(run: Document) -> str:
    line = _line(f"run {run['workflow_run_id']}", run)
    if run["is_queued"]:
        return f"{line}; it waits for another run of the workflow"
    return f"{line}; it is being stopped" if run["is_ending"] else line


def _act(session: Session, run_id: str, action: str, body: Document) -> Document:
    return session.client.post(at("workflow-runs", run_id, "actions", action), body)
