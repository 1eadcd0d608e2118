"""What is measured of a history, beside what is right or wrong about it."""

from bisect import bisect_left

import msgspec

from tests.chaos.history import History
from tests.chaos.journals import Asked, Fault

WINDOW_SECONDS = 1.0
BEFORE_SECONDS = 4.0
SHARE = 0.9


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """How the API answered."""

    total: int
    broken: int
    """500."""
    unavailable: int
    """503."""
    unavailable_without_retry_after: int
    none: int
    """No answer: the connection broke, or patience was out."""
    slowest_seconds: float


class Return(msgspec.Struct, frozen=True, kw_only=True):
    """How it came back after a fault: seconds until the first start, and until 90 % of the rate before it."""

    kind: str
    first_start: float | None
    full_rate: float | None


def answers(asked: list[Asked]) -> Answers:
    """Sum up what producers were told."""
    invoked: dict[int, float] = {}
    took, said = [0.0], []
    for step in asked:
        if step.phase == "invoke":
            invoked[step.operation] = step.at
        else:
            said.append(step)
            took.append(step.at - invoked.get(step.operation, step.at))
    unavailable = [step for step in said if step.status == 503]
    return Answers(
        total=len(said),
        broken=sum(step.status == 500 for step in said),
        unavailable=len(unavailable),
        unavailable_without_retry_after=sum(not step.retry_after for step in unavailable),
        none=sum(step.status is None for step in said),
        slowest_seconds=max(took),
    )


def returns(history: History) -> list[Return]:
    """Measure each fault: those after it must have left it time to be measured."""
    starts = sorted(run.start.at for runs in history.runs.values() for run in runs)
    return [_return(starts, fault) for fault in history.faults]


def _return(starts: list[float], fault: Fault) -> Return:
    rate = _count(starts, fault.began - BEFORE_SECONDS, fault.began) / BEFORE_SECONDS
    after = starts[bisect_left(starts, fault.ended) :]
    full = next(
        (at for at in after if _count(starts, at - WINDOW_SECONDS, at) >= SHARE * rate * WINDOW_SECONDS), None
    )
    return Return(
        kind=fault.kind,
        first_start=after[0] - fault.ended if after else None,
        full_rate=max(0.0, full - fault.ended) if full is not None else None,
    )


def _count(starts: list[float], since: float, until: float) -> int:
    return bisect_left(starts, until) - bisect_left(starts, since)


def most(values: list[float | None]) -> float | None:
    """Return the largest of what was measured."""
    return max((value for value in values if value is not None), default=None)
