"""Jobs under unique keys: created, or what holds the key instead."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast
from uuid import UUID

import asyncpg
import msgspec

from app.db.actors import act_as
from app.db.pools import ACQUIRE_TIMEOUT_SECONDS, Connection, Pool
from app.db.queries import load
from app.db.reads.jobs import view_of_row
from app.db.stores.answers import remember, write_answer
from app.db.stores.job_control import replace_planned
from app.db.stores.job_quotas import HourlyRoom
from app.db.stores.jobs import (
    Existing,
    JobStore,
    Lane,
    NewBatch,
    Stored,
    Submission,
    forget_requests,
    store_all,
)
from app.db.stores.unique_keys import Holders, hold, key_of, lock_holders
from app.db.transactions import NOT_YET
from app.domain.hints import Ready
from app.domain.ids import shard_of
from app.domain.jobs import NewJob
from app.domain.unique import Fate, Holder, fate_of


class NotAsChecked(Exception):
    """A task has changed since a request was checked, or two requests want one key: each is to be tried alone."""


class UniqueJobStore:
    """Writes jobs of which some have a unique key, and counts those of users who have a quota.

    Locks are taken in one order: Idempotency-Keys, unique keys, jobs and executions that are replaced, counters.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._jobs = JobStore(pool)

    async def known(self, jobs: Sequence[NewJob]) -> set[UUID]:
        """Return which of these jobs are stored."""
        return await self._jobs.known(jobs)

    async def create(self, submissions: Sequence[Submission]) -> Stored:
        """Store submissions in one transaction, as `JobStore.create` does. Raises `RequestUnderway`, `NotAsChecked`.

        A single one that is not as it was checked is not stored.
        """
        async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT_SECONDS) as pooled:
            connection = cast("Connection", pooled)
            try:
                async with connection.transaction():
                    return await _create(connection, submissions)
            except NotAsChecked:
                if len(submissions) > 1:
                    raise
                return Stored({}, set())


class _Decided(NamedTuple):
    """What is done for a submission."""

    submission: Submission
    jobs: list[NewJob]
    """Those to create."""
    replaced: dict[UUID, NewJob]
    """What jobs that hold a key shall be from now on."""
    instead: dict[UUID, tuple[UUID, Fate]]
    """Of each job asked for that is not created, the one that holds the key."""
    known: list[NewJob]
    """Stored before: a commit that nobody had confirmed has come through."""


async def _create(connection: Connection, submissions: Sequence[Submission]) -> Stored:
    kept = [(s.request, NOT_YET) for s in submissions if s.request is not None]
    repeats = await remember(connection, kept)
    wanted = [s for s in submissions if s.request is None or s.request.key_hash not in repeats]
    _require_apart(wanted)
    holders = await lock_holders(connection, [job for s in wanted for job in s.jobs if job.unique_key])
    decided = [_decide(s, holders.by_key) for s in wanted]
    room = await HourlyRoom.locked(connection, decided)
    fitting, refused = room.divide(decided)
    await forget_requests(
        connection, [d.submission for d in decided if not refused.keys().isdisjoint(_ids(d))]
    )
    lanes = await _create_new(connection, fitting, room)
    ready = [one for d in fitting for one in await _replace(connection, d, holders)]
    existing = await _existing(connection, fitting)
    await _answer(connection, fitting, existing)
    return Stored(lanes, repeats, set(), refused, existing, ready)


def _require_apart(submissions: Iterable[Submission]) -> None:
    """Refuse two submissions that want one key: what became of the first would decide about the second."""
    keys = [key for s in submissions for key in {key_of(job) for job in s.jobs} - {None}]
    if len(set(keys)) < len(keys):
        raise NotAsChecked


