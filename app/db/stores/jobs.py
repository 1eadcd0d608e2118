"""Jobs, stored together with the executions of those that run once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple, Self, cast
from uuid import UUID

import asyncpg
import msgspec

from app.db.actors import act_as
from app.db.pools import ACQUIRE_TIMEOUT_SECONDS, Connection, Pool
from app.db.queries import load
from app.db.reads.jobs import JobView
from app.db.stores.answers import forget, recall, remember
from app.db.stores.job_quotas import HourlyRoom
from app.db.stores.workflows.definitions import define
from app.domain.access import Actor
from app.domain.hints import Ready
from app.domain.hourly_quota import QuotaExceeded
from app.domain.idempotency import IdempotentRequest, StoredAnswer
from app.domain.jobs import NewJob
from app.domain.stored_schedule import REPEATING
from app.domain.unique import Fate
from app.domain.workflows.definition import WorkflowBody


class Lane(NamedTuple):
    """Where executions wait for a worker."""

    queue: str
    priority: int
    limited: bool


class NewBatch(msgspec.Struct, frozen=True):
    """Jobs that are created together."""

    batch_id: UUID
    user_id: str
    total: int
    created_at: datetime
    first_execution_id: UUID
    last_execution_id: UUID
    """The least and the greatest id of the executions it begins with: made one after the other, they lie together."""

    @classmethod
    def of(cls, jobs: Sequence[NewJob], *, batch_id: UUID, user_id: str, created_at: datetime) -> Self:
        """Return the batch of these jobs. One of jobs that all recur begins with none: none has its id."""
        ids = [job.execution_id for job in jobs if job.execution_id is not None] or [batch_id]
        return cls(batch_id, user_id, len(jobs), created_at, min(ids), max(ids))


class Existing(msgspec.Struct, frozen=True):
    """A job that holds the unique key of one that was asked for, as it is after that."""

    job: JobView
    fate: Fate
    execution_id: UUID | None


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What one request wants stored: all of it or nothing."""

    jobs: list[NewJob]
    actor: Actor
    """Who asks for it, for the audit log."""
    batch: NewBatch | None = None
    workflow: WorkflowBody | None = None
    """What the one job, a workflow's, does."""
    request: IdempotentRequest | None = None
    answer: StoredAnswer | None = None
    """What a repeat of `request` is answered."""
    answer_of: Callable[[Mapping[UUID, Existing]], StoredAnswer] | None = None
    """The same where it depends on what holds the unique keys of its jobs."""


class Stored(msgspec.Struct, frozen=True):
    """What became of submissions."""

    lanes: Mapping[UUID, Lane | None]
    """Of each job stored, where its executions wait; None where only the storing is known."""
    repeats: set[bytes]
    """Keys that were there already: nothing of their requests was stored."""
    uncounted: set[UUID] = set()
    """Jobs to be counted against a quota by a store that counts: nothing of their requests was stored."""
    refused: Mapping[UUID, QuotaExceeded] = {}
    """Jobs beyond a quota: nothing of their requests was stored."""
    existing: Mapping[UUID, Existing] = {}
    """By jobs asked for that were not created, those that hold their unique keys."""
    ready: list[Ready] = []
    """Where executions wait that were put off or brought forward."""


class JobStore:
    """Writes jobs. One that `counts` stores those of users who have a quota, too; the others go without its locks."""

    def __init__(self, pool: Pool, *, counts: bool = False) -> None:
        self._pool = pool
        self._counts = counts

    async def create(self, submissions: Sequence[Submission]) -> Stored:
        """Store submissions in one transaction. Raises `RequestUnderway` where somebody else holds a key or a quota's
        counter of theirs.

        One with a job whose task has gone, or has changed since the parameters were checked, or whose queue does
        not exist, is left out as a whole.
        """
        async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT_SECONDS) as pooled:
            connection = cast("Connection", pooled)
            if not (self._counts or _needs_transaction(submissions)):
                inserted = await _insert(connection, [s.jobs[0] for s in submissions])
                return Stored(inserted.lanes, set(), inserted.uncounted)
            async with connection.transaction():
                return await _create(connection, submissions, counts=self._counts)

    async def known(self, jobs: Sequence[NewJob]) -> set[UUID]:
        """Return which of these jobs are stored."""
        shards, ids = [job.shard for job in jobs], [job.job_id for job in jobs]
        return {row[0] for row in await self._pool.fetch(load("known_jobs"), shards, ids)}

    async def recall(self, request: IdempotentRequest) -> StoredAnswer | None:
        """Return the answer kept under a request's key. Raises `IdempotencyMismatch` for another request."""
        return await recall(self._pool, request)


