"""What an attempt came to, and what follows from it. Deciding is apart from storing: an outcome is data."""

import msgspec

from app.domain.claims import Claim
from app.domain.failures import Category, Failure
from app.domain.recordable import Recorded
from app.domain.retry import Backoff


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


class Cancelled(msgspec.Struct, frozen=True):
    """It was asked to stop and did. Who asked, and why, stands on its row."""


class Released(msgspec.Struct, frozen=True):
    """It was given back before it began, or because this worker stops."""


Outcome = Succeeded | Failed | Retry | Cancelled | Released


def decide_failure(claim: Claim, failure: Failure, backoff: Backoff, *, jitter: float) -> Failed | Retry:
    """Decide whether a failed attempt is tried again.

    Never after the last attempt, nor when trying again cannot help (`configuration_error`). A `Retry-After`
    of the other side lengthens the delay.
    """
    if claim.attempt_number >= claim.max_attempts or failure.category is Category.CONFIGURATION_ERROR:
        return Failed(failure)
    delay = backoff.delay_after(claim.attempt_number, jitter=jitter)
    return Retry(failure, max(delay, failure.retry_after_seconds or 0.0))
