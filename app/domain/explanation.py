"""Why an execution waits: each clause that the claim decides by, and what lies between it and a worker, in words."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec

from app.domain.poison import is_suspect
from app.domain.statuses import Status

MOST_AHEAD = 10_000
"""Executions before it that are counted."""


class ReasonCode(StrEnum):
    """What an execution waits for. The first group are the clauses of the claim; the second lies around it."""

    DEPENDENCY = "dependency"
    NOT_DUE = "not_due"
    JOB_PAUSED = "job_paused"
    QUEUE_PAUSED = "queue_paused"
    CANCEL_REQUESTED = "cancel_requested"
    EXPIRED = "expired"
    OVERLAP = "overlap"
    """Another execution of its job is under way."""
    USER_QUOTA = "user_quota"
    QUEUE_CONCURRENCY = "queue_concurrency"
    TASK_CONCURRENCY = "task_concurrency"
    KEY_CONCURRENCY = "key_concurrency"
    RATE_LIMITED = "rate_limited"
    NO_WORKER_FOR_LABELS = "no_worker_for_labels"

    RUNS_ALONE = "runs_alone"
    """Workers have ended while it ran: the claim leaves it to a process that runs nothing else."""
    NO_WORKER_FOR_QUEUE = "no_worker_for_queue"
    NO_CAPACITY = "no_capacity"
    BEHIND_OTHERS = "behind_others"


class Pause(NamedTuple):
    """A pause in force; what is not known of it is None."""

    since: datetime | None
    by: str | None
    reason: str | None
    until: datetime | None


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that it waits for; `link` leads to it in the API."""

    code: ReasonCode
    detail: str
    since: datetime | None = None
    link: str | None = None
    holders: list[UUID] = []
    """Executions that take the room of a limit; not all of many."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A live execution and what lies around it, as of `now`."""

    now: datetime
    job_id: UUID
    queue: str
    status: Status
    due_at: datetime
    is_ready: bool
    is_early: bool
    held: bool
    worker_deaths: int
    cancel_requested_at: datetime | None
    expires_at: datetime | None
    """Its start deadline, while it has not begun."""
    is_expired: bool
    dependencies: Sequence[Reason]
    """Jobs that it waits for."""
    limits: Sequence[Reason]
    """Limits that keep it waiting (see `limit_reasons`)."""
    job_pause: Pause | None
    queue_pause: Pause | None
    workers: int
    """Those that are live and serve its queue."""
    free_slots: int
    """Theirs, by their last heartbeats, less those that are reserved for other queues."""
    ahead: int
    """Ready executions that are claimed before it, counted to `MOST_AHEAD`."""
    ended_per_second: float
    """How fast its queue moves."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why an execution waits. Nothing to wait for: no reasons."""

    status: Status
    runnable: bool
    """Every clause of the claim lets it through: a worker with room takes it, one that runs alone as any other."""
    reasons: list[Reason]
    position: int | None = None
    """Its place among those that its queue has ready, 1 for the next; null beyond 10,000, if it is not ready or
    runs alone."""
    estimated_start: datetime | None = None
    """Where the pace of its queue, or the instant that it waits for, tells it."""


def explain(situation: Situation) -> Explanation:
    """Say why an execution waits."""
    barred = list(_bars(situation))
    runnable = situation.is_ready and not barred
    around = list(_surroundings(situation, runnable=runnable)) if situation.is_ready else []
    counted = runnable and situation.ahead < MOST_AHEAD and not is_suspect(situation.worker_deaths)
    return Explanation(
        status=situation.status,
        runnable=runnable,
        reasons=barred + around,
        position=situation.ahead + 1 if counted else None,
        estimated_start=_in_time(situation, _estimated_start(situation, runnable=runnable)),
    )


