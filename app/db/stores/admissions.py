"""Claims of executions that come under limits, and of those that a backlog makes take turns."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple, cast
from uuid import UUID

import msgspec

from app.db.pools import ACQUIRE_TIMEOUT_SECONDS, Connection, Pool
from app.db.queries import load
from app.domain.admission import (
    OVERLAPPED,
    SKIPPED,
    Admission,
    Candidate,
    Host,
    LimitState,
    admit,
    limits_of,
)
from app.domain.claims import Claim
from app.domain.hints import Ready

MOST_LANES = 256
"""Lanes that one claim visits; the next one goes on from there."""
FEWEST_LANES = 32
MOST_ALONE = 20
LOCKED_SECONDS = 0.02
"""After so long a limit that somebody else looks at is worth another try."""

LIMIT_STATES = load("limit_states")
_SKIPPED, _OVERLAPPED = (msgspec.json.encode(failure).decode() for failure in (SKIPPED, OVERLAPPED))


class LaneCursor(NamedTuple):
    """The lane that was visited last; empty: the next visit begins at the first one."""

    user_id: str = ""
    lane: str = ""


class LimitedClaims(msgspec.Struct, frozen=True):
    """What a claim beside limits came to."""

    claims: list[Claim]
    cursor: LaneCursor
    """Where the next claim by lane is to go on."""
    wait_seconds: float | None
    """How long until a rate allows more, or somebody else has done with a limit; None: neither is in the way."""
    keys: dict[UUID, list[str]]
    """What limits each claim comes under."""
    full: set[str]
    """Keys of limits that have kept somebody out."""
    looked_at: int
    """Executions that were due and fit this worker, claimed or not."""
    cancelled: list[tuple[UUID, UUID]]
    """Executions that were asked to stop, and their workers."""


class Claimant(msgspec.Struct, frozen=True):
    """Who claims, and what it offers."""

    worker_id: UUID
    host: Host
    labels: str
    """JSON text of an object."""


class AdmissionStore:
    """Claims in one transaction of a few statements: lock candidates; lock their limits; look at what counts against
    these; claim what they allow, and count it.

    Candidates and limits are locked without waiting: what somebody else has locked waits for the next look. While a
    limit is locked nobody else adds to what it counts, so what the look has found still holds at the commit.
    """

    def __init__(self, pool: Pool, claimant: Claimant) -> None:
        self._pool = pool
        self._claimant = claimant

    async def has_other_lanes(self, place: Ready, mark: datetime) -> bool:
        """Tell whether what is ready at a place, with limits and without, lies in more than one lane."""
        found: bool = await self._pool.fetchval(load("has_other_lanes"), *place.line, mark)
        return found

    async def has_other_users(self, place: Ready, mark: datetime) -> bool:
        """Tell whether what is ready at a place, with limits and without, is several users'."""
        found: bool = await self._pool.fetchval(load("has_other_users"), *place.line, mark)
        return found

    async def claim_oldest(
        self, place: Ready, *, limit: int, lease_seconds: float, mark: datetime
    ) -> LimitedClaims:
        """Claim up to `limit` due executions that come under limits, of the oldest."""
        async with self._transaction() as connection:
            rows = await connection.fetch(load("candidates_oldest"), *place.line, limit, *self._offer(), mark)
            found = [Candidate(*row) for row in rows]
            return await self._claim(connection, place, found, limit=limit, lease_seconds=lease_seconds)

    async def claim_by_lane(
        self, place: Ready, after: LaneCursor, *, limit: int, lease_seconds: float, mark: datetime
    ) -> LimitedClaims:
        """Claim up to `limit` due executions with and without limits, some of each lane, from the cursor on."""
        lanes = min(max(limit, FEWEST_LANES), MOST_LANES)
        async with self._transaction() as connection:
            offer = (*place.line, limit, *self._offer())
            rows = await connection.fetch(load("candidates_by_lane"), *offer, mark, *after, lanes)
            found = [Candidate(*row[3:]) for row in rows if row[3] is not None]
            claims = await self._claim(connection, place, found, limit=limit, lease_seconds=lease_seconds)
        visited = rows[0][2] if rows else 0
        if visited < lanes:
            return claims
        return msgspec.structs.replace(claims, cursor=LaneCursor(rows[0][0], rows[0][1]))

    async def suspects(self, queues: Sequence[str], *, limit: int) -> list[Ready]:
        """Return where executions are due that must run alone and may here, in these queues (none: all), the most
        urgent first."""
        rows = await self._pool.fetch(load("suspects"), list(queues), limit, *self._offer())
        return [Ready(*row) for row in rows]

    async def claim_alone(self, place: Ready, *, lease_seconds: float) -> LimitedClaims:
        """Claim one due execution with limits, at most, that must run alone."""
        async with self._transaction() as connection:
            rows = await connection.fetch(load("candidates_alone"), *place.line, MOST_ALONE, *self._offer())
            found = [Candidate(*row) for row in rows]
            return await self._claim(connection, place, found, limit=1, lease_seconds=lease_seconds)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT_SECONDS) as pooled, pooled.transaction():
            yield cast("Connection", pooled)

    def _offer(self) -> tuple[object, ...]:
        """Return what executions may need, as candidates_*.sql take it."""
        return self._claimant.labels, self._claimant.host.cpu_cores, self._claimant.host.memory_mb

    async def _claim(
        self,
        connection: Connection,
        place: Ready,
        candidates: Sequence[Candidate],
        *,
        limit: int,
        lease_seconds: float,
    ) -> LimitedClaims:
        """Claim those candidates that their limits allow."""
        host = self._claimant.host
        pairs = [(each, list(limits_of(each, place.queue, host))) for each in candidates]
        states = await _locked_states(connection, (limit.key for _, limits in pairs for limit in limits))
        admission = admit(pairs, states, host, most=limit)
        claims = await self._take(connection, place.shard, admission, lease_seconds)
        cancelled = await _write_down(connection, place.shard, admission, states)
        wait_seconds = admission.wait_seconds
        if not admission.full <= states.keys():
            wait_seconds = min(wait_seconds or LOCKED_SECONDS, LOCKED_SECONDS)
        keys = {each.execution_id: [limit.key for limit in each.limits] for each in admission.admitted}
        return LimitedClaims(
            claims, LaneCursor(), wait_seconds, keys, admission.full, len(candidates), cancelled
        )

    async def _take(
        self, connection: Connection, shard: int, admission: Admission, lease_seconds: float
    ) -> list[Claim]:
        if not admission.admitted:
            return []
        held = [
            (x.key, a.execution_id, x.cpu_cores, x.memory_mb)
            for a in admission.admitted
            for x in a.limits
            if x.counts
        ]
        columns = [list(column) for column in zip(*held, strict=True)] or [[], [], [], []]
        ids = [each.execution_id for each in admission.admitted]
        rows = await connection.fetch(
            load("claim_admitted"), shard, ids, self._claimant.worker_id, lease_seconds, *columns
        )
        return [Claim(*row) for row in rows]


async def _locked_states(connection: Connection, keys: Iterable[str]) -> dict[str, LimitState]:
    """Lock limits, those that nobody else has; return what counts against each."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    locked = [row[0] for row in await connection.fetch(load("lock_limits"), wanted)]
    rows = await connection.fetch(LIMIT_STATES, locked) if locked else []
    return {row[0]: LimitState(*row[1:]) for row in rows}


async def _write_down(
    connection: Connection, shard: int, admission: Admission, states: Mapping[str, LimitState]
) -> list[tuple[UUID, UUID]]:
    """Write what else an admission says; return what was asked to stop, and where it runs."""
    if admission.tokens:
        keys, tokens = list(admission.tokens.keys()), list(admission.tokens.values())
        await connection.execute(load("fill_buckets"), keys, tokens, states[keys[0]].moment)
    if admission.skipped:
        await connection.execute(load("skip_overlaps"), shard, admission.skipped, _SKIPPED)
    if not admission.overlapped:
        return []
    rows = await connection.fetch(load("cancel_overlapped"), shard, admission.overlapped, _OVERLAPPED)
    return [(row[0], row[1]) for row in rows if row[1] is not None]
