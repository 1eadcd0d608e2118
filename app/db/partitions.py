"""Daily partitions of what grows: made ahead of time, and by whoever finds one missing."""

from collections.abc import Iterator
from datetime import date, timedelta

import asyncpg

from app.db.pools import Pool

DAILY = ("execution_history", "attempts", "execution_logs")
TODAY = "SELECT (now() AT TIME ZONE 'UTC')::date"


INSERTED_ONLY = (
    "autovacuum_vacuum_insert_threshold = 20000, autovacuum_vacuum_insert_scale_factor = 0,"
    " autovacuum_analyze_scale_factor = 0.4"
)
"""Vacuum notes which pages everybody may see, while they are in memory still: by default it waits until the table has
grown by a fifth, and then reads them again and writes each to the log whole. Statistics are about what rows are like,
which changes little from hour to hour."""


LOCK = 0x6F_74_64_70_61_72_74
"""Advisory lock of the makers: `otdpart` in ASCII. Of two that create a table, `IF NOT EXISTS` fails the second."""


async def fetch_making_partitions(
    pool: Pool, query: str, *arguments: object, durable: bool = True
) -> list[asyncpg.Record]:
    """Run a statement that writes into daily tables; where its day has no partition yet, make it and run it again.

    No default partition takes such rows instead: it would have to be scanned whenever a partition is added.
    `durable` False: its commit does not wait for the log to be flushed.
    """
    try:
        return await _fetch(pool, query, arguments, durable=durable)
    except asyncpg.CheckViolationError as error:
        if error.constraint_name:  # a row that finds no partition violates none that has a name
            raise
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        for statement in create_statements(await connection.fetchval(TODAY), days_ahead=1):
            await connection.execute(statement)
    return await _fetch(pool, query, arguments, durable=durable)


async def _fetch(
    pool: Pool, query: str, arguments: tuple[object, ...], *, durable: bool
) -> list[asyncpg.Record]:
    if durable:
        return await pool.fetch(query, *arguments)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL synchronous_commit = off")
        return await connection.fetch(query, *arguments)


def create_statements(today: date, *, days_ahead: int) -> Iterator[str]:
    """Yield the DDL of the partitions of a span of days, e.g. of `execution_history_20260131`.

    Made apart and attached: `PARTITION OF` would wait for every reader of the whole table, a backup for one,
    and every settlement behind it. What ANALYZE is to look at, a partition does not take over by itself.
    """
    for table in DAILY:
        for offset in range(-1, days_ahead + 1):
            day = today + timedelta(days=offset)
            yield _CREATE.format(
                table=table,
                name=f"{table}_{day:%Y%m%d}",
                start=day,
                end=day + timedelta(days=1),
                tuned=INSERTED_ONLY,
            )


_CREATE = """
DO $$
DECLARE
    it record;
BEGIN
    IF to_regclass('onthedot.{name}') IS NULL THEN
        CREATE TABLE onthedot.{name} (LIKE onthedot.{table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH ({tuned});
        FOR it IN SELECT attname, attstattarget FROM pg_attribute
                   WHERE attrelid = 'onthedot.{table}'::regclass AND attnum > 0 AND attstattarget >= 0 LOOP
            EXECUTE format('ALTER TABLE onthedot.{name} ALTER %I SET STATISTICS %s', it.attname, it.attstattarget);
        END LOOP;
        ALTER TABLE onthedot.{table} ATTACH PARTITION onthedot.{name} FOR VALUES FROM ('{start}Z') TO ('{end}Z');
    END IF;
END $$
"""
