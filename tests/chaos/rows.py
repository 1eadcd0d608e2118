"""Invariants of what was committed: I4, I5, I6, I7, I11, I14, I16, I22, I28."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from app.domain.poison import POISON_AT, is_suspect
from app.domain.statuses import TRANSITIONS, Status
from tests.chaos.bounds import Bounds, Violation, Violations
from tests.chaos.history import History, epoch_of
from tests.chaos.lives import Life, State, Step

BEGINNINGS = {Status.PENDING, Status.BLOCKED}


class Held(NamedTuple):
    """A lease: from which transaction to which, whose, of what, and whether that must run alone."""

    since: int
    until: int
    worker: str
    execution_id: str
    is_suspect: bool


def one_completion(history: History, _bounds: Bounds) -> Violations:
    """I4: of an execution at most one end is accepted."""
    for life in history.lives.values():
        if len(life.finals) > 1:
            yield Violation("I4", f"{life.execution_id} ended {len(life.finals)} times")


def fenced(history: History, _bounds: Bounds) -> Violations:
    """I5: what a worker writes about an execution is accepted under its newest lease only."""
    for life in history.lives.values():
        for step in life.steps:
            newest = step.before.epoch if step.before else 0
            for wrote in (step.outcome_epoch, None if step.token is None else epoch_of(step.token)):
                if wrote is not None and step.before and wrote != newest:
                    yield Violation(
                        "I5", f"{life.execution_id}: epoch {wrote} wrote, {newest} was the newest"
                    )


def epochs_grow(history: History, _bounds: Bounds) -> Violations:
    """I6: an epoch never sinks, and whoever gets a lease gets one that nobody had."""
    for life in history.lives.values():
        granted = 0
        for step in life.steps:
            before, after = step.before, step.after
            if before and after and after.epoch < before.epoch:
                yield Violation("I6", f"{life.execution_id}: epoch {before.epoch} became {after.epoch}")
            if after and is_grant(before, after):
                if after.epoch <= granted:
                    yield Violation(
                        "I6", f"{life.execution_id}: epoch {after.epoch} was granted after {granted}"
                    )
                granted = after.epoch


def leases_exclude(history: History, _bounds: Bounds) -> Violations:
    """I7: nobody but its holder ends a lease before it has run out, and it passes to nobody directly."""
    for life in history.lives.values():
        for step in life.steps:
            before, after = step.before, step.after
            if not (before and after and before.is_leased):
                continue
            if after.is_leased and before.worker != after.worker:
                yield Violation("I7", f"{life.execution_id} passed from worker to worker")
            if _was_taken(step, before, after) and before.lease_ends and step.at < before.lease_ends:
                early = before.lease_ends - step.at
                yield Violation("I7", f"{life.execution_id} was taken {early:.3f} s before its lease ran out")


def occurs_once(history: History, _bounds: Bounds) -> Violations:
    """I11: an instant of a job becomes one execution."""
    places = Counter(life.place for life in history.lives.values())
    for place, times in places.items():
        if times > 1:
            yield Violation("I11", f"{place} became {times} executions")


def key_once(history: History, _bounds: Bounds) -> Violations:
    """I16: what was asked for under one key is one job."""
    for key, lives in history.by_key().items():
        jobs = {life.job_id for life in lives}
        if key and len(jobs) > 1:
            yield Violation("I16", f"{key} became {len(jobs)} jobs")


def attempts_are_counted(history: History, _bounds: Bounds) -> Violations:
    """I14: attempts count up by one as they begin, down by one if they did not, and never beyond their limit."""
    for life in history.lives.values():
        for step in life.steps:
            before, after = step.before, step.after
            if after and after.attempt > max(after.most_attempts, 0):
                yield Violation(
                    "I14", f"{life.execution_id}: attempt {after.attempt} of {after.most_attempts}"
                )
            if before and after and not _counts(before, after):
                yield Violation(
                    "I14", f"{life.execution_id}: attempt {before.attempt} became {after.attempt}"
                )


def deaths_are_counted(history: History, _bounds: Bounds) -> Violations:
    """I14: the death of a worker is counted apart and costs no attempt, and the last one only is the end."""
    for life in history.lives.values():
        for step in life.steps:
            before, after = step.before, step.after
            if not (before and after):
                continue
            lost = step.outcome == "lost"
            ended = after.status == Status.FAILED and after.epoch > before.epoch
            died, given = lost or ended, after.most_attempts - before.most_attempts
            counted = after.deaths - before.deaths
            excused = died and counted == 0 and _was_away(history, step.at)
            if (counted != died and not excused) or (died and given < 1):
                yield Violation("I14", f"{life.execution_id}: {before.deaths} deaths became {after.deaths}")
            if counted and (after.deaths >= POISON_AT) is not ended:
                yield Violation("I14", f"{life.execution_id} is {after.status} at death {after.deaths}")


def _was_away(history: History, at: float) -> bool:
    """Tell whether everything was away before: what lapsed then could not be renewed, and is no worker's death."""
    return any(not fault.target.startswith("pid ") and fault.began <= at for fault in history.faults)


