"""References: `{"$from": "extract.rows"}` stands for what the step `extract` has returned under `rows`."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from app.domain.errors import InvalidInput

MARK = "$from"
ITEM_NAMES = frozenset({"item", "index"})
"""What a step with a `map` knows of its own instance."""
RESERVED = ITEM_NAMES | {"parameters"}
NO_RESULT = None
"""What a step refers to that has not completed."""


class Reference(NamedTuple):
    """What a reference names: a step, `parameters`, `item` or `index`, and the way from there into its value."""

    root: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as it is written."""
        return ".".join((self.root, *self.path))


class Unresolvable(Exception):
    """A reference leads to nothing, or to too much."""


def as_reference(value: object) -> Reference | None:
    """Return what a value refers to; None: it is no reference. Raises `InvalidInput`."""
    if not isinstance(value, dict) or MARK not in value:
        return None
    written = value[MARK]
    if len(value) > 1 or not isinstance(written, str) or not all(written.split(".")):
        raise InvalidInput('a reference is an object of this alone: {"$from": "step.field"}')
    root, *path = written.split(".")
    return Reference(root, tuple(path))


def references_in(value: object, place: str = "") -> Iterator[tuple[str, Reference]]:
    """Yield the references in a value, each with the JSON pointer of where it stands. Raises `InvalidInput`."""
    try:
        found = as_reference(value)
    except InvalidInput as error:
        raise error.within(place) from None
    if found is not None:
        yield place, found
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from references_in(inner, f"{place}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from references_in(inner, f"{place}/{index}")


def resolved(value: object, sources: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return a value with what its references lead to in their places. Raises `Unresolvable`."""
    found = as_reference(value)
    if found is not None:
        return _follow(found, sources)
    if isinstance(value, dict):
        return {name: resolved(inner, sources) for name, inner in value.items()}
    if isinstance(value, list):
        return [resolved(inner, sources) for inner in value]
    return value


def _follow(reference: Reference, sources: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    value = sources.get(reference.root, NO_RESULT)
    if reference.root not in sources:
        return NO_RESULT  # it has not completed: there is nothing, however deep one looks
    for depth, name in enumerate(reference.path):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            before = ".".join((reference.root, *reference.path[:depth]))
            raise Unresolvable(f"{reference} leads to nothing: there is no {name} in {before}")
    return value
