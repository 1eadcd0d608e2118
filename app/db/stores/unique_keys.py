"""Which jobs hold unique keys: read under the keys' locks, so that nobody else decides by them meanwhile."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from app.db.pools import Connection
from app.db.queries import load
from app.db.stores.hourly_counts import WAIT
from app.domain.errors import RequestUnderway
from app.domain.jobs import NewJob
from app.domain.unique import Holder, UniquePolicy, scope_hash


class KeyBusy(RequestUnderway):
    """A unique_key is held by a request that is still being served; send this one again in a moment."""


class Holders(NamedTuple):
    """Who holds locked keys, and, where somebody wants to replace it, the job's row, locked too."""

    by_key: Mapping[bytes, Holder]
    rows: Mapping[UUID, asyncpg.Record]


class _Key(NamedTuple):
    shard: int
    job_id: UUID
    goes_on: bool | None
    """Until an instant that has not come; None: as long as it is live."""


def key_of(job: NewJob) -> bytes | None:
    """Return what stands for a job's key."""
    return None if job.unique_key is None else scope_hash(job.user_id, job.task_id, job.unique_key)


async def lock_holders(connection: Connection, jobs: Collection[NewJob]) -> Holders:
    """Lock the keys of these jobs, then the jobs that hold them where they may be replaced.

    Raises `KeyBusy` where another transaction has a key for longer than a moment.
    """
    wanted = {key_of(job): job.unique_policy for job in jobs}
    replaced = {key_of(job) for job in jobs if job.unique_policy is UniquePolicy.REPLACE}
    keys = await _lock_keys(connection, [key for key in wanted if key is not None])
    if not keys:
        return Holders({}, {})
    rows, planned = await _lock_replaced(connection, [keys[key] for key in keys if key in replaced])
    known = await connection.fetch(
        load("live_jobs"), [k.shard for k in keys.values()], [k.job_id for k in keys.values()]
    )
    live = {row["job_id"]: row["is_live"] for row in known}
    return Holders(
        {
            key: Holder(
                k.job_id,
                holds=k.job_id in live and (live[k.job_id] if k.goes_on is None else k.goes_on),
                has_begun=k.job_id not in planned,
            )
            for key, k in keys.items()
        },
        rows,
    )


async def hold(connection: Connection, jobs: Iterable[NewJob]) -> None:
    """Give locked keys to the new jobs that were created under them."""
    rows = [(key, job.shard, job.job_id, _until(job)) for job in jobs if (key := key_of(job)) is not None]
    if rows:
        await connection.execute(load("hold_unique_keys"), *map(list, zip(*rows, strict=True)))


def _until(job: NewJob) -> datetime | None:
    seconds = job.unique_for_seconds
    return None if seconds is None else job.created_at + timedelta(seconds=seconds)


async def _lock_keys(connection: Connection, keys: Collection[bytes]) -> dict[bytes, _Key]:
    try:
        rows = await connection.fetch(load("lock_unique_keys"), sorted(set(keys)), WAIT)
    except asyncpg.LockNotAvailableError:
        raise KeyBusy from None
    return {
        r["key_hash"]: _Key(r["shard"], r["job_id"], r["goes_on"] if r["has_end"] else None) for r in rows
    }


async def _lock_replaced(
    connection: Connection, keys: Iterable[_Key]
) -> tuple[dict[UUID, asyncpg.Record], set[UUID]]:
    """Lock jobs and their executions that nobody has begun; return the rows of the former, the ids of the latter.

    Only where something is replaced: a claim passes by what is locked, and who only keeps must not starve it.
    """
    by_shard: dict[int, list[UUID]] = defaultdict(list)
    for key in keys:
        by_shard[key.shard].append(key.job_id)
    rows: dict[UUID, asyncpg.Record] = {}
    planned: set[UUID] = set()
    for shard, ids in sorted(by_shard.items()):
        rows |= {row["job_id"]: row for row in await connection.fetch(load("lock_jobs"), shard, ids)}
    for shard, ids in sorted(by_shard.items()):
        planned |= {row["job_id"] for row in await connection.fetch(load("lock_planned"), shard, ids)}
    return rows, planned
