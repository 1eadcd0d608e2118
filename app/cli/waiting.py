"""Waiting for executions to end."""

import time

from app.cli.failures import Exit
from app.client.errors import TimedOut
from app.client.rest import Document, RestClient, at

POLL_SECONDS = 0.5
FIRST_POLL_SECONDS = 0.05
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "SKIPPED"}


def wait_for(client: RestClient, execution_id: str, *, timeout_seconds: float | None) -> Document:
    """Return an execution once it has ended. Raises `TimedOut`. The first looks follow each other fast."""
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    pause_seconds = FIRST_POLL_SECONDS
    while True:
        execution = client.get(at("executions", execution_id))
        if has_ended(execution):
            return execution
        if deadline is not None and time.monotonic() + pause_seconds > deadline:
            raise TimedOut(f"the execution is {execution['status']} after {timeout_seconds:g} s; it goes on")
        time.sleep(pause_seconds)
        pause_seconds = min(POLL_SECONDS, 2 * pause_seconds)


def has_ended(execution: Document) -> bool:
    """Tell whether an execution is over."""
    return execution["status"] in ENDED


def exit_of(execution: Document) -> Exit:
    """Return the exit code of an execution that has ended."""
    return Exit.OK if execution["status"] == "COMPLETED" else Exit.FAILED
