"""Handlers for trying out, tests and benchmarks."""

import asyncio
import math
from collections.abc import Awaitable, Callable

from app.worker.attempt import Attempt

FAIL_NAME_LIMIT = 100


class InvalidParameter(Exception):
    """A parameter of a builtin handler cannot be used."""

    category = "configuration_error"


async def noop(_attempt: Attempt) -> None:
    """Do nothing."""


async def echo(attempt: Attempt) -> object:
    """Return the parameters."""
    return attempt.context.parameters


async def sleep(attempt: Attempt) -> object:
    """Sleep for `seconds` (default 1)."""
    seconds = _number(attempt, "seconds", default=1.0)
    await asyncio.sleep(seconds)
    return {"slept_seconds": seconds}


async def fail(attempt: Attempt) -> object:
    """Fail with `message` as an error named `type`; only the first `times` attempts where that is given."""
    times = _number(attempt, "times", default=math.inf)
    if attempt.claim.attempt_number > times:
        return {"failed_attempts": attempt.claim.attempt_number - 1}
    name = str(attempt.context.parameters.get("type", "RuntimeError"))[:FAIL_NAME_LIMIT]
    kind = type(name, (RuntimeError,), {}) if name.isidentifier() else RuntimeError
    raise kind(str(attempt.context.parameters.get("message", "builtin:fail was asked to fail")))


def _number(attempt: Attempt, name: str, *, default: float) -> float:
    value = attempt.context.parameters.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise InvalidParameter(f"{name}: use a number that is not negative, not {value!r:.100}")
    return float(value)


BUILTINS: dict[str, Callable[[Attempt], Awaitable[object]]] = {
    "noop": noop,
    "echo": echo,
    "sleep": sleep,
    "fail": fail,
}
