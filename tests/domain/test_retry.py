"""How long a failed execution waits, and when it is not tried again."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.claims import Claim
from app.domain.failures import Category, Failure
from app.domain.outcomes import MOST_ATTEMPTS, RESOURCE_PAUSE_SECONDS, Failed, Retry, decide_failure
from app.domain.retry import JITTER, Backoff, RetryPolicy

MONTH_SECONDS = 31 * 86_400.0
"""The longest delay that a task may ask for."""

BACKOFFS = st.builds(
    Backoff, st.sampled_from(RetryPolicy), st.floats(0, MONTH_SECONDS), st.floats(0, MONTH_SECONDS)
)
ATTEMPTS = st.integers(1, 10**6)
JITTERS = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        (RetryPolicy.EXPONENTIAL, [2, 4, 8, 16, 32, 60, 60]),
        (RetryPolicy.LINEAR, [2, 4, 6, 8, 10, 12, 14]),
        (RetryPolicy.FIXED, [2, 2, 2, 2, 2, 2, 2]),
    ],
)
def test_delays_grow_by_the_policy_up_to_the_longest(policy: RetryPolicy, delays: list[float]) -> None:
    backoff = Backoff(policy, 2.0, 60.0)

    assert [backoff.delay_after(attempt, jitter=0) for attempt in range(1, 8)] == delays


@given(backoff=BACKOFFS, attempt=ATTEMPTS, jitter=JITTERS)
def test_a_delay_keeps_its_bounds_and_is_an_instant_away(
    backoff: Backoff, attempt: int, jitter: float
) -> None:
    delay = backoff.delay_after(attempt, jitter=jitter)
    plain = backoff.delay_after(attempt, jitter=0)

    assert 0 <= plain <= delay <= backoff.max_delay_seconds
    assert delay <= plain * (1 + JITTER)
    assert min(backoff.delay_seconds, backoff.max_delay_seconds) <= plain
    assert (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=delay)).year <= 2026


@given(backoff=BACKOFFS, attempt=st.integers(1, 10**6 - 1), jitter=JITTERS)
def test_a_later_attempt_never_waits_less(backoff: Backoff, attempt: int, jitter: float) -> None:
    assert backoff.delay_after(attempt, jitter=jitter) <= backoff.delay_after(attempt + 1, jitter=jitter)


def a_claim(*, attempt_number: int, max_attempts: int) -> Claim:
    """Return a claim of which only the attempts matter."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Claim(
        shard=298, execution_id=uuid4(), job_id=uuid4(), user_id="ada", task_id="report", task_revision=1,
        queue="general", priority=2, status="RUNNING", trigger="schedule", scheduled_time=now, due_at=now,
        first_due_at=now, parameters="{}", timeout_seconds=None, max_attempts=max_attempts,
        attempt_number=attempt_number, lease_epoch=1, claimed_at=now, lease_expires_at=now, lateness_ms=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attempt_number", "category", "retry_after_seconds", "waits_seconds"),
    [
        (1, Category.UNKNOWN, None, 10),
        (2, Category.TIMEOUT, None, 20),
        (1, Category.UNKNOWN, 4.0, 10),
        (1, Category.UNKNOWN, 900.0, 900),
        (1, Category.NETWORK, None, 0),
        (2, Category.NETWORK, None, 10),
        (3, Category.NETWORK, None, None),
        (1, Category.RATE_LIMITING, None, 10),
        (3, Category.RATE_LIMITING, None, None),
        (1, Category.RESOURCE_EXHAUSTION, None, 10),
        (3, Category.UNKNOWN, None, None),
        (1, Category.CONFIGURATION_ERROR, 900.0, None),
    ],
)
def test_a_failure_is_final_after_the_last_attempt_or_when_trying_again_cannot_help(
    attempt_number: int, category: Category, retry_after_seconds: float | None, waits_seconds: float | None
) -> None:
    failure = Failure.build("Error", "no", category, retry_after_seconds=retry_after_seconds)
    backoff = Backoff(RetryPolicy.EXPONENTIAL, 10.0, 60.0)
    claim = a_claim(attempt_number=attempt_number, max_attempts=3)

    outcome = decide_failure(claim, failure, backoff, jitter=0)

    expected = Failed(failure) if waits_seconds is None else Retry(failure, waits_seconds)
    assert outcome == expected


def test_resources_get_time_to_come_back_however_short_the_backoff() -> None:
    failure = Failure.build("MemoryError", "", Category.RESOURCE_EXHAUSTION)
    backoff = Backoff(RetryPolicy.FIXED, 0.1, 1.0)

    outcome = decide_failure(a_claim(attempt_number=1, max_attempts=3), failure, backoff, jitter=0)

    assert outcome == Retry(failure, RESOURCE_PAUSE_SECONDS)


@pytest.mark.parametrize(
    ("attempt_number", "is_tried"), [(1, True), (3, True), (999, True), (MOST_ATTEMPTS, False)]
)
def test_who_is_told_to_wait_uses_up_no_attempt_but_not_for_ever(
    attempt_number: int, *, is_tried: bool
) -> None:
    failure = Failure.build("Busy", "later", Category.RATE_LIMITING, retry_after_seconds=900.0)
    claim = a_claim(attempt_number=attempt_number, max_attempts=3)

    outcome = decide_failure(claim, failure, Backoff(RetryPolicy.FIXED, 1.0, 1.0), jitter=0)

    assert outcome == (Retry(failure, 900.0, counts=False) if is_tried else Failed(failure))


@pytest.mark.parametrize("category", Category)
@pytest.mark.parametrize("retry", [True, False])
def test_a_rule_says_whether_to_try_again_whatever_the_category(category: Category, *, retry: bool) -> None:
    failure = Failure.build("Error", "no", category)
    claim, backoff = a_claim(attempt_number=2, max_attempts=3), Backoff(RetryPolicy.FIXED, 1.0, 1.0)

    outcome = decide_failure(claim, failure, backoff, jitter=0, retry=retry)

    assert isinstance(outcome, Retry if retry else Failed)
