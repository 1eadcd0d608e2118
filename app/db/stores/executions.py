"""Executions as a worker handles them: found, claimed, armed, renewed, settled, retried, released, reaped."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeVar
from uuid import UUID

import msgspec

from app.db.partitions import fetch_making_partitions
from app.db.pools import Connection, Pool
from app.db.queries import load
from app.domain.claims import Claim, LeaseId
from app.domain.hints import Ready
from app.domain.ids import SHARDS, shard_of
from app.domain.poison import LOST_LEASE, POISONED, is_suspect
from app.domain.snapshots import Snapshot

NO_OUTAGE = datetime.fromtimestamp(0, tz=UTC)


class Settlement(msgspec.Struct, frozen=True):
    """A finished execution, as it goes into the history."""

    claim: Claim
    status: str
    disposition: str
    started_at: datetime
    completed_at: datetime
    lateness_ms: float
    result: str | None = None
    """JSON text."""
    result_truncated: bool = False
    error: str | None = None
    """JSON text of a `Failure`."""


class FailedAttempt(msgspec.Struct, frozen=True):
    """A failed attempt whose execution shall be tried again at `due_at`."""

    claim: Claim
    due_at: datetime
    started_at: datetime
    ended_at: datetime
    lateness_ms: float
    outcome: str
    error: str
    """JSON text of a `Failure`."""
    given_back: int = 0
    """Attempts that the execution gets for this one."""


class Lease(msgspec.Struct, frozen=True):
    """A lease to renew."""

    shard: int
    execution_id: UUID
    lease_epoch: int
    lease_seconds: float
    started_at: datetime | None


class Renewal(NamedTuple):
    """What became of leases: a row that another session has locked is in neither, to be asked for again."""

    prolonged: set[LeaseId]
    lost: set[LeaseId]


class Reaped(NamedTuple):
    """What a reaper did: how many executions it freed or failed, and where freed ones wait for any worker."""

    transitions: int
    ready: list[Ready]


T = TypeVar("T", Settlement, FailedAttempt)
_LOST, _POISONED = (msgspec.json.encode(failure).decode() for failure in (LOST_LEASE, POISONED))


class ExecutionStore:
    """The statements of the hot path. Every write is fenced by `lease_epoch`; what is not returned is not ours."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def peek(
        self, *, lookahead_seconds: float, queues: Sequence[str], marks: Mapping[int, datetime]
    ) -> list[Ready]:
        """Return where work is ready or will be within the look-ahead, of all that is due at the mark of its shard or
        later."""
        shards, instants = list(marks.keys()), list(marks.values())
        rows = await self._pool.fetch(load("peek"), lookahead_seconds, list(queues), shards, instants)
        return [Ready(*row) for row in rows]

    async def snapshot(self) -> Snapshot:
        """Return what statements from now on will see at least."""
        rows = await self._pool.fetch(load("snapshot"))
        return Snapshot(*rows[0])

    async def claim_due(
        self, place: Ready, *, limit: int, worker_id: UUID, lease_seconds: float, mark: datetime
    ) -> list[Claim]:
        """Take up to `limit` executions that are due, at `mark` or later; they are RUNNING from now on."""
        rows = await self._pool.fetch(load("claim_due"), *place.line, limit, worker_id, lease_seconds, mark)
        return [Claim(*row) for row in rows]

    async def claim_ahead(
        self, place: Ready, *, limit: int, worker_id: UUID, lease_seconds: float, lookahead_seconds: float
    ) -> list[Claim]:
        """Lease up to `limit` executions that fall due within the look-ahead; they are SCHEDULED."""
        rows = await self._pool.fetch(
            load("claim_ahead"),
            *place.line,
            limit,
            worker_id,
            lease_seconds,
            lookahead_seconds,
        )
        return [Claim(*row) for row in rows]

    async def claim_suspect(self, place: Ready, *, worker_id: UUID, lease_seconds: float) -> list[Claim]:
        """Take one execution without limits, at most, that must run alone; it is RUNNING from now on."""
        rows = await self._pool.fetch(load("claim_suspect"), *place.line, worker_id, lease_seconds)
        return [Claim(*row) for row in rows]

    async def arm(self, claims: Iterable[Claim]) -> dict[LeaseId, int]:
        """Begin the attempts of SCHEDULED executions; return the attempt numbers of those still ours."""
        armed: dict[LeaseId, int] = {}
        for shard, group in _by_shard(claims):
            ids, epochs = _ids_and_epochs(group)
            rows = await self._pool.fetch(load("arm"), shard, ids, epochs)
            armed.update((LeaseId(row[0], row[1]), row[2]) for row in rows)
        return armed

    async def settle_relaxed(self, settlements: Iterable[Settlement]) -> set[UUID]:
        """Settle without waiting for the log to be flushed: a crash may bring executions back, never lose one."""
        return await self.settle(settlements, durable=False)

    async def settle(self, settlements: Iterable[Settlement], *, durable: bool = True) -> set[UUID]:
        """Move finished executions to the history; return the ids of those that were still ours."""
        kept: set[UUID] = set()
        for shard, group in _grouped(settlements):
            rows = await fetch_making_partitions(
                self._pool, load("settle"), shard, *_settle_columns(group), durable=durable
            )
            kept.update(row[0] for row in rows)
        return kept

    async def retry(self, attempts: Iterable[FailedAttempt], *, worker_id: UUID) -> set[UUID]:
        """Record failed attempts and let their executions wait; return the ids of those that were still ours."""
        kept: set[UUID] = set()
        for shard, group in _grouped(attempts):
            ids, epochs = _ids_and_epochs([a.claim for a in group])
            rows = await fetch_making_partitions(
                self._pool,
                load("retry"),
                shard,
                ids,
                epochs,
                [a.due_at for a in group],
                [a.started_at for a in group],
                [a.ended_at for a in group],
                [a.lateness_ms for a in group],
                [a.outcome for a in group],
                [a.error for a in group],
                [a.given_back for a in group],
                worker_id,
            )
            kept.update(row[0] for row in rows)
        return kept

    async def release(self, claims: Iterable[Claim]) -> set[UUID]:
        """Give back leased executions; return the ids of those that were still ours."""
        kept: set[UUID] = set()
        for shard, group in _by_shard(claims):
            ids, epochs = _ids_and_epochs(group)
            rows = await self._pool.fetch(load("release"), shard, ids, epochs)
            kept.update(row[0] for row in rows)
        return kept

    async def live(self, execution_ids: Sequence[UUID]) -> set[UUID]:
        """Return which of these executions have not ended."""
        shards = [shard_of(execution_id) for execution_id in execution_ids]
        rows = await self._pool.fetch(load("live_executions"), shards, execution_ids)
        return {row[0] for row in rows}

    async def asked_to_stop(self, worker_id: UUID) -> set[UUID]:
        """Return the executions of a worker that somebody has asked to stop."""
        return {row[0] for row in await self._pool.fetch(load("flagged_cancels"), worker_id)}

    async def shards_to_reap(self) -> list[int]:
        """Return the shards in which `reap` has something to do."""
        return [row[0] for row in await self._pool.fetch(load("shards_to_reap"), SHARDS)]

    async def reap(self, shard: int, *, limit: int, outage_until: datetime = NO_OUTAGE) -> Reaped:
        """Free executions of one shard whose lease has lapsed, up to `limit` of each kind.

        Leases that ended up to `outage_until` could not be renewed: they count as nobody's death.
        """
        ahead = await self._pool.fetch(load("reap_scheduled"), shard, limit)
        again = await fetch_making_partitions(
            self._pool, load("reap_running"), shard, limit, _LOST, outage_until
        )
        ended = await fetch_making_partitions(
            self._pool, load("reap_poison"), shard, limit, _POISONED, outage_until
        )
        cancelled = await fetch_making_partitions(self._pool, load("reap_cancelled"), shard, limit)
        for_all = [row for row in again if not is_suspect(row["worker_deaths"])]
        ready = [
            Ready(shard, row["queue"], row["priority"], row["due_at"], row["limited"])
            for row in (*ahead, *for_all)
        ]
        return Reaped(len(ahead) + len(again) + len(ended) + len(cancelled), ready)


