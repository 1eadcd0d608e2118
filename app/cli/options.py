"""Options that commands share, and how they become the body of a request."""

from collections.abc import Callable, Sequence
from typing import IO, TypeVar

import click
import msgspec

from app.client.rest import Document

Function = TypeVar("Function", bound=Callable[..., None])

limit_option = click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(1), help="Most to show"
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask")
if_version_option = click.option(
    "--if-version", type=int, metavar="N", help="Change it only if it still is of this version"
)
reason_option = click.option("--reason", help="Why; others will read it")
until_option = click.option("--until", metavar="TIME", help="RFC 3339 or Unix seconds; without it: for good")


def body_options(function: Function) -> Function:
    """Add `-f FILE` and `--set NAME=VALUE`; `body_of` puts them together."""
    for option in (
        click.option(
            "--set",
            "assignments",
            multiple=True,
            metavar="NAME=VALUE",
            help="Set a field of the API's body; the value is JSON or else text: resource_requirements.max_retries=5",
        ),
        click.option("-f", "--file", type=click.File("rb"), help="Body as JSON; - reads stdin"),
    ):
        function = option(function)
    return function


def body_of(file: IO[bytes] | None, assignments: Sequence[str], **fields: object) -> Document:
    """Return a body: the file's, with the fields that were given (not None), with what was set one by one.

    `a__b` is the field `b` of the field `a`.
    """
    body = json_object(file) if file else {}
    for name, value in fields.items():
        if value is not None:
            _put(body, name.replace("__", "."), value)
    for name, value in map(assignment, assignments):
        _put(body, name, value)
    return body


def patch_of(file: IO[bytes] | None, assignments: Sequence[str], **fields: object) -> Document:
    """Return the body of a change, which must change something; for `fields` see `body_of`."""
    body = body_of(file, assignments, **fields)
    if not body:
        raise click.UsageError("say what to change: by an option, --set NAME=VALUE, or -f FILE")
    return body


def json_object(file: IO[bytes]) -> Document:
    """Read a file that holds a JSON object."""
    try:
        return msgspec.json.decode(file.read(), type=Document)
    except msgspec.DecodeError as error:
        raise click.UsageError(f"{file.name} holds no JSON object: {error}") from None


def assignment(text: str) -> tuple[str, object]:
    """Take `name=value` apart. The value is what it means as JSON; what is no JSON is text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.UsageError(f"{text!r} is not NAME=VALUE")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value


def _put(body: Document, name: str, value: object) -> None:
    *path, last = name.split(".")
    for step in path:
        inner = body.setdefault(step, {})
        if not isinstance(inner, dict):
            raise click.UsageError(f"{name}: {step} is not an object")
        body = inner
    body[last] = value
