"""The life of an execution: from every live status to an end, and never out of one."""

from app.domain.statuses import FINAL, LEASED, LIVE, READY, TRANSITIONS, Status

STATEMENTS = {
    "claim_due": [(Status.PENDING, Status.RUNNING), (Status.RETRYING, Status.RUNNING)],
    "claim_suspect": [(Status.PENDING, Status.RUNNING), (Status.RETRYING, Status.RUNNING)],
    "claim_ahead": [(Status.PENDING, Status.SCHEDULED), (Status.RETRYING, Status.SCHEDULED)],
    "arm": [(Status.SCHEDULED, Status.RUNNING)],
    "settle": [(Status.RUNNING, Status.COMPLETED), (Status.RUNNING, Status.FAILED)],
    "retry": [(Status.RUNNING, Status.RETRYING)],
    "release": [(leased, ready) for leased in LEASED for ready in READY],
    "reap_scheduled": [(Status.SCHEDULED, Status.PENDING), (Status.SCHEDULED, Status.RETRYING)],
    "reap_running": [(Status.RUNNING, Status.RETRYING)],
    "reap_poison": [(Status.RUNNING, Status.FAILED)],
}
"""What the hot statements do, as `tests/db/test_executions_store.py` shows."""


def test_every_status_is_live_or_final_and_only_live_ones_are_ready_or_leased() -> None:
    assert sorted((*LIVE, *FINAL)) == sorted(Status)
    assert set(READY) | set(LEASED) | {Status.BLOCKED} == set(LIVE)
    assert set(READY).isdisjoint(LEASED)


def test_nothing_leaves_an_end_and_nothing_is_blocked_again() -> None:
    assert set(TRANSITIONS) == set(Status)
    assert all(not TRANSITIONS[final] for final in FINAL)
    assert all(Status.BLOCKED not in following for following in TRANSITIONS.values())
    assert all(status not in following for status, following in TRANSITIONS.items())


def test_every_live_status_can_be_reached_and_can_end() -> None:
    assert _reachable(Status.BLOCKED) == set(Status) - {Status.BLOCKED}
    assert all(set(FINAL) <= _reachable(status) for status in LIVE)


def test_only_what_runs_completes() -> None:
    assert {status for status in Status if Status.COMPLETED in TRANSITIONS[status]} == {Status.RUNNING}


def test_whatever_is_live_can_be_cancelled_at_once() -> None:
    assert all(Status.CANCELLED in TRANSITIONS[status] for status in LIVE)


def test_the_ways_of_the_hot_statements_are_declared() -> None:
    undeclared = [
        (name, before, after)
        for name, ways in STATEMENTS.items()
        for before, after in ways
        if after not in TRANSITIONS[before]
    ]

    assert undeclared == []


def _reachable(start: Status) -> set[Status]:
    found: set[Status] = set()
    frontier = set(TRANSITIONS[start])
    while frontier:
        found |= frontier
        frontier = {after for status in frontier for after in TRANSITIONS[status]} - found
    return found