def suspects_run_alone(history: History, _bounds: Bounds) -> Violations:
    """I28: what two workers died of is with one that has nothing else."""
    by_worker: dict[str, list[Held]] = defaultdict(list)
    for life in history.lives.values():
        for held in _held(life):
            by_worker[held.worker].append(held)
    for worker, leases in by_worker.items():
        for one, other in product((each for each in leases if each.is_suspect), leases):
            if one is not other and other.since < one.until and one.since < other.until:
                yield Violation("I28", f"{worker} had {one.execution_id} and {other.execution_id} at once")


def _held(life: Life) -> Iterator[Held]:
    """Yield the leases of an execution, from the transaction that began them to the one that ended them."""
    for step in life.steps:
        after = step.after
        if after and after.worker and is_grant(step.before, after):
            freed = life.freeing(after.epoch)
            until = freed.transaction if freed else sys.maxsize
            yield Held(step.transaction, until, after.worker, life.execution_id, is_suspect(after.deaths))


def ways_are_legal(history: History, _bounds: Bounds) -> Violations:
    """I22: executions go the ways that there are, and none comes back from its end."""
    for life in history.lives.values():
        for step in life.steps:
            before, after = step.before, step.after
            if after is None:
                if before is None or before.status not in {Status.PENDING, Status.SCHEDULED, Status.BLOCKED}:
                    yield Violation("I22", f"{life.execution_id} is gone")
            elif before is None:
                if after.status not in BEGINNINGS or step is not life.steps[0]:
                    yield Violation("I22", f"{life.execution_id} began as {after.status}")
            elif before.is_final:
                yield Violation("I22", f"{life.execution_id} was {before.status} and became {after.status}")
            elif after.status != before.status and after.status not in TRANSITIONS[Status(before.status)]:
                yield Violation("I22", f"{life.execution_id}: {before.status} became {after.status}")


def is_grant(before: State | None, after: State) -> bool:
    """Tell whether a lease begins here."""
    return after.is_leased and (before is None or not before.is_leased or before.epoch != after.epoch)


def _was_taken(step: Step, before: State, after: State) -> bool:
    """Tell whether a reaper has ended the lease: only it records an attempt as lost, and only it ends executions that
    run under an epoch that nobody had."""
    if step.outcome is not None:
        return step.outcome == "lost"
    return after.is_final and before.status == Status.RUNNING and after.epoch > before.epoch


def _counts(before: State, after: State) -> bool:
    begins = after.status == Status.RUNNING and before.status != Status.RUNNING
    if begins:
        return after.attempt == before.attempt + 1
    gives_back = before.status == Status.RUNNING and after.status in {Status.PENDING, Status.RETRYING}
    return after.attempt == before.attempt or (gives_back and after.attempt == before.attempt - 1)


INVARIANTS = {
    "I4": one_completion,
    "I5": fenced,
    "I6": epochs_grow,
    "I7": leases_exclude,
    "I11": occurs_once,
    "I14": attempts_are_counted,
    "I14 of deaths": deaths_are_counted,
    "I16": key_once,
    "I22": ways_are_legal,
    "I28": suspects_run_alone,
}
