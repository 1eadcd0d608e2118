"""What becomes of a step, by what has become of those before it."""

from itertools import permutations, product

import pytest

from app.domain.workflows.definition import When
from app.domain.workflows.rules import ENDS, Standing, StepStatus, Verdict, judge

OPEN, SUCCESS, FAILURE, NOTHING = Standing.OPEN, Standing.SUCCESS, Standing.FAILURE, Standing.NOTHING
RUNS, WAITS = Verdict(runs=True), Verdict()
FAILS, IDLE = Verdict(skipped=FAILURE), Verdict(skipped=NOTHING)

TABLE = {
    When.ALL_SUCCESS: {SUCCESS: RUNS, FAILURE: FAILS, NOTHING: IDLE},
    When.ALL_DONE: {SUCCESS: RUNS, FAILURE: RUNS, NOTHING: RUNS},
    When.ANY_SUCCESS: {SUCCESS: RUNS, FAILURE: FAILS, NOTHING: IDLE},
    When.ANY_FAILED: {SUCCESS: IDLE, FAILURE: RUNS, NOTHING: IDLE},
    When.NONE_FAILED: {SUCCESS: RUNS, FAILURE: FAILS, NOTHING: RUNS},
}
"""After one step, by how it counts."""


@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("before", [SUCCESS, FAILURE, NOTHING])
def test_after_one_step(when: When, before: Standing) -> None:
    assert judge(when, [before]) == TABLE[when][before]


def test_a_step_that_failed_was_cancelled_or_fell_with_one_that_did_is_no_success() -> None:
    assert ENDS == {
        StepStatus.COMPLETED: SUCCESS,
        StepStatus.FAILED: FAILURE,
        StepStatus.CANCELLED: FAILURE,
    }


@pytest.mark.parametrize(
    ("when", "before", "expected"),
    [
        (When.ALL_SUCCESS, [SUCCESS, OPEN], WAITS),
        (When.ALL_SUCCESS, [FAILURE, OPEN], FAILS),
        (When.ALL_SUCCESS, [NOTHING, OPEN], WAITS),
        (When.ALL_SUCCESS, [NOTHING, SUCCESS], IDLE),
        (When.ALL_SUCCESS, [NOTHING, FAILURE], FAILS),
        (When.ALL_DONE, [FAILURE, OPEN], WAITS),
        (When.ALL_DONE, [FAILURE, NOTHING], RUNS),
        (When.ANY_SUCCESS, [SUCCESS, OPEN], RUNS),
        (When.ANY_SUCCESS, [FAILURE, OPEN], WAITS),
        (When.ANY_SUCCESS, [FAILURE, NOTHING], FAILS),
        (When.ANY_FAILED, [FAILURE, OPEN], RUNS),
        (When.ANY_FAILED, [SUCCESS, OPEN], WAITS),
        (When.ANY_FAILED, [SUCCESS, NOTHING], IDLE),
        (When.NONE_FAILED, [SUCCESS, OPEN], WAITS),
        (When.NONE_FAILED, [FAILURE, OPEN], FAILS),
        (When.NONE_FAILED, [SUCCESS, NOTHING], RUNS),
    ],
)
def test_after_several_steps(when: When, before: list[Standing], expected: Verdict) -> None:
    for order in permutations(before):
        assert judge(when, order) == expected


@pytest.mark.parametrize("when", When)
def test_what_is_decided_early_is_what_would_have_been_decided_late(when: When) -> None:
    for before in product([OPEN, SUCCESS, FAILURE, NOTHING], repeat=3):
        early = judge(when, before)
        ends = [[SUCCESS, FAILURE, NOTHING] if each is OPEN else [each] for each in before]
        late = {judge(when, end) for end in product(*ends)}
        if early == WAITS:
            assert len(late) > 1 or OPEN in before
        else:
            assert late == {early}
        assert WAITS not in late
