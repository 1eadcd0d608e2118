"""Request bodies, read strictly: JSON that we can keep exactly, fields of exactly the types they have."""

import re
from collections.abc import Generator
from typing import Any, Generic, NoReturn, TypeVar

import msgspec
from litestar.dto import AbstractDTO, DTOFieldDefinition
from litestar.openapi.spec import Reference, Schema
from litestar.typing import FieldDefinition

from app.domain import strict_json
from app.domain.errors import InvalidBody, InvalidInput

T = TypeVar("T", bound=msgspec.Struct)

_PATH = re.compile(r"^(?P<detail>.*?)(?: - at `(?P<path>\$[^`]*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


class StrictBody(AbstractDTO[T], Generic[T]):
    """Decodes a body as `T`.

    Litestar would convert leniently ("25" for 25), keep the last of two equal keys and pass NaN; this does not.
    """

    def decode_bytes(self, value: bytes) -> T:
        """Return the body as `T`. Raises `InvalidBody` or `InvalidInput` with a pointer."""
        return convert(strict_json.loads(value), self.model_type)

    def decode_builtins(self, value: dict[str, Any]) -> NoReturn:
        """Refuse forms: they reach the API from other people's pages."""
        raise InvalidBody("send the body as JSON, with Content-Type: application/json")

    @classmethod
    def create_for_field_definition(
        cls,
        field_definition: FieldDefinition,
        handler_id: str,
        backend_cls: type[Any] | None = None,
    ) -> None:
        """Need no backend: the model itself is decoded."""

    @classmethod
    def create_openapi_schema(
        cls,
        field_definition: FieldDefinition,
        handler_id: str,
        schema_creator: Any,  # noqa: ANN401 - private to Litestar
    ) -> Reference | Schema:
        """Describe the model itself."""
        schema: Reference | Schema = schema_creator.for_field_definition(field_definition)
        return schema

    @classmethod
    def generate_field_definitions(cls, model_type: type[Any]) -> Generator[DTOFieldDefinition, None, None]:
        """Rename and hide no fields."""
        yield from ()

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        """Treat nothing apart."""
        return False


def convert(value: object, model: type[T]) -> T:
    """Return plain JSON values as `model`. Raises `InvalidInput` with a pointer to what does not fit."""
    try:
        return msgspec.convert(value, model, strict=True)
    except msgspec.ValidationError as error:
        match = _PATH.match(str(error))
        detail, path = (match["detail"], match["path"] or "$") if match else (str(error), "$")
        pointer = _pointer(path)
        raise InvalidInput(f"{pointer or 'the body'}: {detail}", pointer=pointer) from None


def _pointer(path: str) -> str:
    """Turn msgspec's `$.schedule.tags[2]` into the JSON pointer `/schedule/tags/2`."""
    return "".join("/" + (name or index) for name, index in _STEP.findall(path))
