"""What the page of a job says in words and figures, and how its last runs are drawn."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from app.db.reads.job_runs import Run
from app.domain.retry import Backoff, RetryPolicy
from app.domain.statuses import Status
from app.ui.job_words import retry_words, sample_of
from app.ui.run_strip import FOOT, run_bars, run_shapes, strip_words

NOW = datetime(2030, 1, 31, 9, tzinfo=UTC)

RETRIES = [
    (0, "exponential", 1, "not retried"),
    (1, "exponential", 1, "1 retry after 1 s"),
    (3, "exponential", 30, "3 retries, after 30 s, 1 min, 2 min"),
    (10, "exponential", 60, "10 retries, after 1 min, 2 min, 4 min … 1 h"),
    (3, "linear", 5, "3 retries, after 5 s, 10 s, 15 s"),
    (5, "fixed", 2.5, "5 retries, each after 2.5 s"),
    (2, "exponential", 0, "2 retries, after 0 s, 0 s"),
]


@pytest.mark.parametrize(("count", "policy", "seconds", "words"), RETRIES)
def test_retries_are_told_with_their_delays(count: int, policy: str, seconds: float, words: str) -> None:
    assert retry_words(count, Backoff(RetryPolicy(policy), seconds, 3600)) == words


def test_what_half_and_most_stayed_below_is_of_the_runs_that_completed() -> None:
    runs = [_run(seconds=n) for n in range(1, 101)] + [_run("FAILED", 5000), _run("CANCELLED", None)]
    sample = sample_of(runs, max_delay_ms=2000)

    assert (sample.runs, sample.p50, sample.p95) == (102, 50.5, pytest.approx(95.05))


@pytest.mark.parametrize("seconds", [[], [3.0]])
def test_of_few_runs_there_is_as_much_to_say(seconds: list[float]) -> None:
    sample = sample_of([_run(seconds=one) for one in seconds], max_delay_ms=2000)

    assert (sample.p50, sample.p95) == ((3.0, 3.0) if seconds else (None, None))


def test_late_is_what_began_later_than_the_queue_promises() -> None:
    runs = [_run(lateness_ms=one) for one in (None, 3, 100, 101, 5000)]

    assert sample_of(runs, max_delay_ms=100).late == 2


def test_the_newest_run_stands_at_the_right_and_the_longest_is_highest() -> None:
    bars = run_bars([_run(seconds=1), _run(seconds=4), _run(seconds=2)], slots=5, height=20)

    assert [(bar.x, 20 - bar.top) for bar in bars] == [(2, 10), (3, 20), (4, 5)]


def test_what_failed_stands_on_a_foot_and_what_never_began_is_seen() -> None:
    bars = run_bars([_run("FAILED", 2), _run("SKIPPED", None), _run("COMPLETED", 0)], slots=3, height=20)

    assert [bar.look for bar in bars] == ["good", "off", "bad"]
    assert [bar.foot for bar in bars] == [20, 20, 20 + FOOT]
    assert all(bar.top < bar.foot for bar in bars)


def test_bars_of_one_look_are_one_path() -> None:
    runs = [_run("COMPLETED", 2), _run("FAILED", 1), _run("COMPLETED", 2), _run("COMPLETED", 1)]
    shapes = run_shapes(runs, slots=4, width=4, height=20)

    assert dict(shapes) == {"good": "M0 20V10h4V0h4V20zM12 20V0h4V20z", "bad": "M8 23V10h4V23z"}


def test_more_runs_than_slots_are_left_out() -> None:
    assert len(run_bars([_run()] * 40, slots=30, height=20)) == 30
    assert run_shapes([], slots=30, width=4, height=20) == []


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        ([], "no runs"),
        (["FAILED"], "1 run: 1 failed"),
        (["SKIPPED", "COMPLETED", "COMPLETED"], "3 runs: 2 completed, 1 skipped"),
    ],
)
def test_a_strip_says_what_it_shows(statuses: list[str], words: str) -> None:
    assert strip_words([_run(status) for status in statuses]) == words


def _run(status: str = "COMPLETED", seconds: float | None = 1.0, lateness_ms: float | None = 3.0) -> Run:
    return Run(
        execution_id=UUID(int=0),
        status=Status(status),
        scheduled_time=NOW,
        started_at=None if seconds is None else NOW,
        completed_at=NOW + timedelta(seconds=seconds or 0),
        lateness_ms=lateness_ms,
    )
