"""What becomes of a step, once it is known what has become of those before it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from app.domain.workflows.definition import When


class StepStatus(StrEnum):
    """What a step of a run is doing."""

    BLOCKED = "BLOCKED"
    """Waits for the steps before it."""
    RUNNING = "RUNNING"
    """It has been released: its executions wait, run or are tried again."""
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"
    """Never ran: its rule was not met, or somebody has passed it over."""


class Standing(StrEnum):
    """How a step counts for those after it."""

    OPEN = "open"
    SUCCESS = "success"
    FAILURE = "failure"
    """It failed, was cancelled, or did not run because of one that did."""
    NOTHING = "nothing"
    """It was not needed: nothing had failed that it was there for, say."""


ENDS = {
    StepStatus.COMPLETED: Standing.SUCCESS,
    StepStatus.FAILED: Standing.FAILURE,
    StepStatus.CANCELLED: Standing.FAILURE,
}
"""How the ends of a step count; as SKIPPED it counts as what made it so."""


class Verdict(NamedTuple):
    """`runs`, or `skipped` and how that counts; neither: it is to wait."""

    runs: bool = False
    skipped: Standing | None = None


RUN, WAIT = Verdict(runs=True), Verdict()


def judge(when: When, before: Sequence[Standing]) -> Verdict:
    """Say what becomes of a step, by how those before it count. docs/workflows.md has the table.

    It is decided as soon as nothing that may still come would change it.
    """
    failed, succeeded = Standing.FAILURE in before, Standing.SUCCESS in before
    all_done = Standing.OPEN not in before
    missed = Verdict(skipped=Standing.FAILURE if failed else Standing.NOTHING)
    match when:
        case When.ALL_SUCCESS:
            runs, is_out = all(each is Standing.SUCCESS for each in before), failed or all_done
        case When.ALL_DONE:
            runs, is_out = all_done, False
        case When.ANY_SUCCESS:
            runs, is_out = succeeded, all_done
        case When.ANY_FAILED:
            runs, is_out, missed = failed, all_done, Verdict(skipped=Standing.NOTHING)
        case When.NONE_FAILED:
            runs, is_out = all_done and not failed, failed
    if runs:
        return RUN
    return missed if is_out else WAIT
