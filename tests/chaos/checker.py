"""Judges a history: every invariant by itself, and what was lost, doubled, late … counted apart, never netted."""

from collections import Counter
from itertools import pairwise

import msgspec

from tests.chaos import ends, limits, rows, runs
from tests.chaos.bounds import Bounds, Violation, why_again
from tests.chaos.history import History, Run

INVARIANTS = rows.INVARIANTS | runs.INVARIANTS | ends.INVARIANTS | limits.INVARIANTS
SOFT = frozenset({"I9", "I10"})
"""How soon, and not whether: a machine that others use too may be late."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, each kind by itself."""

    accepted: int
    started: int
    completed: int
    lost: int
    duplicate_start_explained: int
    duplicate_start_unexplained: int
    overlapping_runs: int
    """Duplicates that were under way at the same time."""
    duplicate_completion: int
    stale_accepted: int
    early: int
    late: int
    indeterminate: int
    """Jobs of which nobody knows whether they were created."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a history came to."""

    counts: Counts
    violations: list[Violation]
    explained: dict[str, int]
    """Duplicate starts by the kind of the fault that explains them."""

    @property
    def broken(self) -> set[str]:
        """Return the invariants that do not hold."""
        return {violation.invariant for violation in self.violations}

    @property
    def is_safe(self) -> bool:
        """Tell whether nothing was lost, doubled or taken from its owner, however long it took."""
        return not self.broken - SOFT


def check(history: History, bounds: Bounds) -> Verdict:
    """Judge a history."""
    violations = [each for invariant in INVARIANTS.values() for each in invariant(history, bounds)]
    broken = Counter(violation.invariant for violation in violations)
    why = Counter(_duplicates(history))
    lives = history.lives.values()
    return Verdict(
        counts=Counts(
            accepted=len(history.accepted),
            started=sum(map(len, history.runs.values())),
            completed=sum(
                step.after.status == "COMPLETED" for life in lives for step in life.finals if step.after
            ),
            lost=broken["I1"] + broken["I24"],
            duplicate_start_explained=why.total() - why["unexplained"],
            duplicate_start_unexplained=why["unexplained"],
            overlapping_runs=_overlapping(history),
            duplicate_completion=sum(max(0, len(life.finals) - 1) for life in lives),
            stale_accepted=broken["I5"],
            early=broken["I8"],
            late=broken["I9"],
            indeterminate=len(history.unknown),
        ),
        violations=violations,
        explained={kind: times for kind, times in sorted(why.items()) if kind != "unexplained"},
    )


def _duplicates(history: History) -> list[str]:
    """Return, for each start after the first one that no failure asked for, why it happened."""
    found = []
    for execution_id, those in history.runs.items():
        life = history.lives.get(execution_id)
        for run, following in pairwise(those):
            same = run.start.token == following.start.token
            why = "unexplained" if same or life is None else why_again(history, life, run)
            found += [why] if why != "retry" else []
    return found


def _overlapping(history: History) -> int:
    """Count runs during which another run of the same execution was under way."""
    pairs = [pair for those in history.runs.values() for pair in pairwise(those)]
    return sum(_overlap(one, other) for one, other in pairs)


def _overlap(one: Run, other: Run) -> bool:
    """Tell whether both were under way at some moment; one that never came to an end was killed."""
    if one.end is None or other.end is None:
        return False
    return max(one.start.at, other.start.at) < min(one.end.at, other.end.at)
