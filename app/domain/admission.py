"""Admission: which of the executions that are due may begin beside what counts against their limits already."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from app.domain.failures import Category, Failure

SKIPPED = Failure.build(
    "Overlap", "Another execution of its job was under way when it was due (overlap: skip)", Category.UNKNOWN
)
"""Why an execution ends as SKIPPED."""
OVERLAPPED = Failure.build(
    "Overlap", "The next execution of its job was due (overlap: cancel_running)", Category.UNKNOWN
)
"""Why one that runs is asked to stop."""


class Overlap(StrEnum):
    """What happens to an execution that is due while another one of its job is under way."""

    ALLOW = "allow"
    SKIP = "skip"
    """It ends as SKIPPED; one that somebody has asked for by hand waits."""
    QUEUE = "queue"
    """It waits."""
    CANCEL_RUNNING = "cancel_running"
    """The other one is asked to stop; of several that wait the newest runs."""


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A due execution that the claim has locked, and the limits it comes under. Fields as candidates_*.sql returns
    them; null is no limit."""

    execution_id: UUID
    job_id: UUID
    user_id: str
    task_id: str
    due_at: datetime
    trigger: str
    attempt_number: int
    overlap: str
    limited: bool
    concurrency_key: str | None
    concurrency_limit: int | None
    user_max: int | None
    user_rate: float | None
    user_burst: int | None
    task_max: int | None
    task_rate: float | None
    task_burst: int | None
    cpu_cores: float | None
    memory_mb: int | None
    queue_max: int | None
    queue_rate: float | None
    queue_burst: int | None


class Limit(msgspec.Struct, frozen=True):
    """One limit that an execution comes under. What is null is not limited."""

    key: str
    most: int | None = None
    """Executions at once."""
    rate_per_second: float | None = None
    burst: int = 1
    """What may begin at once after a rest."""
    cpu_cores: float = 0.0
    """What it takes of a host."""
    memory_mb: int = 0
    counts: bool = True
    """Whether what runs counts against it: of a mere rate nothing is held."""


class LimitState(msgspec.Struct, frozen=True):
    """What counts against a limit now."""

    holders: int
    cpu_cores: float = 0.0
    memory_mb: int = 0
    holder: UUID | None = None
    """Who it is, if it is one."""
    tokens: float | None = None
    """What its bucket held when it was last counted; null: it was never used, and is full."""
    seconds: float | None = None
    """How long ago that was, at `moment`."""
    moment: datetime | None = None
    """When it was looked at, by the database's clock."""


class Host(msgspec.Struct, frozen=True):
    """The machine, or container, whose cores and memory the workers on it share."""

    name: str
    cpu_cores: float
    memory_mb: int


class Obstacle(StrEnum):
    """Why a limit does not let an execution in."""

    TAKEN = "taken"
    OVER_RATE = "over_rate"
    NO_CORES = "no_cores"
    NO_MEMORY = "no_memory"


class Admitted(msgspec.Struct, frozen=True):
    """An execution that may begin, and the limits it then counts against."""

    execution_id: UUID
    limits: list[Limit]


class Admission(msgspec.Struct):
    """What becomes of candidates. Those that it does not name wait."""

    admitted: list[Admitted] = []
    skipped: list[UUID] = []
    """They end, for another execution of their job is under way."""
    overlapped: list[str] = []
    """Keys of jobs of which what runs is to stop."""
    tokens: dict[str, float] = {}
    """What is left in each bucket that was used."""
    wait_seconds: float | None = None
    """How long until a bucket that was empty has a token again."""
    full: set[str] = set()
    """Keys of the limits that have kept somebody out, or that others are looking at just now."""


def limits_of(candidate: Candidate, queue: str, host: Host) -> Iterator[Limit]:
    """Yield the limits that an execution comes under."""
    if not candidate.limited:
        return
    c = candidate
    if c.overlap != Overlap.ALLOW:
        yield Limit(f"job:{c.job_id}", most=1)
    if c.user_max is not None or c.user_rate is not None:
        yield _limit(f"user:{c.user_id}", c.user_max, c.user_rate, c.user_burst)
    if c.queue_max is not None or c.queue_rate is not None:
        yield _limit(f"queue:{queue}", c.queue_max, c.queue_rate, c.queue_burst)
    if c.concurrency_key is not None:
        yield _limit(f"key:{c.concurrency_key}", c.concurrency_limit or 1, c.task_rate, c.task_burst)
    task_rate = c.task_rate if c.concurrency_key is None else None
    if c.task_max is not None or task_rate is not None:
        yield _limit(f"task:{c.task_id}", c.task_max, task_rate, c.task_burst)
    if c.cpu_cores or c.memory_mb:
        yield Limit(f"host:{host.name}", cpu_cores=c.cpu_cores or 0.0, memory_mb=c.memory_mb or 0)


def obstacles(
    candidate: Candidate, limits: Iterable[Limit], states: Mapping[str, LimitState], host: Host
) -> dict[str, Obstacle]:
    """Return which limits do not let an execution in now, by their keys, and why: what `admit` decides by."""
    room = _Room(states, host)
    found = ((limit.key, room.obstacle(limit, candidate)) for limit in limits)
    return {key: obstacle for key, obstacle in found if obstacle is not None}


def _limit(key: str, most: int | None, rate: float | None, burst: int | None) -> Limit:
    full = burst if burst is not None else max(1, int(rate or 1))
    return Limit(key, most=most, rate_per_second=rate, burst=full, counts=most is not None)


