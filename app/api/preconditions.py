"""`ETag` and `If-Match`: nobody overwrites what they have not seen."""

from typing import Annotated

from litestar.params import HeaderParameter

from app.domain.errors import InvalidInput

IfMatch = Annotated[
    str | None, HeaderParameter(name="If-Match", description="The ETag that the change must meet")
]


def etag(version: int) -> str:
    """Return the ETag of a version."""
    return f'"{version}"'


def required_version(if_match: str | None) -> int | None:
    """Return the version that `If-Match` asks for; None where any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput("If-Match: use the ETag of the answer that you read", pointer="/If-Match")
    return int(text)
