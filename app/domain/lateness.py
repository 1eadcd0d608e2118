"""Which executions are late: they should have begun by what their queue promises, and no limit keeps them waiting."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from app.domain.admission import Candidate, Host, Limit, LimitState, admit, limits_of

ROOMY = Host("", float("inf"), sys.maxsize)
"""Where there are too few cores, or too little memory, what waits for them is late: nobody has limited it."""


def limits_to_look_at(waiting: Sequence[tuple[Candidate, str]]) -> list[str]:
    """Return the keys of what limits executions, given with their queues."""
    return sorted({limit.key for _, limits in _limited(waiting) for limit in limits})


def late_beside_limits(
    waiting: Sequence[tuple[Candidate, str]], states: Mapping[str, LimitState]
) -> list[UUID]:
    """Return those of overdue executions that their limits would let in now, decided as the claim does it.

    Where there is room for two of a thousand, two are late, and the others wait for their limit.
    """
    pairs = list(_limited(waiting))
    return [each.execution_id for each in admit(pairs, states, ROOMY, most=len(pairs)).admitted]


def _limited(waiting: Sequence[tuple[Candidate, str]]) -> Iterator[tuple[Candidate, list[Limit]]]:
    for candidate, queue in waiting:
        yield candidate, list(limits_of(candidate, queue, ROOMY))
