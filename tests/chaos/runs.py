"""Invariants of what handlers did, against what was asked and committed: I2, I3, I8, I9, I10, I15."""

from collections.abc import Iterator
from itertools import pairwise

from app.domain.poison import is_suspect
from app.domain.statuses import Status
from tests.chaos.bounds import Bounds, Violation, Violations, explaining, why_again
from tests.chaos.history import History, Run
from tests.chaos.lives import Life, Step


def nothing_is_invented(history: History, _bounds: Bounds) -> Violations:
    """I2: what runs was created, and what was created somebody has asked for."""
    asked = history.accepted | history.unknown
    for execution_id in history.runs:
        if execution_id not in history.lives:
            yield Violation("I2", f"{execution_id} ran and was never created")
    for life in history.lives.values():
        if life.key not in asked:
            yield Violation("I2", f"{life.execution_id} was created and nobody has asked for {life.key!r}")


def completed_after_its_run(history: History, bounds: Bounds) -> Violations:
    """I3: what is called completed has run to its end before that, under the lease that completed it."""
    for life in history.lives.values():
        for step in life.finals:
            if step.after and step.after.status == Status.COMPLETED and not _ran(history, life, step, bounds):
                yield Violation("I3", f"{life.execution_id} was completed before any run of its had ended")


def starts_under_a_lease(history: History, bounds: Bounds) -> Violations:
    """I6, as handlers see it: a run has a lease that had begun, and no two have the same."""
    for life, runs in _runs_of(history):
        seen: set[int] = set()
        for run in runs:
            grant = life.grant(run.epoch)
            if grant is None or history.wall(run.start.at) < grant.at - bounds.clock_seconds:
                yield Violation("I6", f"{life.execution_id} began under epoch {run.epoch}, which nobody had")
            if run.start.token in seen:
                yield Violation("I6", f"{life.execution_id} began twice under token {run.start.token}")
            seen.add(run.start.token)


def never_early(history: History, bounds: Bounds) -> Violations:
    """I8: nothing begins before its instant, nor before it exists."""
    for life, runs in _runs_of(history):
        for run in runs:
            earliest = max(due_of(life, run), life.steps[0].at)
            ahead = earliest - history.wall(run.start.at)
            if ahead > bounds.clock_seconds:
                yield Violation("I8", f"{life.execution_id} began {ahead:.4f} s early")


def punctual(history: History, bounds: Bounds) -> Violations:
    """I9: what is due begins in time, while nothing is broken."""
    for life, runs in _runs_of(history):
        for run in runs:
            due = due_of(life, run)
            late = history.wall(run.start.at) - max(due, life.steps[0].at)
            if late > bounds.punctual_seconds and not _was_disturbed(history, due, run, bounds):
                yield Violation("I9", f"{life.execution_id} began {late:.2f} s late")


def restarts(history: History) -> Iterator[tuple[str, str, float]]:
    """Yield, of each execution that a fault took from its worker, what was struck and how long until it ran again.

    Not of suspects: they wait for a process in which they are alone.
    """
    for life, runs in _runs_of(history):
        deaths = 0
        for run, following in pairwise(runs):
            freed = life.freeing(run.epoch)
            if freed is None or freed.outcome != "lost":
                continue
            deaths += 1
            fault = explaining(history, life, run)
            if fault and not is_suspect(deaths):
                since = fault.began if fault.target.startswith("pid ") else fault.ended
                yield life.execution_id, fault.target, max(0.0, following.start.at - max(since, run.start.at))


def recovers(history: History, bounds: Bounds) -> Violations:
    """I10: what lost its worker begins again within a lease, a reaper's turn and two seconds.

    Where everything was away the reaper first waits one lease, for workers that come back.
    """
    for execution_id, target, after in restarts(history):
        bound = bounds.restart_seconds + (0 if target.startswith("pid ") else bounds.lease_seconds)
        if after > bound:
            yield Violation("I10", f"{execution_id} began again after {after:.2f} s, not {bound:.2f}")


def every_start_is_explained(history: History, _bounds: Bounds) -> Violations:
    """I7, as handlers see it: a start after the first one follows a failure, or one fault that was injected."""
    for life, runs in _runs_of(history):
        for run, _ in pairwise(runs):
            if why_again(history, life, run) == "unexplained":
                yield Violation("I7", f"{life.execution_id} began again after epoch {run.epoch}: unexplained")


def cancelled_is_cancelled(history: History, bounds: Bounds) -> Violations:
    """I15: what was cancelled before it began never begins, and whatever ends, ends once."""
    for operation in history.operations.values():
        if operation.action != "cancel" or operation.outcome != "ok" or operation.execution_id is None:
            continue
        life = history.lives.get(operation.execution_id)
        if life is None or len(life.finals) != 1:
            yield Violation("I15", f"{operation.execution_id} was cancelled and has not ended once")
        elif operation.status == 200:
            yield from _never_begins(history, life, life.finals[0], bounds)


def _never_begins(history: History, life: Life, final: Step, bounds: Bounds) -> Violations:
    if final.after is None or final.after.status != Status.CANCELLED:
        yield Violation("I15", f"{life.execution_id} was cancelled and is not")
    for run in history.runs.get(life.execution_id, []):
        if history.wall(run.start.at) > final.at + bounds.clock_seconds:
            yield Violation("I15", f"{life.execution_id} was cancelled and began")


def due_of(life: Life, run: Run) -> float:
    """Return when a run was due."""
    grant = life.grant(run.epoch)
    return grant.after.due if grant and grant.after else life.steps[0].at


def _ran(history: History, life: Life, final: Step, bounds: Bounds) -> bool:
    epoch = final.after.epoch if final.after else 0
    return any(
        run.epoch == epoch and run.end and run.end.phase == "ok"
        and history.wall(run.end.at) <= final.at + bounds.clock_seconds
        for run in history.runs.get(life.execution_id, [])
    )  # fmt: skip


def _was_disturbed(history: History, due: float, run: Run, bounds: Bounds) -> bool:
    """Tell whether anything was broken, or had just been mended, between the instant and the start."""
    from_, to = history.moment(due), run.start.at
    settling = bounds.restart_seconds + bounds.lease_seconds
    return any(fault.began <= to and fault.ended + settling >= from_ for fault in history.faults)


def _runs_of(history: History) -> Iterator[tuple[Life, list[Run]]]:
    for execution_id, runs in history.runs.items():
        if execution_id in history.lives:
            yield history.lives[execution_id], runs


INVARIANTS = {
    "I2": nothing_is_invented,
    "I3": completed_after_its_run,
    "I6 of runs": starts_under_a_lease,
    "I7 of runs": every_start_is_explained,
    "I8": never_early,
    "I9": punctual,
    "I10": recovers,
    "I15": cancelled_is_cancelled,
}
