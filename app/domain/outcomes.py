"""What an attempt came to, and what follows from it. Deciding is apart from storing: an outcome is data."""

import msgspec

from app.domain.claims import Claim
from app.domain.failures import Category, Failure
from app.domain.recordable import Recorded
from app.domain.retry import Backoff

MOST_ATTEMPTS = 1000
"""However often the other side says "later"."""
RESOURCE_PAUSE_SECONDS = 10.0
YIELDED = Failure.build(
    "Interrupted",
    "It gave its slot to more urgent work. It starts again as soon as a slot is free, and has lost no attempt",
    Category.UNKNOWN,
)
"""What is recorded of an attempt that was interrupted."""


class Succeeded(msgspec.Struct, frozen=True):
    """The handler returned."""

    result: Recorded


class Failed(msgspec.Struct, frozen=True):
    """It failed, and that is final."""

    failure: Failure


class Retry(msgspec.Struct, frozen=True):
    """It failed and is tried again after `delay_seconds`."""

    failure: Failure
    delay_seconds: float
    counts: bool = True
    """False: the attempt is not one of those that the execution has; it gets another one for it."""


class Cancelled(msgspec.Struct, frozen=True):
    """It was asked to stop and did. Who asked, and why, stands on its row."""


class Interrupted(msgspec.Struct, frozen=True):
    """It gave its slot to more urgent work. It runs again as soon as there is one, and has lost no attempt."""


class Released(msgspec.Struct, frozen=True):
    """It was given back before it began, or because this worker stops."""


Outcome = Succeeded | Failed | Retry | Cancelled | Interrupted | Released


def decide_failure(
    claim: Claim, failure: Failure, backoff: Backoff, *, jitter: float, retry: bool | None = None
) -> Failed | Retry:
    """Decide whether a failed attempt is tried again, and when.

    Never after the last attempt, nor when trying again cannot help (`configuration_error`); `retry` is what a rule of
    the task says instead. By category, besides the task's backoff:

    - `network`: the first time at once, for most connections that break can be made again; then by the backoff;
    - `rate_limiting`: when the other side has asked for it. That uses up none of the attempts, for nothing has been
      tried yet; there are at most `MOST_ATTEMPTS` all the same;
    - `resource_exhaustion`: after `RESOURCE_PAUSE_SECONDS` at least, so that somebody can give something back.
    """
    told_to_wait = failure.category is Category.RATE_LIMITING and failure.retry_after_seconds is not None
    free = told_to_wait and claim.attempt_number < MOST_ATTEMPTS
    can_help = failure.category is not Category.CONFIGURATION_ERROR if retry is None else retry
    if not can_help or (claim.attempt_number >= claim.max_attempts and not free):
        return Failed(failure)
    delay = max(_delay(claim, failure, backoff, jitter), failure.retry_after_seconds or 0.0)
    return Retry(failure, delay, counts=not free)


def _delay(claim: Claim, failure: Failure, backoff: Backoff, jitter: float) -> float:
    by_policy = backoff.delay_after(claim.attempt_number, jitter=jitter)
    match failure.category:
        case Category.NETWORK:
            retries_before = claim.attempt_number - 1
            return backoff.delay_after(retries_before, jitter=jitter) if retries_before else 0.0
        case Category.RESOURCE_EXHAUSTION:
            return max(by_policy, RESOURCE_PAUSE_SECONDS)
        case _:
            return by_policy
