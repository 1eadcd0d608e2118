"""Daily partitions that are old enough to go: taken off without holding up anybody, then dropped."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from app.db.partitions import DAILY
from app.db.pools import Pool

log = logging.getLogger(__name__)

LOCK = 0x6F_74_64_64_72_6F_70
"""Advisory lock of the process that drops: `otddrop` in ASCII."""
LOCK_TIMEOUT = "5s"
"""A partition can be taken off only when the transactions that may still read it have ended."""

_PENDING = """
    SELECT c.relname
      FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
     WHERE i.inhdetachpending AND i.inhparent = $1::text::regclass
"""
_OLD = """
    SELECT relname, relispartition
      FROM pg_class
     WHERE relnamespace = 'onthedot'::regnamespace AND relkind = 'r' AND relname ~ format('^%s_[0-9]{8}$', $1::text)
       AND to_date(right(relname, 8), 'YYYYMMDD')
           < ((now() - make_interval(days => $2::int4)) AT TIME ZONE 'UTC')::date
     ORDER BY relname
"""


async def drop_old_partitions(pool: Pool, *, days: int) -> list[str]:
    """Drop the daily partitions that lie wholly more than `days` days back; return their names.

    One process does it at a time, without a transaction: DETACH CONCURRENTLY allows none. Each step is found and
    completed by the next call, whatever interrupts it: a detach that waited in vain for a reader, too.
    """
    dropped: list[str] = []
    async with pool.acquire() as connection, _reset_afterwards(connection):
        if await connection.fetchval("SELECT pg_try_advisory_lock($1)", LOCK):
            await connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
            for table in DAILY:
                try:
                    await _drop_old(connection, table, days, dropped)
                except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                    extra = {"event": "partition_in_use", "table": table}
                    log.info("an old partition is still being read", extra=extra)
    return dropped


@asynccontextmanager
async def _reset_afterwards(connection: "PoolConnectionProxy[asyncpg.Record]") -> AsyncIterator[None]:
    """Leave neither setting nor lock behind; a connection that is lost has none."""
    try:
        yield
    finally:
        if not connection.is_closed():
            await connection.reset()


async def _drop_old(
    connection: "PoolConnectionProxy[asyncpg.Record]", table: str, days: int, dropped: list[str]
) -> None:
    detach = f"ALTER TABLE onthedot.{table} DETACH PARTITION onthedot."
    for row in await connection.fetch(_PENDING, f"onthedot.{table}"):
        await connection.execute(f"{detach}{row['relname']} FINALIZE")
    for row in await connection.fetch(_OLD, table, days):
        if row["relispartition"]:
            await connection.execute(f"{detach}{row['relname']} CONCURRENTLY")
        await connection.execute(f"DROP TABLE onthedot.{row['relname']}")
        dropped.append(row["relname"])
