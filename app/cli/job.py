"""`onthedot job`: tasks bound to parameters, a schedule and an owner."""

from typing import IO

import click

from app.cli.cells import Column
from app.cli.exec import COLUMNS as EXECUTION_COLUMNS
from app.cli.exec import STATUSES
from app.cli.fields import job_fields
from app.cli.options import (
    Function,
    assignment,
    body_of,
    body_options,
    if_version_option,
    limit_option,
    patch_of,
    reason_option,
    until_option,
    yes_option,
)
from app.cli.output import note
from app.cli.session import Nouns, Session, confirm
from app.cli.waiting import exit_of, wait_for
from app.client.rest import Document, at

COLUMNS = (
    Column("JOB", "job_id"),
    Column("NAME", "name"),
    Column("TASK", "task_id"),
    Column("OWNER", "user_id"),
    Column("TYPE", "schedule.type"),
    Column("EXPRESSION", "schedule.expression"),
    Column("ZONE", "schedule.timezone"),
    Column("ACTIVE", "is_active"),
    Column("NEXT", "next_at"),
    Column("OVERLAP", "overlap"),
    Column("KEY", "concurrency_key"),
)

BACKFILL_COLUMNS = (Column("INSTANT", "scheduled_time"), Column("EXECUTION", "execution_id"))


def wait_options(function: Function) -> Function:
    """Add `--wait` and `--timeout`; `_finish` obeys them."""
    timeout = click.option("--timeout", "timeout_seconds", type=click.FloatRange(0), help="Seconds to wait")
    wait = click.option(
        "--wait", is_flag=True, help="Wait for the execution; exit with 1 unless it completes"
    )
    return wait(timeout(function))


@click.group(cls=Nouns)
def job() -> None:
    """Jobs: tasks bound to parameters, a schedule and an owner."""


@job.command("list")
@click.option("--user", "user_id")
@click.option("--task", "task_type")
@click.option("--created-after", metavar="TIME", help="RFC 3339 or Unix seconds")
@limit_option
@click.pass_obj
def list_jobs(session: Session, /, *, limit: int, **filters: str | None) -> None:
    """List jobs, the newest first."""
    found = session.client.items("/jobs", limit=limit, **filters)
    session.output.items((_with_next(item) for item in found), COLUMNS)


@job.command("get")
@click.argument("job_id")
@click.pass_obj
def get_job(session: Session, job_id: str) -> None:
    """Show a job."""
    session.output.item(session.client.get(at("jobs", job_id)))


@job.command("create")
@click.argument("task_id")
@click.option("--now", is_flag=True, help="Run it now")
@click.option(
    "--at", "scheduled_time", metavar="TIME", help="Run it once: RFC 3339, or wall time in --timezone"
)
@click.option("--cron", metavar="EXPRESSION", help='Run it by cron: "0 2 * * TUE"')
@click.option("--every", metavar="DURATION", help="Run it at an interval: PT90S, or seconds")
@click.option("--timezone", metavar="ZONE", help="IANA name; UTC unless said")
@click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="JSON or else text"
)
@click.option("--user", "user_id", help="The owner; only an admin may name somebody else")
@job_fields
@click.option("--unique-key", metavar="KEY", help="Create it only if no job of the task holds this key")
@click.option(
    "--unique-for", "unique_for_seconds", type=float, metavar="SECONDS", help="Hold the key so long"
)
@click.option(
    "--unique-policy",
    type=click.Choice(["keep", "replace"]),
    help="Keep the job that holds the key, or have it replaced while it has not begun",
)
@body_options
@wait_options
@click.pass_obj
def create_job(
    session: Session,
    /,
    *,
    task_id: str,
    now: bool,
    scheduled_time: str | None,
    cron: str | None,
    every: str | None,
    timezone: str | None,
    parameters: tuple[str, ...],
    file: IO[bytes] | None,
    assignments: tuple[str, ...],
    wait: bool,
    timeout_seconds: float | None,
    **fields: object,
) -> None:
    """Create a job of a task.

    \b
    onthedot job create deploy --now -p version=17.2.1 --wait
    onthedot job create report --cron "0 2 * * MON-FRI" --timezone Europe/Berlin
    """
    schedule = schedule_of(
        now=now, scheduled_time=scheduled_time, expression=cron, every=every, timezone=timezone
    )
    given = dict(map(assignment, parameters)) or None
    body = body_of(file, assignments, task_id=task_id, schedule=schedule, parameters=given, **fields)
    if "schedule" not in body:
        raise click.UsageError("say when: --now, --at TIME, --cron EXPRESSION or --every DURATION")
    created = session.client.post("/jobs", body)
    note(_CREATED[created["status"]].format(created["job_id"]))
    _warn(created)
    _finish(session, created, wait=wait, timeout_seconds=timeout_seconds)


@job.command("edit")
@click.argument("job_id")
@job_fields
@body_options
@if_version_option
@click.pass_obj
def edit_job(
    session: Session,
    /,
    *,
    job_id: str,
    file: IO[bytes] | None,
    assignments: tuple[str, ...],
    if_version: int | None,
    **fields: object,
) -> None:
    """Change parts of a job.

    \b
    onthedot job edit JOB --priority 0 --overlap skip
    onthedot job edit JOB --set concurrency_key=null
    onthedot job edit JOB --set schedule='{"type": "CRON", "expression": "0 3 * * *"}'
    """
    body = patch_of(file, assignments, **fields)
    changed = session.client.patch(at("jobs", job_id), body, if_version=if_version)
    _changed(session, changed, f"changed job {job_id}")
    _warn(changed)


