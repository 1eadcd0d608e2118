"""Invariants of what is left when all is over: I1, I23, I24, I25."""

from tests.chaos.bounds import Bounds, Violation, Violations
from tests.chaos.history import History
from tests.chaos.lives import Life


def nothing_is_lost(history: History, _bounds: Bounds) -> Violations:
    """I1: what was accepted has ended. (Twice is I4.)"""
    lives = history.by_key()
    for key in sorted(history.accepted):
        for life in lives.get(key, []):
            if not life.finals:
                where = life.last.status if life.last else "gone"
                yield Violation("I1", f"{life.execution_id} of {key} was accepted and is {where}")


def what_was_said_is_there(history: History, _bounds: Bounds) -> Violations:
    """I24: what was accepted was committed."""
    for key in sorted(history.accepted - history.by_key().keys()):
        yield Violation("I24", f"{key} was accepted and is nowhere")


def nothing_is_missing(history: History, _bounds: Bounds) -> Violations:
    """I23: what was inserted is live, or finished, or was taken back; counted twice, by the log and by the tables."""
    if history.snapshot is None:
        return
    ended = sum(_is_finished(life) for life in history.lives.values())
    live = sum(life.last is not None for life in history.lives.values()) - ended
    if (live, ended) != (history.snapshot.live, history.snapshot.finished):
        tables = f"{history.snapshot.live} live and {history.snapshot.finished} finished"
        yield Violation("I23", f"by the log {live} live and {ended} finished, by the tables {tables}")


def comes_to_rest(history: History, _bounds: Bounds) -> Violations:
    """I25: at the end nobody holds anything, and no page is damaged."""
    rest = history.snapshot
    if rest is None:
        return
    if rest.leased or rest.waiting_locks or rest.idle_in_transaction:
        yield Violation(
            "I25",
            f"{rest.leased} leased, {rest.waiting_locks} waiting, {rest.idle_in_transaction} idle in transaction",
        )
    for damage in rest.damage:
        yield Violation("I25", damage)


def _is_finished(life: Life) -> bool:
    return life.last is not None and life.last.is_final


INVARIANTS = {
    "I1": nothing_is_lost,
    "I23": nothing_is_missing,
    "I24": what_was_said_is_there,
    "I25": comes_to_rest,
}
