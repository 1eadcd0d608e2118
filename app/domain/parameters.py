"""Parameters of jobs, checked against the JSON Schema of their task."""

from typing import Any, NoReturn

import jsonschema_rs

from app.domain.errors import FieldError, InvalidInput, InvalidParameters

MAX_ERRORS = 20
"""More than this many errors help nobody."""


class InvalidParameterSchema(InvalidInput):
    """The `parameter_schema` is no JSON Schema."""

    code = "invalid_parameter_schema"


class ParameterSchema:
    """A compiled `parameter_schema` (JSON Schema, 2020-12 unless it says otherwise)."""

    def __init__(self, schema: dict[str, Any]) -> None:
        try:
            # format is annotation only, as the standard has it; a $ref that leaves the document is refused.
            self._validator = jsonschema_rs.validator_for(schema, retriever=_refuse_reference)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise InvalidParameterSchema(
                f"parameter_schema is not a valid JSON Schema: {_first_line(error)}",
                pointer="/parameter_schema",
            ) from None

    def check(self, parameters: dict[str, Any]) -> None:
        """Raise `InvalidParameters` with a pointer for each error, at most `MAX_ERRORS` of them."""
        if self._validator.is_valid(parameters):
            return
        errors: list[FieldError] = []
        for error in self._validator.iter_errors(parameters):
            errors.append(FieldError(_pointer(error.instance_path), error.kind.name, error.message[:500]))
            if len(errors) == MAX_ERRORS:
                break
        if errors:
            raise InvalidParameters(
                "The parameters do not satisfy the task's parameter_schema", errors=tuple(errors)
            )


def _refuse_reference(uri: str) -> NoReturn:
    """Keep a schema from making this server fetch an address of somebody's choice."""
    raise ValueError(f"$ref {uri} leaves the schema; put the definition under $defs")


def _pointer(path: list[str | int]) -> str:
    """Write a path as a JSON pointer (RFC 6901)."""
    return "/parameters" + "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300]
