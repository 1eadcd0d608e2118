"""Request bodies, read strictly: JSON that we can keep exactly, fields of exactly the types they have."""

from collections.abc import Generator
from typing import Any, Generic, NoReturn, TypeVar

import msgspec
from litestar.dto import AbstractDTO, DTOFieldDefinition
from litestar.exceptions import ClientException
from litestar.openapi.spec import Reference, Schema
from litestar.typing import FieldDefinition

from app.domain import strict_json
from app.domain.conversion import convert
from app.domain.errors import InvalidBody

T = TypeVar("T", bound=msgspec.Struct)


class StrictBody(AbstractDTO[T], Generic[T]):
    """Decodes a body as `T`.

    Litestar would convert leniently ("25" for 25), keep the last of two equal keys and pass NaN; this does not.
    """

    def decode_bytes(self, value: bytes) -> T:
        """Return the body as `T`. Raises `InvalidBody` or `InvalidInput` with a pointer."""
        _require_json(self.asgi_connection.headers.get("content-type"))
        return convert(strict_json.loads(value), self.model_type)

    def decode_builtins(self, value: dict[str, Any]) -> NoReturn:
        """Refuse what is no JSON."""
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


def _require_json(content_type: str | None) -> None:
    """Refuse a body that says it is something else, such as a form. One that says nothing is taken for JSON."""
    kind = (content_type or "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        detail = f"the body is {kind[:80]!r}; send JSON, with Content-Type: application/json"
        raise ClientException(status_code=415, detail=detail)
