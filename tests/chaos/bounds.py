"""What a run is judged by, and what a judgement is."""

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from tests.chaos.history import History, Run
from tests.chaos.journals import Fault
from tests.chaos.lives import Life


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How the house was set up, and how exact clocks are."""

    lease_seconds: float
    reap_seconds: float = 1.0
    slack_seconds: float = 2.0
    punctual_seconds: float = 2.0
    clock_seconds: float = 0.001
    """The database's clock is known to a process by round trips, and a commit's time is taken just before it."""

    @property
    def restart_seconds(self) -> float:
        """Return how long after its worker was struck an execution may begin again."""
        return self.lease_seconds + self.reap_seconds + self.slack_seconds


class Violation(msgspec.Struct, frozen=True):
    """A promise that was broken."""

    invariant: str
    what: str


Violations: TypeAlias = Iterator[Violation]


def explaining(history: History, life: Life, run: Run) -> Fault | None:
    """Return the fault that struck a run's worker while it had its lease: one of its process, or of all."""
    granted, freed = life.grant(run.epoch), life.freeing(run.epoch)
    if granted is None or freed is None:
        return None
    since, until = history.moment(granted.at), history.moment(freed.at)
    for fault in history.faults:
        struck = fault.target in {"all", "database", f"pid {run.start.pid}"}
        if struck and fault.began <= until and fault.ended >= since:
            return fault
    return None


def why_again(history: History, life: Life, run: Run) -> str:
    """Return why an execution was begun again after a run: `retry`, a fault's name, or `unexplained`."""
    freed = life.freeing(run.epoch)
    if freed is None:
        return "unexplained"
    if freed.outcome in {"failed", "timeout"}:
        return "retry"
    fault = explaining(history, life, run)
    return fault.kind if fault else "unexplained"
