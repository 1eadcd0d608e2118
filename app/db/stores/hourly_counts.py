"""Counters of what users with a quota create, locked in the transaction that creates it: a rollback gives it back."""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

import asyncpg

from app.db.pools import Connection
from app.db.queries import load
from app.domain.errors import RequestUnderway
from app.domain.hourly_quota import Count, UserHour, exceeded, hour_of

WAIT = "50ms"
"""For a counter that another transaction holds: who needs it longer is tried again, and holds up nobody meanwhile."""


class CounterBusy(RequestUnderway):
    """The counter of the user's quota is held by a transaction that stays open; try again in a moment."""

    code = "database_unavailable"


class Hours(NamedTuple):
    """Counters that are locked. Users who have no quota have none."""

    counts: dict[UserHour, Count]
    now: datetime | None
    """The database's; None where nothing is counted."""


async def lock_hours(connection: Connection, hours: Collection[tuple[str, datetime | None]]) -> Hours:
    """Lock counters of users' hours (None: this one) until the transaction ends. Raises `CounterBusy`."""
    ordered = [*zip(*hours, strict=True)] if hours else [(), ()]
    try:
        rows = await connection.fetch(load("lock_hours"), *map(list, ordered), WAIT)
    except asyncpg.LockNotAvailableError:
        raise CounterBusy from None
    counts = {UserHour(r["user_id"], r["hour"]): Count(r["created"], r["quota"]) for r in rows}
    return Hours(counts, rows[0]["now"] if rows else None)


async def count_hours(connection: Connection, more: Counter[UserHour]) -> None:
    """Count what was created, or, below zero, taken back, in hours that this transaction has locked."""
    changed = [(*hour, number) for hour, number in more.items() if number]
    if changed:
        await connection.execute(load("count_hours"), *map(list, zip(*changed, strict=True)))


async def count_created(connection: Connection, user_id: str) -> None:
    """Count an execution that is created now. Raises `QuotaExceeded`."""
    row = await connection.fetchrow(load("count_created"), user_id)
    if row is not None and row["quota"] is not None:
        raise exceeded(user_id, quota=row["quota"], hour=row["hour"], now=row["asked_at"])


async def give_back(connection: Connection, user_id: str, instants: Iterable[datetime]) -> None:
    """Take planned instants that will not be created off their hours. Raises `CounterBusy`.

    This hour is locked too, in its turn, for what the transaction may create yet.
    """
    taken = Counter(UserHour(user_id, hour_of(instant)) for instant in instants)
    if not taken:
        return
    locked = await lock_hours(connection, [*taken, (user_id, None)])
    await count_hours(connection, Counter({hour: -taken[hour] for hour in taken if hour in locked.counts}))