@job.command("delete")
@click.argument("job_id")
@yes_option
@click.pass_obj
def delete_job(session: Session, *, job_id: str, yes: bool) -> None:
    """Delete a job; what waits never runs, what has begun goes on."""
    confirm(f"Delete the job {job_id}?", yes=yes)
    _note_running(session.client.delete(at("jobs", job_id)), f"deleted job {job_id}")


@job.command("run")
@click.argument("job_id")
@wait_options
@click.pass_obj
def run_job(session: Session, *, job_id: str, wait: bool, timeout_seconds: float | None) -> None:
    """Run a job now, apart from its schedule."""
    started = session.client.post(at("jobs", job_id, "actions", "run"))
    _finish(session, started, wait=wait, timeout_seconds=timeout_seconds)


@job.command("backfill")
@click.argument("job_id")
@click.option(
    "--from", "since", metavar="TIME", required=True, help="The first instant; RFC 3339 or Unix seconds"
)
@click.option("--to", "until", metavar="TIME", required=True, help="The last one")
@click.option("--dry-run", is_flag=True, help="Only list the instants")
@click.pass_obj
def backfill_job(session: Session, *, job_id: str, since: str, until: str, dry_run: bool) -> None:
    """Run a repeating job, or a workflow, for past instants of its schedule."""
    body = {"from": since, "to": until, "dry_run": dry_run}
    done = session.client.post(at("jobs", job_id, "actions", "backfill"), body)
    found = [{"scheduled_time": each} for each in done["instants"]] if dry_run else done["executions"]
    session.output.items(found, BACKFILL_COLUMNS)


@job.command("pause")
@click.argument("job_id")
@reason_option
@until_option
@click.pass_obj
def pause_job(session: Session, *, job_id: str, reason: str | None, until: str | None) -> None:
    """Pause a job."""
    body = {"reason": reason, "until": until}
    _changed(
        session, session.client.post(at("jobs", job_id, "actions", "pause"), body), f"paused job {job_id}"
    )


@job.command("resume")
@click.argument("job_id")
@click.pass_obj
def resume_job(session: Session, job_id: str) -> None:
    """Resume a job from now on."""
    _changed(session, session.client.post(at("jobs", job_id, "actions", "resume")), f"resumed job {job_id}")


@job.command("history")
@click.argument("job_id")
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False))
@limit_option
@click.pass_obj
def show_history(session: Session, *, job_id: str, status: str | None, limit: int) -> None:
    """List a job's executions, the newest instant first."""
    found = session.client.items(at("jobs", job_id, "executions"), limit=limit, status=status)
    session.output.items(found, EXECUTION_COLUMNS)


@job.command("next")
@click.argument("job_id")
@click.pass_obj
def show_next(session: Session, job_id: str) -> None:
    """List the coming instants of a job, also while it is paused."""
    instants = session.client.get(at("jobs", job_id))["next_occurrences"]
    session.output.items(
        ({"scheduled_time": instant} for instant in instants), (Column("NEXT", "scheduled_time"),)
    )


def schedule_of(*, now: bool, **given: str | None) -> Document | None:
    """Return the schedule that the options say, None where they say nothing."""
    schedule: Document = {name: value for name, value in given.items() if value is not None}
    types = {"scheduled_time": "ONCE", "expression": "RECURRING", "every": "INTERVAL"}
    chosen = (["IMMEDIATE"] if now else []) + [types[name] for name in types if name in schedule]
    if len(chosen) > 1:
        raise click.UsageError("--now, --at, --cron and --every exclude each other")
    return {"type": chosen[0]} | schedule if chosen else None


_CREATED = {
    "created": "created job {}",
    "exists": "the job {} holds this unique key; nothing was created",
    "replaced": "the job {} held this unique key and has been replaced",
}


def _finish(session: Session, created: Document, *, wait: bool, timeout_seconds: float | None) -> None:
    """Print what was made, or, to wait, its execution once that has ended."""
    execution_id = created.get("execution_id")
    if wait and execution_id is not None:
        execution = wait_for(session.client, execution_id, timeout_seconds=timeout_seconds)
        session.output.item(execution)
        click.get_current_context().exit(exit_of(execution))
    session.output.item(created)
    if execution_id is not None:
        note(f"follow it: onthedot exec logs -f {execution_id}")
    elif wait:
        note("there is nothing to wait for yet: its schedule makes the executions")


def _changed(session: Session, changed: Document, text: str) -> None:
    session.output.item(changed)
    _note_running(changed, text)


def _note_running(changed: Document, text: str) -> None:
    running = changed.get("running") or []
    note(f"{text}; {len(running)} executions had begun and go on" if running else text)


def _with_next(job: Document) -> Document:
    return job | {"next_at": next(iter(job["next_occurrences"]), None)}


def _warn(job: Document) -> None:
    """Tell what to know about the schedule that was saved."""
    for warning in job["warnings"]:
        note(f"! {warning['detail']}")
