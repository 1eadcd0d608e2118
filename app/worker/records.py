"""From an outcome to the row that records it."""

from datetime import datetime, timedelta

import msgspec

from app.db.stores.executions import FailedAttempt, Settlement
from app.domain.failures import Category, Failure
from app.domain.outcomes import YIELDED, Cancelled, Failed, Retry, Succeeded
from app.domain.statuses import Disposition, Status
from app.worker.attempt import Attempt


def settlement(
    attempt: Attempt, outcome: Succeeded | Failed | Cancelled, *, ended_at: datetime, max_delay_ms: int
) -> Settlement:
    """Return the history's part of an execution that has ended."""
    lateness_ms = attempt.lateness_ms
    status, disposition = _end(outcome, is_late=lateness_ms > max_delay_ms)
    result = outcome.result if isinstance(outcome, Succeeded) else None
    return Settlement(
        claim=attempt.claim,
        status=status,
        disposition=disposition,
        started_at=attempt.started_at,
        completed_at=ended_at,
        lateness_ms=lateness_ms,
        result=result.json_text if result else None,
        result_truncated=bool(result and result.truncated),
        error=_json(outcome.failure) if isinstance(outcome, Failed) else None,
    )


def _end(outcome: Succeeded | Failed | Cancelled, *, is_late: bool) -> tuple[Status, Disposition]:
    match outcome:
        case Succeeded():
            return Status.COMPLETED, Disposition.LATE if is_late else Disposition.RAN
        case Failed():
            return Status.FAILED, Disposition.FAILED
        case Cancelled():
            return Status.CANCELLED, Disposition.CANCELLED


def failed_attempt(attempt: Attempt, outcome: Retry, *, ended_at: datetime) -> FailedAttempt:
    """Return the record of a failed attempt and when the next one is due."""
    timed_out = outcome.failure.category is Category.TIMEOUT
    return FailedAttempt(
        claim=attempt.claim,
        due_at=ended_at + timedelta(seconds=outcome.delay_seconds),
        started_at=attempt.started_at,
        ended_at=ended_at,
        lateness_ms=attempt.lateness_ms,
        outcome="timeout" if timed_out else "failed",
        error=_json(outcome.failure),
        given_back=0 if outcome.counts else 1,
    )


def interrupted_attempt(attempt: Attempt, *, ended_at: datetime) -> FailedAttempt:
    """Return the record of an attempt that gave its slot away: the next one is due at once, and it is given back."""
    return FailedAttempt(
        claim=attempt.claim,
        due_at=ended_at,
        started_at=attempt.started_at,
        ended_at=ended_at,
        lateness_ms=attempt.lateness_ms,
        outcome="interrupted",
        error=_json(YIELDED),
        given_back=1,
    )


def _json(failure: Failure) -> str:
    return msgspec.json.encode(failure).decode()
