"""Steps that form no graph are refused, with a pointer to what is wrong and the way around the circle."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidInput
from app.domain.workflows.definition import Step
from app.domain.workflows.graph import Graph, check_steps


def steps(*documents: dict[str, Any]) -> list[Step]:
    return [msgspec.convert({"task_id": "report"} | document, Step) for document in documents]


def refusal(*documents: dict[str, Any]) -> InvalidInput:
    with pytest.raises(InvalidInput) as error:
        check_steps(steps(*documents))
    return error.value


def test_a_diamond_is_fine() -> None:
    diamond = steps(
        {"key": "d", "depends_on": ["b", "c"]},
        {"key": "a"},
        {"key": "b", "depends_on": ["a"]},
        {"key": "c", "depends_on": ["a"]},
    )

    check_steps(diamond)

    assert Graph(diamond).descendants(["a"]) == {"b", "c", "d"}
    assert Graph(diamond).descendants(["b"]) == {"d"}


def test_a_step_cannot_wait_for_itself() -> None:
    error = refusal({"key": "a", "depends_on": ["a"]})

    assert (error.code, error.pointer) == ("circular_steps", "/steps/0/depends_on")
    assert "a → a" in error.detail


def test_a_circle_is_shown_as_a_way_around_it() -> None:
    error = refusal(
        {"key": "x"},
        {"key": "c", "depends_on": ["b", "x"]},
        {"key": "a", "depends_on": ["c"]},
        {"key": "b", "depends_on": ["a"]},
        {"key": "after", "depends_on": ["c"]},
    )

    assert (error.code, error.pointer) == ("circular_steps", "/steps/2/depends_on")
    assert "a → b → c → a" in error.detail
    assert "after" not in error.detail


def test_a_ring_of_fifty_is_found_and_shown_in_part() -> None:
    error = refusal(*({"key": f"s{i:02}", "depends_on": [f"s{(i - 1) % 50:02}"]} for i in range(50)))

    assert "s00 → s01" in error.detail
    assert "s49 → s00" in error.detail
    assert "more" in error.detail


@given(st.integers(2, 12), st.data())
def test_a_graph_with_one_way_back_is_refused_with_a_real_circle(size: int, data: st.DataObject) -> None:
    edges = {
        i: data.draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set[int]() for i in range(size)
    }
    check_steps(steps(*({"key": f"s{i}", "depends_on": [f"s{j}" for j in edges[i]]} for i in range(size))))
    last = data.draw(st.integers(1, size - 1))
    first = data.draw(st.integers(0, last - 1))
    edges[last].add(first)  # a way there
    edges[first].add(last)  # and back
    named = {f"s{i}": [f"s{j}" for j in edges[i]] for i in range(size)}

    error = refusal(*({"key": key, "depends_on": before} for key, before in named.items()))

    way = error.detail.split(": ", 1)[1].split(";")[0].split(" → ")
    assert way[0] == way[-1]
    assert all(before in named[after] for before, after in pairwise(way))


@pytest.mark.parametrize(
    ("documents", "code", "pointer"),
    [
        ([{"key": "a"}, {"key": "a"}], "duplicate_step", "/steps/1/key"),
        ([{"key": "a", "depends_on": ["b"]}], "unknown_step", "/steps/0/depends_on/0"),
        ([{"key": "a"}, {"key": "b", "depends_on": ["a", "a"]}], "invalid_input", "/steps/1/depends_on/1"),
        ([{"key": "item"}], "invalid_input", "/steps/0/key"),
        ([{"key": "a", "when": "any_failed"}], "invalid_input", "/steps/0/when"),
        ([{"key": "a", "parameters": {"x": {"$from": "b"}}}], "unknown_reference", "/steps/0/parameters/x"),
        (
            [{"key": "b"}, {"key": "a", "parameters": {"x": [1, {"y": {"$from": "b.z"}}]}}],
            "unknown_reference",
            "/steps/1/parameters/x/1/y",
        ),
        (
            [{"key": "a", "parameters": {"x": {"$from": "item"}}}],
            "unknown_reference",
            "/steps/0/parameters/x",
        ),
        ([{"key": "a", "parameters": {"x": {"$from": "a"}}}], "unknown_reference", "/steps/0/parameters/x"),
        ([{"key": "a", "map": {"$from": "item"}}], "unknown_reference", "/steps/0/map"),
        ([{"key": "a", "map": {"x": "y"}}], "invalid_input", "/steps/0/map"),
        ([{"key": "a", "map": list(range(10_001))}], "invalid_input", "/steps/0/map"),
        ([{"key": "a", "parameters": {"x": {"$from": "a..b"}}}], "invalid_input", "/steps/0/parameters/x"),
        ([{"key": "a", "parameters": {"x": {"$from": 1}}}], "invalid_input", "/steps/0/parameters/x"),
        (
            [{"key": "a", "parameters": {"x": {"$from": "parameters", "y": 1}}}],
            "invalid_input",
            "/steps/0/parameters/x",
        ),
    ],
)
def test_what_means_nothing_is_refused(documents: list[dict[str, Any]], code: str, pointer: str) -> None:
    error = refusal(*documents)

    assert (error.code, error.pointer) == (code, pointer)


def test_a_step_may_refer_to_any_step_before_it_however_far() -> None:
    check_steps(
        steps(
            {"key": "a"},
            {"key": "b", "depends_on": ["a"]},
            {"key": "c", "depends_on": ["b"], "parameters": {"x": {"$from": "a.rows.0"}}},
            {"key": "d", "depends_on": ["c"], "map": {"$from": "a"}, "parameters": {"x": {"$from": "item"}}},
        )
    )
