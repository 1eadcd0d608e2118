"""What pages say of executions."""

import re
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from app.db.reads.execution_rows import ListedExecution
from app.db.reads.execution_story import ExecutionStory
from app.domain.errors import InvalidInput
from app.domain.explanation import Explanation, Reason, ReasonCode
from app.domain.failures import Category
from app.domain.poison import POISON_AT, is_suspect
from app.domain.statuses import Disposition, Status
from app.domain.time_text import parse_instant
from app.domain.timezones import Zone
from app.ui.log_text import log_text
from app.ui.words import pretty

JSON_LINES = 20
"""Open on a page; what follows is folded."""
JSON_CHARACTERS = 16_000
"""On a page at all."""


LIMITS = frozenset(
    {
        ReasonCode.OVERLAP,
        ReasonCode.USER_QUOTA,
        ReasonCode.QUEUE_CONCURRENCY,
        ReasonCode.TASK_CONCURRENCY,
        ReasonCode.KEY_CONCURRENCY,
        ReasonCode.RATE_LIMITED,
    }
)
"""Reasons to wait for room that others take."""


class ShownJson(NamedTuple):
    """JSON as a page shows it: its beginning, what is folded, and how much is left out."""

    head: str
    rest: str
    rest_lines: int
    cut: int


def listed_error(execution: ListedExecution) -> str:
    """Return an error's type and the first line of its message."""
    first = (execution.error_message or "").strip().partition("\n")[0]
    return f"{execution.error_type}: {first}" if first else execution.error_type or ""


def local_time(text: str | None, zone: Zone) -> str:
    """Return a time of a filter as its field has it: wall time in the page's zone, and not as browsers like it."""
    if text is None:
        return ""
    try:
        return f"{zone.wall(parse_instant(text, zone=zone)):%Y-%m-%d %H:%M}"
    except InvalidInput:
        return ""


def precise(instant: datetime, zone: Zone) -> str:
    """Return the time of day to the millisecond: `10:00:00.123`."""
    return instant.astimezone(zone.info).strftime("%H:%M:%S.%f")[:-3]


def meaning(story: ExecutionStory, now: datetime) -> str:
    """Return what an execution's status means, in a sentence."""
    execution = story.execution
    if execution.completed_at is not None:
        return _end(story)
    if execution.status in {Status.PENDING, Status.RETRYING}:
        return _wait(story, now)
    if execution.status is Status.RUNNING and story.setting.cancel_requested_at is not None:
        return "It runs, and its worker has been asked to stop it."
    return _STANDS[execution.status]


_PASSED_OVER = {
    Disposition.SKIPPED_OVERLAP: "It never ran: another run of its job was under way when it was due.",
    Disposition.EXPIRED: "It never ran: it had not begun by its start deadline.",
}
"""Why what was skipped was."""

_STANDS = {
    Status.BLOCKED: "It waits for what it depends on.",
    Status.SCHEDULED: "A worker holds it ready, and starts it on the dot.",
    Status.RUNNING: "A worker runs it, and renews its lease while it does.",
}


def _wait(story: ExecutionStory, now: datetime) -> str:
    execution = story.execution
    if story.setting.held:
        return "It waits: its job is paused, and it runs when that is resumed."
    if story.attempts and story.attempts[-1].outcome == "interrupted":
        return "It gave its slot to more urgent work, and starts again as soon as a worker has one for it."
    if execution.due_at <= now and _is_limited(story.explanation):
        return "It is due, and a limit keeps it waiting."
    if execution.due_at <= now:
        place = story.explanation.position if story.explanation else None
        number = f" It is number {place:,}." if place and place > 1 else ""
        return f"It is due, and waits for a worker to take it.{number}"
    if execution.status is Status.RETRYING:
        return f"Attempt {execution.attempt_number} did not succeed; it waits for the next one."
    return "It waits for its instant."


def _is_limited(explanation: Explanation | None) -> bool:
    return any(reason.code in LIMITS for reason in (explanation.reasons if explanation else ()))


def deaths(story: ExecutionStory) -> str | None:
    """Return what follows for an execution from the workers that have ended while it ran; None: nothing yet."""
    execution = story.execution
    if execution.completed_at is not None or not is_suspect(execution.worker_deaths):
        return None
    left = POISON_AT - execution.worker_deaths
    more = "another one ends" if left == 1 else f"{left} more end"
    seen = f"{execution.worker_deaths} worker processes have ended while it ran"
    if not execution.attempt_number:
        seen = "What it does again was poison"
    return f"{seen}; it runs alone now, in a process of its own. If {more}, it is not tried again."


def _end(story: ExecutionStory) -> str:
    execution = story.execution
    match execution.status:
        case Status.COMPLETED:
            late = execution.disposition is Disposition.LATE
            return "It has done its work" + (", but started later than its queue promises." if late else ".")
        case Status.CANCELLED:
            return "It was cancelled" + (
                " while it ran." if story.execution.started_at else " before it began."
            )
        case Status.SKIPPED:
            other = f"It never ran: {execution.disposition.replace('_', ' ')}."
            return _PASSED_OVER.get(execution.disposition, other)
        case _:
            return _failed(story)


def _failed(story: ExecutionStory) -> str:
    execution = story.execution
    if execution.worker_deaths >= POISON_AT:
        return f"It is poison: {execution.worker_deaths} worker processes have ended while it ran."
    if execution.attempt_number < execution.max_attempts:
        kind = (execution.error.category if execution.error else Category.UNKNOWN).replace("_", " ")
        attempt = f"attempt {execution.attempt_number} of {execution.max_attempts}"
        return f"It failed for good at {attempt}: what fails like this ({kind}) is not tried again."
    if execution.max_attempts == 1:
        return "Its only attempt failed."
    return f"It failed for good: all {execution.max_attempts} attempts did."


class Wait(NamedTuple):
    """Something that an execution waits for."""

    parts: list[str | UUID]
    """Its sentence, taken apart at the executions that it names."""
    page: str
    """The page of what it is about; empty where it has none."""


def waits_for(explanation: Explanation | None) -> list[Wait]:
    """Return what an execution waits for besides its instant."""
    return [
        Wait(_taken_apart(reason), _page_of(reason))
        for reason in (explanation.reasons if explanation else ())
        if reason.code not in {ReasonCode.NOT_DUE, ReasonCode.RUNS_ALONE}  # said beside
    ]


def _taken_apart(reason: Reason) -> list[str | UUID]:
    named = {str(one): one for one in reason.holders}
    if not named:
        return [reason.detail]
    pieces = re.split(f"({'|'.join(named)})", reason.detail)
    return [named.get(piece, piece) for piece in pieces if piece]


def _page_of(reason: Reason) -> str:
    """Return the page of what a reason is about, where it has one: queues and workers stand on the overview."""
    path = (reason.link or "").removeprefix("/api/v1")
    if path.startswith(("/jobs/", "/tasks/")):
        return path
    return "/" if path.startswith(("/queues/", "/workers")) else ""


def json_shown(value: Any) -> ShownJson:  # noqa: ANN401 - any JSON value
    """Return JSON for people, what is long folded and what is very long cut."""
    whole = pretty(value)
    lines = log_text(whole[:JSON_CHARACTERS], JSON_CHARACTERS).split("\n")
    head, rest = lines[:JSON_LINES], lines[JSON_LINES:]
    return ShownJson("\n".join(head), "\n".join(rest), len(rest), max(len(whole) - JSON_CHARACTERS, 0))
