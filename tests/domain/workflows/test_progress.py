"""A run as it goes on, told of one end after another, in any order."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.domain.workflows.definition import Step, When
from app.domain.workflows.graph import Graph
from app.domain.workflows.progress import Progress, RunStatus, StepEnd, StepState
from app.domain.workflows.rules import Standing, StepStatus, judge

ENDS: dict[str, StepStatus] = {
    "completed": StepStatus.COMPLETED,
    "failed": StepStatus.FAILED,
    "cancelled": StepStatus.CANCELLED,
}


def step(key: str, *before: str, **fields: Any) -> Step:
    return msgspec.convert({"key": key, "task_id": "report", "depends_on": list(before)} | fields, Step)


def progress(*steps: Step) -> Progress:
    run = Progress(Graph(steps), {each.key: StepState(StepStatus.BLOCKED) for each in steps})
    run.begin()
    return run


def end(run: Progress, key: str, how: str = "completed") -> None:
    counts = dict.fromkeys(("completed", "failed", "cancelled", "skipped"), 0) | {how: 1}
    run.note_end(
        StepEnd(key=key, round=run.states[key].round, message="no" if how == "failed" else None, **counts)
    )


def ready(run: Progress, sources: Mapping[str, Any] | None = None) -> list[str]:
    """Release what begins now; return their keys."""
    begun = run.take_ready()
    for each in begun:
        run.release(each, sources or {})
    return sorted(each.key for each in begun)


def statuses(run: Progress) -> dict[str, str]:
    return {key: state.status.value for key, state in run.states.items()}


def test_a_chain_begins_step_by_step() -> None:
    run = progress(step("a"), step("b", "a"))

    assert ready(run) == ["a"]
    assert ready(run) == []
    end(run, "a")
    assert ready(run) == ["b"]
    end(run, "b")
    assert run.outcome() is RunStatus.COMPLETED


def test_a_join_begins_once_whoever_is_last() -> None:
    run = progress(step("a"), step("b"), step("join", "a", "b"))
    assert ready(run) == ["a", "b"]
    end(run, "a")
    assert ready(run) == []
    end(run, "b")
    end(run, "b")

    assert ready(run) == ["join"]
    assert ready(run) == []


def test_what_follows_a_failure_is_skipped_and_says_why() -> None:
    run = progress(step("a"), step("b", "a"), step("c", "b"), step("alert", "c", when="any_failed"))
    ready(run)
    end(run, "a", "failed")

    assert ready(run) == ["alert"]
    assert statuses(run) == {"a": "FAILED", "b": "SKIPPED", "c": "SKIPPED", "alert": "RUNNING"}
    assert run.states["a"].cause == "no"
    assert run.states["b"].cause == "all_success: a FAILED"
    end(run, "alert")
    assert run.outcome() is RunStatus.FAILED


def test_an_end_of_an_earlier_round_counts_no_more() -> None:
    run = progress(step("a"), step("b", "a"))
    ready(run)
    first = StepEnd(key="a", round=1, completed=0, failed=1, cancelled=0, skipped=0, message="no")
    run.note_end(first)
    run.retry(["a"])
    assert ready(run) == ["a"]
    assert run.states["a"].round == 2

    run.note_end(first)

    assert statuses(run) == {"a": "RUNNING", "b": "BLOCKED"}


def test_passing_a_step_over_opens_what_was_skipped_for_it() -> None:
    run = progress(step("a"), step("b", "a"), step("other"), step("c", "b", "other"))
    ready(run)
    end(run, "a", "failed")
    end(run, "other")
    ready(run)

    run.pass_over("a", "passed over by ada: known")

    assert ready(run) == ["b"]
    assert statuses(run) == {"a": "SKIPPED", "b": "RUNNING", "other": "COMPLETED", "c": "BLOCKED"}
    end(run, "b")
    assert ready(run) == ["c"]
    end(run, "c")
    assert run.outcome() is RunStatus.COMPLETED


def test_a_cancelled_run_begins_nothing_more() -> None:
    run = progress(step("a"), step("b", "a"))
    ready(run)
    run.cancel("cancelled by ada")
    end(run, "a")

    assert ready(run) == []
    assert statuses(run) == {"a": "COMPLETED", "b": "CANCELLED"}


def test_a_list_of_nothing_is_done_at_once() -> None:
    run = progress(step("a"), step("m", "a", map={"$from": "a"}), step("z", "m"))
    ready(run)
    end(run, "a")

    assert ready(run, {"a": []}) == ["m"]
    assert ready(run) == ["z"]
    assert run.states["m"].status is StepStatus.COMPLETED


def test_a_step_whose_reference_leads_nowhere_fails_and_names_it() -> None:
    run = progress(step("a"), step("b", "a", parameters={"x": {"$from": "a.rows"}}), step("c", "b"))
    ready(run)
    end(run, "a")

    ready(run, {"a": {"columns": 1}})
    ready(run)

    assert statuses(run) == {"a": "COMPLETED", "b": "FAILED", "c": "SKIPPED"}
    assert "a.rows" in (run.states["b"].cause or "")


def test_each_instance_gets_its_item() -> None:
    run = progress(step("m", map=["x", "y"], parameters={"n": {"$from": "item"}, "i": {"$from": "index"}}))

    (begun,) = run.take_ready()
    release = run.release(begun, {})

    assert release is not None
    assert [msgspec.json.decode(each) for each in release.parameters] == [
        {"n": "x", "i": 0},
        {"n": "y", "i": 1},
    ]


def test_parameters_that_grew_too_large_fail_the_step() -> None:
    run = progress(step("a", parameters={"x": {"$from": "parameters.x"}}))

    (begun,) = run.take_ready()

    assert run.release(begun, {"parameters": {"x": "y" * 2**20}}) is None
    assert "1,048,576" in (run.states["a"].cause or "")


def test_one_instance_that_fails_fails_the_step() -> None:
    run = progress(step("m", map=[1, 2, 3]), step("z", "m"))
    ready(run)

    run.note_end(StepEnd(key="m", round=1, completed=2, failed=1, cancelled=0, skipped=0, message="boom"))

    assert (run.states["m"].status, run.states["m"].cause) == (StepStatus.FAILED, "1 of 3 failed: boom")


@st.composite
def graphs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> list[Step]:
    size = draw(st.integers(1, 9))
    found = []
    for i in range(size):
        before = draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        rules = list(When) if before else [When.ALL_SUCCESS, When.ALL_DONE, When.NONE_FAILED]
        found.append(step(f"s{i}", *(f"s{j}" for j in before), when=draw(st.sampled_from(rules)).value))
    return found


@given(graphs(), st.data())
def test_whatever_ends_in_whatever_order_every_step_gets_what_its_rule_says(
    steps: list[Step], data: st.DataObject
) -> None:
    run = progress(*steps)
    started: list[str] = []
    while True:
        started += ready(run)
        running = sorted(key for key, s in run.states.items() if s.status is StepStatus.RUNNING)
        if not running:
            break
        end(run, data.draw(st.sampled_from(running)), data.draw(st.sampled_from(sorted(ENDS))))

    assert len(started) == len(set(started)), "a step began twice"
    assert run.outcome() is not None, "a step waits for ever"
    for each in steps:
        verdict = judge(each.when, [run.states[key].counts_as for key in each.depends_on])
        assert verdict.runs == (each.key in started)
        state = run.states[each.key]
        assert state.counts_as is not Standing.OPEN
        assert (state.status is StepStatus.SKIPPED) == (each.key not in started)
