"""References: what stands in the place of `{"$from": …}`."""

from typing import Any

import pytest

from app.domain.workflows.references import Unresolvable, resolved

SOURCES = {"extract": {"rows": [{"id": 7}, {"id": 8}], "none": None}, "parameters": {"day": "Tue"}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"$from": "extract.rows"}, [{"id": 7}, {"id": 8}]),
        ({"$from": "extract.rows.1.id"}, 8),
        ({"$from": "extract.none"}, None),
        ({"$from": "parameters.day"}, "Tue"),
        ({"a": [{"$from": "parameters.day"}, 1], "b": {"c": "d"}}, {"a": ["Tue", 1], "b": {"c": "d"}}),
        ({"$from": "has_not_completed"}, None),
        ({"$from": "has_not_completed.rows.0"}, None),
    ],
)
def test_what_a_reference_leads_to(value: Any, expected: Any) -> None:
    assert resolved(value, SOURCES) == expected


@pytest.mark.parametrize("path", ["extract.columns", "extract.rows.2", "extract.rows.-1", "extract.none.x"])
def test_what_leads_to_nothing_is_named(path: str) -> None:
    with pytest.raises(Unresolvable, match=path):
        resolved({"$from": path}, SOURCES)