def admit(
    candidates: Sequence[tuple[Candidate, Sequence[Limit]]],
    states: Mapping[str, LimitState],
    host: Host,
    *,
    most: int,
) -> Admission:
    """Decide which candidates begin: up to `most`, in their order, each if every limit of its leaves room.

    `states` has the limits that are locked by whoever asks; what comes under another one waits.
    """
    room = _Room(states, host)
    admission = Admission()
    for candidate, limits in _newest_first_where_it_wins(candidates):
        unknown = {limit.key for limit in limits if limit.key not in states}
        if unknown:
            admission.full |= unknown
            continue
        if limits and limits[0].key.startswith("job:") and room.is_taken(limits[0], candidate):
            _overlap(candidate, limits[0].key, admission)
            admission.full.add(limits[0].key)
        elif len(admission.admitted) < most and room.take(limits, candidate):
            admission.admitted.append(Admitted(candidate.execution_id, list(limits)))
        else:
            admission.full |= {limit.key for limit in limits if room.obstacle(limit, candidate)}
    admission.tokens, admission.wait_seconds = room.used_tokens(), room.wait_seconds
    return admission


def _overlap(candidate: Candidate, key: str, admission: Admission) -> None:
    """Decide about an execution whose job is under way. One that has begun before is never skipped."""
    is_new = candidate.attempt_number == 0 and candidate.trigger == "schedule"
    if candidate.overlap == Overlap.SKIP and is_new:
        admission.skipped.append(candidate.execution_id)
    elif candidate.overlap == Overlap.CANCEL_RUNNING:
        begins = {limit.key for each in admission.admitted for limit in each.limits}
        if key in begins and is_new:  # a newer one has just been let in
            admission.skipped.append(candidate.execution_id)
        elif key not in begins and key not in admission.overlapped:
            admission.overlapped.append(key)


def _newest_first_where_it_wins(
    candidates: Sequence[tuple[Candidate, Sequence[Limit]]],
) -> Iterable[tuple[Candidate, Sequence[Limit]]]:
    """Order by due instant, but let the newest execution of a job stand before those that it makes pointless."""
    winning = [pair for pair in candidates if pair[0].overlap == Overlap.CANCEL_RUNNING]
    if not winning:
        return candidates
    others = [pair for pair in candidates if pair[0].overlap != Overlap.CANCEL_RUNNING]
    return others + sorted(
        winning, key=lambda pair: (pair[0].job_id, pair[0].attempt_number, pair[0].due_at), reverse=True
    )


class _Room:
    """What limits have left while one after the other is let in."""

    def __init__(self, states: Mapping[str, LimitState], host: Host) -> None:
        self._states = states
        self._host = host
        self._holders = {key: state.holders for key, state in states.items()}
        self._cores = {key: state.cpu_cores for key, state in states.items()}
        self._memory = {key: state.memory_mb for key, state in states.items()}
        self._tokens: dict[str, float] = {}
        self.wait_seconds: float | None = None

    def is_taken(self, limit: Limit, candidate: Candidate) -> bool:
        """Tell whether others make up as much as a limit allows."""
        own = self._counts_already(limit, candidate)
        return limit.most is not None and self._holders[limit.key] - own >= limit.most

    def obstacle(self, limit: Limit, candidate: Candidate) -> Obstacle | None:
        """Return why a limit leaves no room for one more; None: it does."""
        if self.is_taken(limit, candidate):
            return Obstacle.TAKEN
        more = not self._counts_already(limit, candidate)
        if limit.cpu_cores and self._cores[limit.key] + more * limit.cpu_cores > self._host.cpu_cores:
            return Obstacle.NO_CORES
        if limit.memory_mb and self._memory[limit.key] + more * limit.memory_mb > self._host.memory_mb:
            return Obstacle.NO_MEMORY
        return None if self._has_token(limit) else Obstacle.OVER_RATE

    def take(self, limits: Sequence[Limit], candidate: Candidate) -> bool:
        """Count one more against each of these limits if each leaves room; tell whether it did."""
        if any(self.obstacle(limit, candidate) for limit in limits):
            return False
        for limit in limits:
            if not self._counts_already(limit, candidate):
                self._holders[limit.key] += 1
                self._cores[limit.key] += limit.cpu_cores
                self._memory[limit.key] += limit.memory_mb
            if limit.rate_per_second is not None:
                self._tokens[limit.key] = self._tokens_of(limit) - 1
        return True

    def used_tokens(self) -> dict[str, float]:
        """Return what is left in the buckets from which something was taken."""
        return self._tokens

    def _counts_already(self, limit: Limit, candidate: Candidate) -> bool:
        """Tell whether what counts is a lease of its own that is over, in whose place the new one steps."""
        return self._states[limit.key].holder == candidate.execution_id

    def _has_token(self, limit: Limit) -> bool:
        if limit.rate_per_second is None:
            return True
        missing = 1 - self._tokens_of(limit)
        if missing > 0:
            seconds = missing / limit.rate_per_second
            self.wait_seconds = min(seconds, self.wait_seconds or seconds)
        return missing <= 0

    def _tokens_of(self, limit: Limit) -> float:
        known = self._tokens.get(limit.key)
        return _tokens(limit, self._states[limit.key]) if known is None else known


def seconds_to_token(limit: Limit, state: LimitState) -> float:
    """Return how long until the bucket of a rate has a token."""
    return max(0.0, 1 - _tokens(limit, state)) / limit.rate_per_second if limit.rate_per_second else 0.0


def _tokens(limit: Limit, state: LimitState) -> float:
    """Return what a bucket holds: it fills at the rate, up to the burst (RFC 2697, one bucket)."""
    if state.tokens is None or state.seconds is None:
        return float(limit.burst)
    return min(float(limit.burst), state.tokens + max(0.0, state.seconds) * (limit.rate_per_second or 0.0))