def _decide(submission: Submission, holders: Mapping[bytes, Holder]) -> _Decided:
    """Go through the jobs of a submission in their order: one may find what another one of it has created."""
    found = _Decided(submission, [], {}, {}, [])
    current = dict(holders)
    places: dict[UUID, int] = {}
    for job in submission.jobs:
        key = key_of(job)
        holder = None if key is None else current.get(key)
        if holder is not None and holder.job_id == job.job_id:
            found.known.append(job)
            continue
        fate = fate_of(job.unique_policy, holder)
        if fate is Fate.CREATED or holder is None:
            places[job.job_id] = len(found.jobs)
            found.jobs.append(job)
            if key is not None:
                current[key] = Holder(job.job_id, holds=True, has_begun=False)
            continue
        found.instead[job.job_id] = (holder.job_id, fate)
        if fate is Fate.REPLACED and (place := places.get(holder.job_id)) is not None:
            found.jobs[place] = _in_place_of(found.jobs[place], job)
        elif fate is Fate.REPLACED:
            found.replaced[holder.job_id] = job
    return found


def _in_place_of(first: NewJob, job: NewJob) -> NewJob:
    """Return what was asked for last, as the job that the same request has created under the key."""
    own = {name: getattr(first, name) for name in ("shard", "job_id", "execution_id", "unique_policy",
                                                   "unique_for_seconds")}  # fmt: skip
    return msgspec.structs.replace(job, **own)


async def _create_new(
    connection: Connection, decided: Sequence[_Decided], room: HourlyRoom
) -> dict[UUID, Lane | None]:
    """Create what is new, count it, and give it its keys. Raises `NotAsChecked`."""
    new = [msgspec.structs.replace(d.submission, jobs=room.marked(d.jobs), request=None, batch=_batch(d))
           for d in decided if d.jobs]  # fmt: skip
    stored = await store_all(connection, new, set())
    jobs = [job for s in new for job in s.jobs]
    if any(job.job_id not in stored.lanes for job in jobs):
        raise NotAsChecked
    await room.count(connection, jobs)
    await hold(connection, jobs)
    return {**stored.lanes, **{job.job_id: None for d in decided for job in d.known}}


def _ids(decided: _Decided) -> set[UUID]:
    return {job.job_id for job in decided.jobs}


def _batch(decided: _Decided) -> NewBatch | None:
    batch = decided.submission.batch
    return batch and msgspec.structs.replace(batch, total=len(decided.jobs))


async def _replace(connection: Connection, decided: _Decided, holders: Holders) -> list[Ready]:
    """Have jobs that hold keys say what was asked for last. Raises `NotAsChecked`."""
    if not decided.replaced:
        return []
    tasks = {job.task_id for job in decided.replaced.values()}
    rows = await connection.fetch(load("task_revisions"), list(tasks))
    revisions = {row["task_id"]: row["revision"] for row in rows}
    if any(revisions.get(job.task_id) != job.task_revision for job in decided.replaced.values()):
        raise NotAsChecked
    await act_as(connection, decided.submission.actor)
    return [
        ready
        for job_id, job in decided.replaced.items()
        for ready in await replace_planned(connection, holders.rows[job_id], job)
    ]


async def _existing(connection: Connection, decided: Sequence[_Decided]) -> dict[UUID, Existing]:
    """Return, by the job asked for, the one that holds its key, as it is now."""
    instead = {asked: one for d in decided for asked, one in d.instead.items()}
    ids = list({job_id for job_id, _ in instead.values()})
    if not ids:
        return {}
    rows = await connection.fetch(load("jobs_with_execution"), list(map(shard_of, ids)), ids)
    found = {row["job_id"]: row for row in rows}
    return {asked: _seen(found[job_id], fate) for asked, (job_id, fate) in instead.items()}


def _seen(row: asyncpg.Record, fate: Fate) -> Existing:
    return Existing(view_of_row(dict(row), now=row["now"]), fate, row["execution_id"])


async def _answer(
    connection: Connection, decided: Iterable[_Decided], existing: Mapping[UUID, Existing]
) -> None:
    for s in (d.submission for d in decided):
        if s.request is not None and s.answer_of is not None:
            await write_answer(connection, s.request, s.answer_of(existing))