def _needs_transaction(submissions: Sequence[Submission]) -> bool:
    """Single jobs without keys that run once are one statement, which is a transaction of its own."""
    return any(
        s.request is not None
        or s.batch is not None
        or s.workflow is not None
        or len(s.jobs) != 1
        or _repeats(s.jobs[0])
        for s in submissions
    )


async def _create(connection: Connection, submissions: Sequence[Submission], *, counts: bool) -> Stored:
    repeats = await _remember(connection, submissions)
    wanted = [s for s in submissions if s.request is None or s.request.key_hash not in repeats]
    if not counts:
        return await store_all(connection, wanted, repeats)
    room = await HourlyRoom.locked(connection, wanted)
    fitting, refused = room.divide(wanted)
    await forget_requests(connection, [s for s in wanted if s.jobs[0].job_id in refused])
    marked = [msgspec.structs.replace(s, jobs=room.marked(s.jobs)) for s in fitting]
    stored = await store_all(connection, marked, repeats)
    await room.count(connection, [job for s in marked for job in s.jobs if job.job_id in stored.lanes])
    return msgspec.structs.replace(stored, refused=refused)


async def store_all(connection: Connection, wanted: Sequence[Submission], repeats: set[bytes]) -> Stored:
    """Store submissions within a transaction; one with a job that cannot be stored is left out as a whole."""
    batches = [s.batch for s in wanted if s.batch is not None]
    if batches:
        columns = [[getattr(b, name) for b in batches] for name in NewBatch.__struct_fields__]
        await connection.execute(load("create_batches"), *columns)
    once = await _insert(connection, [job for s in wanted for job in s.jobs if not _repeats(job)])
    lanes = once.lanes
    for actor, jobs in _repeating(wanted).items():
        await act_as(connection, actor)  # a trigger writes down who created them
        lanes |= (await _insert(connection, jobs)).lanes
    broken = [s for s in wanted if any(job.job_id not in lanes for job in s.jobs)]
    if broken:
        await _take_back(connection, broken, lanes)
    for s in wanted:
        if s.workflow is not None and s.jobs[0].job_id in lanes:
            await define(connection, s.jobs[0].job_id, s.workflow, by=s.jobs[0].user_id)
    return Stored(lanes, repeats, once.uncounted)


async def _remember(connection: Connection, submissions: Sequence[Submission]) -> set[bytes]:
    """Keep the answers; return the keys that were there already."""
    kept = ((s.request, s.answer) for s in submissions if s.request is not None and s.answer is not None)
    return await remember(connection, kept)


class _Inserted(NamedTuple):
    lanes: dict[UUID, Lane | None]
    uncounted: set[UUID]


async def _insert(connection: Connection, jobs: Iterable[NewJob]) -> _Inserted:
    ordered = sorted(jobs, key=attrgetter("shard", "job_id.int"))
    if not ordered:
        return _Inserted({}, set())
    document = msgspec.json.encode(ordered).decode()
    rows: list[asyncpg.Record] = await connection.fetch(load("create_jobs"), document)
    return _Inserted(
        {
            job_id: Lane(*lane) if lane[0] else None
            for job_id, is_uncounted, *lane in rows
            if not is_uncounted
        },
        {row["job_id"] for row in rows if row["is_uncounted"]},
    )


async def _take_back(
    connection: Connection, broken: Sequence[Submission], lanes: dict[UUID, Lane | None]
) -> None:
    """Undo submissions of which some job could not be stored: all of one or nothing."""
    for s in broken:
        ids = [job.job_id for job in s.jobs if job.job_id in lanes]
        for job_id in ids:
            del lanes[job_id]
        await act_as(connection, s.actor)
        await connection.execute(load("discard_jobs"), ids)
    await connection.execute(
        load("discard_batches"), [s.batch.batch_id for s in broken if s.batch is not None]
    )
    await forget_requests(connection, broken)


async def forget_requests(connection: Connection, submissions: Iterable[Submission]) -> None:
    """Take back the keys of requests whose effect did not come about."""
    if requests := [s.request for s in submissions if s.request is not None]:
        await forget(connection, requests)


def _repeats(job: NewJob) -> bool:
    return job.schedule_type in REPEATING


def _repeating(submissions: Iterable[Submission]) -> dict[Actor, list[NewJob]]:
    """Return the repeating jobs by who asks for them."""
    found: dict[Actor, list[NewJob]] = {}
    for s in submissions:
        if jobs := [job for job in s.jobs if _repeats(job)]:
            found.setdefault(s.actor, []).extend(jobs)
    return found
