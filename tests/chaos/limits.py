"""Invariant of limits on what runs at once: I17. Under which ones a job comes stands in its parameters."""

from collections import Counter
from collections.abc import Iterator

from app.domain.statuses import Status
from tests.chaos.bounds import Bounds, Violation, Violations
from tests.chaos.history import History
from tests.chaos.lives import Life, State


def limits_hold(history: History, _bounds: Bounds) -> Violations:
    """I17: after each transaction no more run than a limit says, and at the end nothing counts any more."""
    running = Counter[str]()
    most = {key: most for life in history.lives.values() for key, most in life.limits.items()}
    for _, change, life in sorted(_changes(history), key=lambda each: each[:2]):
        for key in life.limits:
            running[key] += change
            if change > 0 and running[key] > most[key]:
                yield Violation("I17", f"{running[key]} run under {key}, which allows {most[key]}")
    if history.snapshot is not None and history.snapshot.holders:
        yield Violation("I17", f"{history.snapshot.holders} places are still taken")


def _changes(history: History) -> Iterator[tuple[int, int, Life]]:
    """Yield the transactions in which an execution began to run, or ran no more."""
    for life in history.lives.values():
        for step in life.steps if life.limits else ():
            change = _runs(step.after) - _runs(step.before)
            if change:
                yield step.transaction, change, life


def _runs(state: State | None) -> bool:
    return state is not None and state.status == Status.RUNNING


INVARIANTS = {"I17": limits_hold}
