"""Why the limits of an execution keep it waiting, in words."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec

from app.domain.admission import (
    Candidate,
    Host,
    Limit,
    LimitState,
    Obstacle,
    limits_of,
    obstacles,
    seconds_to_token,
)
from app.domain.explanation import Reason, ReasonCode, instant_words

_CODES = {
    "user": ReasonCode.USER_QUOTA,
    "queue": ReasonCode.QUEUE_CONCURRENCY,
    "task": ReasonCode.TASK_CONCURRENCY,
    "key": ReasonCode.KEY_CONCURRENCY,
    "job": ReasonCode.OVERLAP,
}
_NAMES = {
    "user": "The user {}",
    "queue": "The queue {}",
    "task": "The task {}",
    "key": "The concurrency key {}",
    "job": "Its job",
}
_LINKS = {
    "user": "/api/v1/users/{}",
    "queue": "/api/v1/queues/{}",
    "task": "/api/v1/tasks/{}",
    "job": "/api/v1/jobs/{}",
}
NO_HOST = Host("", 0.0, 0)


class Holder(NamedTuple):
    """What counts against a limit, and since when."""

    execution_id: UUID
    since: datetime


class Place(NamedTuple):
    """A host on which live workers serve the queue."""

    host: Host
    has_labels: bool
    """Some worker there offers what the task requires."""


class LimitSituation(msgspec.Struct, frozen=True, kw_only=True):
    """An execution that comes under limits, and what counts against these."""

    now: datetime
    candidate: Candidate
    queue: str
    labels: Mapping[str, str]
    """What its task requires of a worker."""
    states: Mapping[str, LimitState]
    holders: Mapping[str, Sequence[Holder]]
    """Some of those that count, by the limit's key."""
    places: Sequence[Place]


def keys_of(candidate: Candidate, queue: str, places: Sequence[Place]) -> list[str]:
    """Return the keys of all limits that an execution may come under."""
    hosts = [place.host for place in places] or [NO_HOST]
    return sorted({limit.key for host in hosts for limit in limits_of(candidate, queue, host)})


def limit_reasons(at: LimitSituation) -> list[Reason]:
    """Return what limits keep an execution waiting."""
    return [*_shared(at), *_somewhere(at)]


def _shared(at: LimitSituation) -> Iterator[Reason]:
    """Yield the limits that hold wherever it might run."""
    limits = [x for x in limits_of(at.candidate, at.queue, NO_HOST) if not x.key.startswith("host:")]
    found = obstacles(at.candidate, limits, at.states, NO_HOST)
    for limit in limits:
        if limit.key in found:
            yield _reason(at, limit, found[limit.key])


def _reason(at: LimitSituation, limit: Limit, obstacle: Obstacle) -> Reason:
    scope, _, name = limit.key.partition(":")
    link = _LINKS[scope].format(name) if scope in _LINKS else None
    subject = _NAMES[scope].format(name)
    if obstacle is Obstacle.OVER_RATE:
        until = at.now + timedelta(seconds=seconds_to_token(limit, at.states[limit.key]))
        detail = (
            f"{subject} may begin {limit.rate_per_second:g} a second: the next one at {instant_words(until)}."
        )
        return Reason(code=ReasonCode.RATE_LIMITED, detail=detail, link=link)
    holders = at.holders.get(limit.key, ())
    count = at.states[limit.key].holders
    named = ", ".join(str(holder.execution_id) for holder in holders)
    more = f" and {count - len(holders):,} more" if count > len(holders) else ""
    detail = f"{subject} has {count} of {limit.most} under way: {named}{more}."
    since = holders[0].since if holders else None
    ids = [holder.execution_id for holder in holders]
    return Reason(code=_CODES[scope], detail=detail, since=since, link=link, holders=ids)


def _somewhere(at: LimitSituation) -> Iterator[Reason]:
    """Yield why none of the hosts takes it, if none does. Without any worker that is said elsewhere."""
    fitting = [place.host for place in at.places if place.has_labels]
    if at.places and not fitting:
        required = ", ".join(f"{name}={value}" for name, value in sorted(at.labels.items()))
        detail = f"No live worker that serves the queue {at.queue} offers {required}."
        yield Reason(code=ReasonCode.NO_WORKER_FOR_LABELS, detail=detail, link="/api/v1/workers")
    elif fitting and all(_is_full(at, host) for host in fitting):
        cores, memory_mb = at.candidate.cpu_cores or 0.0, at.candidate.memory_mb or 0
        detail = f"No host has {cores:g} cores and {memory_mb:,} MiB free, which its task needs."
        yield Reason(code=ReasonCode.NO_CAPACITY, detail=detail, link="/api/v1/workers")


def _is_full(at: LimitSituation, host: Host) -> bool:
    limits = [x for x in limits_of(at.candidate, at.queue, host) if x.key.startswith("host:")]
    return bool(obstacles(at.candidate, limits, at.states, host))
