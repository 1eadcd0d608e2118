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
    common = (attempt.started_at, ended_at, lateness_ms)
    match outcome:
        case Succeeded(result):
            disposition = Disposition.LATE if lateness_ms > max_delay_ms else Disposition.RAN
            return Settlement(
                attempt.claim, Status.COMPLETED, disposition, *common, result.json_text, result.truncated
            )
        case Failed(failure):
            return Settlement(attempt.claim, Status.FAILED, Disposition.FAILED, *common, error=_json(failure))
        case Cancelled():
            return Settlement(attempt.claim, Status.CANCELLED, Disposition.CANCELLED, *common)


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
