"""A parameter_schema as a table of fields."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.schema_outline import MOST_DEPTH, MOST_FIELDS, outline

DEPLOY = {
    "type": "object",
    "required": ["version", "region"],
    "additionalProperties": False,
    "properties": {
        "version": {"type": "string", "pattern": "^[0-9.]+$", "description": "What to roll out"},
        "region": {"enum": ["US-East", "EU-West", None]},
        "percentage": {"type": "integer", "minimum": 0, "maximum": 100, "default": 25},
        "hosts": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
        "window": {"$ref": "#/$defs/window", "description": "When"},
        "note": {"type": ["string", "null"], "maxLength": 20},
        "either": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/window"}, {"type": "integer"}]},
        "fixed": {"const": 7},
        "free": True,
    },
    "$defs": {"window": {"type": "object", "required": ["from"], "properties": {"from": {"format": "time"}}}},
}


def test_each_field_tells_its_type_and_whether_it_must_be_there() -> None:
    found = {field.name: (field.type, field.required) for field in outline(DEPLOY).fields}

    assert found == {
        "version": ("string", True),
        "region": ("any", True),
        "percentage": ("integer", False),
        "hosts": ("array of string", False),
        "window": ("object", False),
        "window.from": ("any", True),
        "note": ("string or null", False),
        "either": ("integer or object", False),
        "fixed": ("any", False),
        "free": ("any", False),
    }


def test_choices_defaults_limits_and_descriptions_are_told() -> None:
    fields = {field.name: field for field in outline(DEPLOY).fields}

    assert fields["region"].choices == ["US-East", "EU-West", None]
    assert fields["fixed"].choices == [7]
    assert fields["version"].choices is None
    assert fields["percentage"].default == 25
    assert fields["version"].default is msgspec.UNSET
    assert fields["percentage"].limits == ["≥ 0", "≤ 100"]
    assert fields["version"].limits == ["matches ^[0-9.]+$"]
    assert fields["hosts"].limits == ["at most 5 items"]
    assert fields["window.from"].limits == ["time"]
    assert (fields["version"].description, fields["window"].description) == ("What to roll out", "When")


@pytest.mark.parametrize(
    ("schema", "others"), [(DEPLOY, False), ({}, True), ({"additionalProperties": {"type": "string"}}, True)]
)
def test_whether_other_parameters_are_accepted(schema: dict[str, Any], others: bool) -> None:  # noqa: FBT001
    assert outline(schema).others is others


def test_definitions_that_contain_themselves_end() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}}
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": tree, "loop": {"$ref": "#/$defs/loop"}}}

    assert [field.name for field in outline(schema).fields] == [
        ".".join(["child"] * depth) for depth in range(1, MOST_DEPTH + 1)
    ]
    assert (
        outline({"properties": {"x": {"$ref": "#/$defs/loop"}}, "$defs": schema["$defs"]}).fields[0].type
        == "any"
    )


def test_a_schema_of_very_many_fields_is_cut() -> None:
    schema = {"properties": {f"p{n}": {} for n in range(MOST_FIELDS + 1)}}

    assert (len(outline(schema).fields), outline(schema).cut) == (MOST_FIELDS, True)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "items",
                    "required",
                    "enum",
                    "anyOf",
                    "$ref",
                    "$defs",
                    "minimum",
                    "default",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(ANYTHING)
def test_nothing_that_stands_there_breaks_it(schema: Any) -> None:
    assert len(outline(schema).fields) <= MOST_FIELDS
