"""The way that an execution has taken, step by step: what lies behind it is lit, what can still come is not."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

import msgspec

from app.db.reads.attempts import AttemptView
from app.db.reads.execution_log import made_at
from app.db.reads.execution_story import ExecutionStory
from app.domain.statuses import LIVE, Status
from app.ui.words import lateness

EARLIER_SHOWN = 3
"""Attempts before the last one that have steps of their own; the table has all."""
Stage = Literal["done", "failed", "next"]

_PLANNED = {"manual": "Asked for", "retry": "Asked for again"}
_OUTCOMES = {"failed": "failed", "timeout": "timed out", "lost": "was lost", "interrupted": "was interrupted"}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step: its word, when, and how long after the one before."""

    word: str
    stage: Stage
    at: datetime | None = None
    note: str = ""
    is_here: bool = False
    """How far it has come."""
    gap: str = ""
    """`+12 ms`: what lies between it and the next one."""


def path_of(story: ExecutionStory, now: datetime) -> list[Step]:
    """Return the steps, in the order in which they were taken."""
    execution = story.execution
    again = bool(_before_the_last(story))
    planned = Step(
        word=_PLANNED.get(execution.trigger, "Planned"), stage="done", at=made_at(execution.execution_id)
    )
    first = [planned, Step(word="Due", stage="done", at=story.setting.first_due_at)]
    lease = [*_due(story, now, again=again), *_claimed(story)]
    # An instant may have passed before it was planned, and a worker may lease it before it is due.
    beginning = (
        [*_by_time(first), *_earlier(story), *_by_time(lease)] if again else _by_time([planned, *lease])
    )
    steps = [*beginning, *_run(story)]
    if execution.status in LIVE:
        here = max(i for i, step in enumerate(steps) if step.stage in {"done", "failed"})
        steps[here] = msgspec.structs.replace(steps[here], is_here=True)
    return _with_gaps(steps)


def given_back(story: ExecutionStory) -> int:
    """Return how often it was leased and did not begin: given back by a worker, or taken back by a change.

    A lease raises the epoch when it begins and when it ends. Of what no attempt accounts for, two make a lease.
    """
    execution = story.execution
    holds = execution.status in {Status.RUNNING, Status.SCHEDULED} or execution.completed_at is not None
    accounted = 2 * len(_before_the_last(story)) + (1 if holds and execution.claimed_at is not None else 0)
    return max(execution.lease_epoch - accounted, 0) // 2


def _earlier(story: ExecutionStory) -> Iterator[Step]:
    """Yield a step for each attempt that another one followed, or will follow."""
    earlier = _before_the_last(story)
    hidden = max(len(earlier) - EARLIER_SHOWN, 0)
    if hidden:
        word = f"{hidden} more attempt{'s' if hidden > 1 else ''}"
        yield Step(word=word, stage="failed", at=earlier[hidden - 1].ended_at)
    for attempt in earlier[hidden:]:
        word = f"Attempt {attempt.attempt_number} {_OUTCOMES.get(attempt.outcome or '', 'ended')}"
        stage: Stage = "done" if attempt.outcome == "interrupted" else "failed"
        yield Step(word=word, stage=stage, at=attempt.ended_at, note=_ran(attempt))


def _due(story: ExecutionStory, now: datetime, *, again: bool) -> Iterator[Step]:
    execution = story.execution
    at = execution.due_at if again else story.setting.first_due_at
    reached = at <= (execution.completed_at or now)
    if reached or execution.completed_at is None:
        yield Step(word="Due again" if again else "Due", stage="done" if reached else "next", at=at)


def _claimed(story: ExecutionStory) -> Iterator[Step]:
    execution = story.execution
    if execution.claimed_at is not None:
        ahead = execution.claimed_at < execution.due_at
        yield Step(word="Claimed ahead" if ahead else "Claimed", stage="done", at=execution.claimed_at)
    elif execution.completed_at is None:
        yield Step(word="Claimed", stage="next")


def _by_time(steps: Sequence[Step]) -> list[Step]:
    """Return steps in the order in which they were taken; those that come stay where they are, at the end."""
    taken = [
        (step.at, i, step) for i, step in enumerate(steps) if step.stage == "done" and step.at is not None
    ]
    return [step for *_, step in sorted(taken)] + [step for step in steps if step.stage == "next"]


def _run(story: ExecutionStory) -> Iterator[Step]:
    execution, last = story.execution, _last_attempt(story)
    began = last.started_at if last else None
    ended = execution.completed_at
    if began is not None:
        yield Step(word="Started", stage="done", at=began)
    elif ended is None:
        yield Step(word="Started", stage="next")
    if ended is None:
        yield Step(word="Ended", stage="next")
    else:
        stage: Stage = "failed" if execution.status is Status.FAILED else "done"
        yield Step(word=execution.status.capitalize(), stage=stage, at=ended)


def _last_attempt(story: ExecutionStory) -> AttemptView | None:
    """Return the attempt that runs, or that ended it; None: it waits for one, or waited for one when it ended."""
    last = story.attempts[-1] if story.attempts else None
    if last is None or last.ended_at is None:
        return last
    return last if last.ended_at == story.execution.completed_at else None


def _before_the_last(story: ExecutionStory) -> list[AttemptView]:
    return story.attempts[: len(story.attempts) - (_last_attempt(story) is not None)]


def _ran(attempt: AttemptView) -> str:
    if attempt.started_at is None or attempt.ended_at is None:
        return ""
    return f"ran {lateness((attempt.ended_at - attempt.started_at) / timedelta(milliseconds=1))}"


def _with_gaps(steps: Sequence[Step]) -> list[Step]:
    """Say between any two steps how long it took."""
    found = []
    for step, following in pairwise(steps):
        gap = ""
        if step.at is not None and following.at is not None and following.stage != "next":
            gap = f"+{lateness(max((following.at - step.at) / timedelta(milliseconds=1), 0))}"
        found.append(msgspec.structs.replace(step, gap=gap))
    return [*found, *steps[-1:]]