def _bars(at: Situation) -> Iterator[Reason]:
    """Yield the clauses of the claim (claim_due.sql, and beside limits `admit`) that keep it from being taken."""
    if at.status is Status.BLOCKED:
        yield from at.dependencies or [Reason(code=ReasonCode.DEPENDENCY, detail="It is about to begin.")]
    if not at.is_ready:
        return
    if at.is_early:
        yield Reason(code=ReasonCode.NOT_DUE, detail=f"It is due at {instant_words(at.due_at)}.")
    if at.held:
        pause = at.job_pause or Pause(None, None, None, None)
        yield _paused(ReasonCode.JOB_PAUSED, "Its job", pause, f"/api/v1/jobs/{at.job_id}")
    if at.queue_pause is not None:
        queue = f"The queue {at.queue}"
        yield _paused(ReasonCode.QUEUE_PAUSED, queue, at.queue_pause, f"/api/v1/queues/{at.queue}")
    yield from at.limits
    if at.cancel_requested_at is not None:
        detail = "Somebody has cancelled it; it does not run again."
        yield Reason(code=ReasonCode.CANCEL_REQUESTED, detail=detail, since=at.cancel_requested_at)
    if at.expires_at is not None and at.is_expired:
        detail = f"It had to begin by {instant_words(at.expires_at)}; it never runs."
        yield Reason(code=ReasonCode.EXPIRED, detail=detail, since=at.expires_at)


def _surroundings(at: Situation, *, runnable: bool) -> Iterator[Reason]:
    """Yield what lies between an execution and a worker."""
    alone = is_suspect(at.worker_deaths)
    if alone:
        detail = f"{at.worker_deaths} worker processes have ended while it ran: it runs in one of its own."
        yield Reason(code=ReasonCode.RUNS_ALONE, detail=detail)
    if at.workers == 0:
        detail = f"No live worker serves the queue {at.queue}."
        yield Reason(code=ReasonCode.NO_WORKER_FOR_QUEUE, detail=detail, link="/api/v1/workers")
    elif at.free_slots == 0 and runnable and not alone:
        whose = f"the {at.workers} workers that serve the queue {at.queue}"
        detail = f"All slots of {whose} are taken, or reserved for other queues."
        yield Reason(code=ReasonCode.NO_CAPACITY, detail=detail, link="/api/v1/workers")
    if runnable and at.ahead and not alone:
        count = f"{at.ahead:,}" if at.ahead < MOST_AHEAD else f"{MOST_AHEAD:,} or more"
        detail = f"{count} that are more urgent or older are ready in the queue {at.queue}."
        yield Reason(code=ReasonCode.BEHIND_OTHERS, detail=detail, link=f"/api/v1/queues/{at.queue}")


def _paused(code: ReasonCode, what: str, pause: Pause, link: str) -> Reason:
    by = f" by {pause.by.removeprefix('user:')}" if pause.by else ""
    until = f" until {instant_words(pause.until)}" if pause.until else ""
    why = f": {pause.reason}" if pause.reason else ""
    detail = f"{what} is paused{by}{until}{why}"
    return Reason(code=code, detail=detail if why else f"{detail}.", since=pause.since, link=link)


def _estimated_start(at: Situation, *, runnable: bool) -> datetime | None:
    """Return when it starts if all goes on as it does; None where nothing tells."""
    if not at.is_ready or not at.workers or at.limits or at.cancel_requested_at is not None:
        return None
    if runnable and at.ahead and not is_suspect(at.worker_deaths):
        moves = at.ended_per_second > 0 and at.ahead < MOST_AHEAD
        return at.now + timedelta(seconds=at.ahead / at.ended_per_second) if moves else None
    pauses = [pause for pause in (at.job_pause, at.queue_pause) if pause is not None]
    ends = [pause.until for pause in pauses if pause.until is not None]
    if (at.held and at.job_pause is None) or len(ends) < len(pauses):
        return None
    return max(at.now, at.due_at, *ends)


def _in_time(at: Situation, start: datetime | None) -> datetime | None:
    """Return the start, or None where its deadline passes before."""
    return None if start is None or (at.expires_at is not None and start >= at.expires_at) else start


def instant_words(instant: datetime) -> str:
    """Return an instant in the words of the API."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