async def settle_on(connection: Connection, settlement: Settlement) -> bool:
    """Settle one execution within a transaction; return whether it was still ours."""
    rows = await connection.fetch(load("settle"), settlement.claim.shard, *_settle_columns([settlement]))
    return bool(rows)


async def renew(connection: Connection, leases: Iterable[Lease]) -> Renewal:
    """Prolong leases; return which are, and which are ours no longer: locked is neither renewed nor lost."""
    prolonged: set[LeaseId] = set()
    lost: set[LeaseId] = set()
    for shard, group in groupby(sorted(leases, key=attrgetter("shard")), key=attrgetter("shard")):
        held = list(group)
        ids, epochs = [x.execution_id for x in held], [x.lease_epoch for x in held]
        rows = await connection.fetch(
            load("renew"), shard, ids, epochs, [x.lease_seconds for x in held], [x.started_at for x in held]
        )
        renewed = {LeaseId(*row) for row in rows}
        prolonged |= renewed
        missing = set(map(LeaseId, ids, epochs)) - renewed
        if missing:
            still = await connection.fetch(load("held_leases"), shard, ids, epochs)
            lost |= missing - {LeaseId(*row) for row in still}
    return Renewal(prolonged, lost)


def _by_shard(claims: Iterable[Claim]) -> list[tuple[int, list[Claim]]]:
    ordered = sorted(claims, key=attrgetter("shard", "execution_id"))
    return [(shard, list(group)) for shard, group in groupby(ordered, key=attrgetter("shard"))]


def _grouped(items: Iterable[T]) -> list[tuple[int, list[T]]]:
    """Return items by shard, in the order of their ids: rows are locked in one order, whoever ends them."""
    ordered = sorted(items, key=attrgetter("claim.shard", "claim.execution_id"))
    return [(key, list(group)) for key, group in groupby(ordered, key=attrgetter("claim.shard"))]


def _settle_columns(group: Sequence[Settlement]) -> list[Sequence[object]]:
    names = Settlement.__struct_fields__[1:]
    return [
        *_ids_and_epochs([s.claim for s in group]),
        *([getattr(s, name) for s in group] for name in names),
    ]


def _ids_and_epochs(claims: Sequence[Claim]) -> tuple[list[UUID], list[int]]:
    return [claim.execution_id for claim in claims], [claim.lease_epoch for claim in claims]
