"""docs/workflows.md says of `when` what the code does."""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from app.domain.workflows.definition import MOST_INSTANCES, MOST_STEPS, Step, When
from app.domain.workflows.graph import Graph
from app.domain.workflows.progress import Progress, StepEnd, StepState
from app.domain.workflows.rules import Standing, StepStatus, Verdict, judge

PAGE = (Path(__file__).parents[3] / "docs" / "workflows.md").read_text("utf-8")
NO_END = {"completed": 0, "failed": 0, "cancelled": 0, "skipped": 0}
WORDS = {
    Verdict(runs=True): "runs",
    Verdict(skipped=Standing.FAILURE): "skipped",
    Verdict(skipped=Standing.NOTHING): "not needed",
    Verdict(): "waits",
}


def table(heading: str) -> dict[str, dict[When, str]]:
    """Return a table of the page by the first cell of its rows, and by what stands above its columns."""
    found = re.search(rf"^\| {heading} \|(.*)\|\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert found is not None, f"the page has no table of {heading}"
    columns = [When(cell.strip(" `")) for cell in found[1].split("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[2].splitlines()]
    return {label: dict(zip(columns, cells, strict=True)) for label, *cells in rows}


def ended(run: Progress, key: str, *, message: str | None = None, **how: int) -> None:
    run.note_end(StepEnd(key=key, round=run.states[key].round, message=message, **(NO_END | how)))


def passed_over(run: Progress) -> None:
    run.pass_over("before", "passed over by ada: not today")


def timed_out(run: Progress) -> None:
    ended(run, "first", completed=1)
    begin(run)
    ended(run, "before", failed=1, message="The attempt took longer than its timeout of 1 s")


def after_first(**how: int) -> Callable[[Progress], None]:
    """Let the step before end so, once what stands before it has completed."""

    def act(run: Progress) -> None:
        ended(run, "first", completed=1)
        begin(run)
        ended(run, "before", **how)

    return act


SITUATIONS: dict[str, tuple[When, Callable[[Progress], None], StepStatus]] = {
    "COMPLETED": (When.ALL_SUCCESS, after_first(completed=1), StepStatus.COMPLETED),
    "passed over by hand": (When.ALL_SUCCESS, passed_over, StepStatus.SKIPPED),
    "FAILED": (When.ALL_SUCCESS, after_first(failed=1), StepStatus.FAILED),
    "timed out, with no retry left": (When.ALL_SUCCESS, timed_out, StepStatus.FAILED),
    "CANCELLED": (When.ALL_SUCCESS, after_first(cancelled=1), StepStatus.CANCELLED),
    "SKIPPED because of a failure": (
        When.ALL_SUCCESS,
        lambda run: ended(run, "first", failed=1),
        StepStatus.SKIPPED,
    ),
    "SKIPPED because not needed": (
        When.ANY_FAILED,
        lambda run: ended(run, "first", completed=1),
        StepStatus.SKIPPED,
    ),
}
"""How the step before comes to be what a row is about: its own rule, what happens, and how it then stands."""


def begin(run: Progress) -> None:
    for step in run.take_ready():
        run.release(step, {})


def what_follows(situation: str, when: When) -> str:
    """Return what becomes of a step after one that has ended so."""
    own_rule, act, status = SITUATIONS[situation]
    steps = [
        msgspec.convert({"key": key, "task_id": "report", "depends_on": before, "when": rule}, Step)
        for key, before, rule in (
            ("first", [], When.ALL_SUCCESS),
            ("before", ["first"], own_rule),
            ("after", ["before"], when),
        )
    ]
    run = Progress(Graph(steps), {step.key: StepState(StepStatus.BLOCKED) for step in steps})
    run.begin()
    begin(run)
    act(run)
    begin(run)
    assert run.states["before"].status is status
    state = run.states["after"]
    skipped = state.counts_as if state.status is StepStatus.SKIPPED else None
    return WORDS[Verdict(runs=state.status is StepStatus.RUNNING, skipped=skipped)]


def test_what_follows_each_end_of_the_step_before_is_as_documented() -> None:
    assert table("the step before it") == {
        situation: {when: what_follows(situation, when) for when in When} for situation in SITUATIONS
    }


def test_what_follows_several_steps_is_as_documented() -> None:
    documented = table("the steps before it")
    decided = {
        label: {when: WORDS[judge(when, [Standing(name) for name in label.split(", ")])] for when in When}
        for label in documented
    }
    pairs = {frozenset(label.split(", ")) for label in documented}

    assert documented == decided
    assert pairs == {frozenset((one, other)) for one in Standing for other in Standing if one != other}


@pytest.mark.parametrize("limit", [MOST_STEPS, MOST_INSTANCES])
def test_limits_are_as_documented(limit: int) -> None:
    assert f"| {limit:,}" in PAGE
