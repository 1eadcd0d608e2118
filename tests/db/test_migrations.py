"""The migrations make the schema that the code describes, whoever starts them, how often, and whatever kills them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta

import asyncpg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import open_engine
from app.db.migrate import _config, migrate
from app.db.partitions import DAILY, INSERTED_ONLY
from app.db.partitions_ahead import DAYS_AHEAD
from app.db.pools import Connection as DirectConnection
from app.db.pools import Pool, connect
from app.db.tables import metadata
from app.domain.ids import uuid7
from app.maintenance.partitions import PartitionKeeper
from tests.databases import Databases
from tests.factories import now_of
from tests.polling import eventually

CATALOG = """
    SELECT c.oid, c.relname, c.relkind, c.relpartbound::text, obj_description(c.oid, 'pg_class'),
           (SELECT array_agg(ARRAY[a.attname, format_type(a.atttypid, a.atttypmod),
                                   col_description(c.oid, a.attnum)] ORDER BY a.attnum)
              FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0),
           (SELECT array_agg(pg_get_constraintdef(k.oid) ORDER BY k.conname)
              FROM pg_constraint AS k WHERE k.conrelid = c.oid)
      FROM pg_class AS c
     WHERE c.relnamespace IN ('onthedot'::regnamespace, 'audit'::regnamespace)
     ORDER BY c.relname
"""


@pytest.fixture
async def empty_dsn(databases: Databases) -> AsyncIterator[str]:
    """Return the DSN of a database in which nothing is."""
    admin = await connect(databases.dsn("postgres"), application_name="test")
    name = databases.name("empty")
    await admin.execute(f'CREATE DATABASE "{name}"')
    yield databases.dsn(name)
    await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await admin.close()


async def test_the_tables_in_code_are_the_migrated_ones(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        assert await connection.run_sync(_differences) == []
        assert await connection.run_sync(_index_differences) == set()


async def test_every_table_view_and_column_says_what_it_means(pool: Pool) -> None:
    silent = await pool.fetch("""
        SELECT c.oid::regclass::text AS relation, a.attname AS column
          FROM pg_class AS c
          JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         WHERE c.relnamespace IN ('onthedot'::regnamespace, 'audit'::regnamespace)
           AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition AND c.relname <> 'alembic_version'
           AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL)
         ORDER BY 1, a.attnum
    """)

    assert [tuple(row) for row in silent] == []


async def test_each_day_of_the_coming_two_weeks_has_its_partitions(pool: Pool, engine: AsyncEngine) -> None:
    await PartitionKeeper(engine).tick()  # the template may have been made before midnight
    today: date = await pool.fetchval("SELECT (now() AT TIME ZONE 'UTC')::date")
    days = [today + timedelta(days=offset) for offset in range(-1, DAYS_AHEAD + 1)]

    for table in DAILY:
        bounds = await pool.fetch(
            "SELECT pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = $1::regclass ORDER BY c.relname",
            f"onthedot.{table}",
        )
        wanted = [
            f"FOR VALUES FROM ('{day} 00:00:00+00') TO ('{day + timedelta(days=1)} 00:00:00+00')"
            for day in days
        ]
        assert [bound[0] for bound in bounds][-len(wanted) :] == wanted


async def test_every_partition_is_tuned_as_its_table_is(pool: Pool) -> None:
    differing = await pool.fetch("""
        SELECT leaf.relid, one.attname
          FROM pg_partition_tree('onthedot.execution_history') AS leaf
          JOIN pg_attribute AS one ON one.attrelid = leaf.relid AND one.attnum > 0
          JOIN pg_attribute AS whole ON whole.attrelid = leaf.parentrelid AND whole.attname = one.attname
         WHERE whole.attstattarget IS DISTINCT FROM one.attstattarget
    """)
    options = await pool.fetch("""
        SELECT DISTINCT regexp_replace(relname, '_p?[0-9]+$', ''), array_to_string(reloptions, ' ')
          FROM pg_class
         WHERE relispartition AND relkind = 'r'
           AND relname ~ '^(jobs|executions|execution_history|attempts|execution_logs)_'
         ORDER BY 1
    """)
    added_only = INSERTED_ONLY.replace(" = ", "=").replace(", ", " ")

    unlimited = await pool.fetch("""
        SELECT attrelid::regclass, attname FROM pg_attribute
         WHERE attrelid IN ('onthedot.jobs'::regclass, 'onthedot.execution_history'::regclass)
           AND attnum > 0 AND NOT attisdropped AND coalesce(attstattarget, -1) NOT BETWEEN 0 AND 10
    """)

    assert differing == []
    assert unlimited == []  # one column is enough for ANALYZE to look at ten times as many rows
    assert [tuple(row) for row in options] == [
        ("attempts", added_only),
        ("execution_history", added_only),
        ("execution_logs", added_only),
        (
            "executions",
            "autovacuum_vacuum_scale_factor=0.02 autovacuum_vacuum_threshold=1000 autovacuum_vacuum_cost_delay=0"
            " autovacuum_analyze_scale_factor=0.05 vacuum_truncate=false",
        ),
        ("jobs", added_only),
    ]


async def test_batches_from_before_find_what_they_began_with(empty_dsn: str) -> None:
    """What they began with has ids between their own and the instant at which they were stored, give or take a
    second: the clock may have been set meanwhile."""
    await _migrate_to(empty_dsn, "0014")
    connection = await connect(empty_dsn, application_name="test")
    await connection.execute(
        "INSERT INTO onthedot.batches (batch_id, user_id, total, created_at) VALUES ($1, 'ada', 2, $2)",
        stored := uuid7(1_700_000_000_000_000),
        datetime.fromtimestamp(1_700_000_002, UTC),
    )
    await migrate(empty_dsn)
    within = (
        "SELECT $1 BETWEEN first_execution_id AND last_execution_id FROM onthedot.batches WHERE batch_id = $2"
    )
    seconds = (-2, -0.5, 0, 2, 2.5, 4)
    found = [
        await connection.fetchval(within, uuid7(1_700_000_000_000_000 + int(1e6 * one)), stored)
        for one in seconds
    ]
    await connection.close()

    assert found == [False, True, True, True, True, False]


async def test_a_process_of_the_version_before_may_still_store_batches(pool: Pool) -> None:
    own = uuid7(int(1e6 * (await now_of(pool)).timestamp()))
    await pool.execute("INSERT INTO onthedot.batches (batch_id, user_id, total) VALUES ($1, 'ada', 1)", own)

    assert await pool.fetchval(
        "SELECT $1 BETWEEN first_execution_id AND last_execution_id FROM onthedot.batches", own
    )


async def test_migrators_that_start_together_make_one_house(empty_dsn: str) -> None:
    await asyncio.gather(*(migrate(empty_dsn) for _ in range(5)))

    first = await _catalog(empty_dsn)
    assert {"executions_p15", "alembic_version"} < {row["relname"] for row in first}

    await migrate(empty_dsn)
    assert await _catalog(empty_dsn) == first


@pytest.mark.parametrize("where", ["jobs", "attempts_{today:%Y%m%d}"])
async def test_a_migration_killed_on_the_way_is_completed_by_the_next(empty_dsn: str, where: str) -> None:
    """It is stopped where it creates a table that another session is about to create too."""
    blocker = await connect(empty_dsn, application_name="blocker")
    killer = await connect(
        empty_dsn, application_name="killer"
    )  # a transaction sees one state of all sessions
    today = await blocker.fetchval("SELECT (now() AT TIME ZONE 'UTC')::date")
    await blocker.execute("CREATE SCHEMA onthedot")
    blocking = blocker.transaction()
    await blocking.start()
    await blocker.execute(f"CREATE TABLE onthedot.{where.format(today=today)} ()")

    killed = asyncio.create_task(migrate(empty_dsn))
    await eventually(lambda: _kill_waiting_migration(killer))
    with pytest.raises(DBAPIError, match="terminating connection"):
        await killed
    await blocking.rollback()
    await blocker.close()
    await killer.close()

    await migrate(empty_dsn)
    rows = await _catalog(empty_dsn)
    daily = [row["relname"] for row in rows if row["relpartbound"] and row["relname"].startswith(DAILY)]
    assert {"jobs", "executions_p15"} < {row["relname"] for row in rows}
    assert len(daily) == len(DAILY) * (DAYS_AHEAD + 2)


async def _migrate_to(dsn: str, revision: str) -> None:
    """Migrate as a version did whose last migration was this one."""

    def run(connection: Connection) -> None:
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

    engine = open_engine(dsn, size=1, application_name="onthedot migrate")
    async with engine.connect() as connection:
        await connection.run_sync(run)
        await connection.commit()
    await engine.dispose()


async def _kill_waiting_migration(connection: DirectConnection) -> bool:
    killed: bool | None = await connection.fetchval(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'onthedot migrate' AND wait_event_type = 'Lock'"
    )
    return bool(killed)


async def _catalog(dsn: str) -> list[asyncpg.Record]:
    connection = await connect(dsn, application_name="test")
    rows = await connection.fetch(CATALOG)
    await connection.close()
    return rows


def _differences(connection: Connection) -> list[object]:
    """Compare by Alembic; comments are not in the metadata, partitions are made by code, and indexes are compared by
    `_index_differences`: Alembic does not read those of expressions."""
    # The role is called like the schema; its tables would be read as those of no schema.
    connection.dialect.default_schema_name = "public"
    partitions = set(connection.scalars(text("SELECT relname FROM pg_class WHERE relispartition")))

    def include(name: str | None, kind: str, _: object) -> bool:
        return name == "onthedot" if kind == "schema" else name not in partitions

    options = {"include_schemas": True, "include_name": include, "version_table_schema": "onthedot"}
    found = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
    passed_over = ("comment", "add_index", "remove_index")
    return [difference for difference in found if not any(what in str(difference) for what in passed_over)]


def _index_differences(connection: Connection) -> set[tuple[str, str]]:
    """Draw the metadata beside the real tables and let PostgreSQL write down both: Alembic skips predicates."""
    connection.execute(text("CREATE SCHEMA drawn"))
    drawing = connection.execution_options(schema_translate_map={"onthedot": "drawn"})
    metadata.create_all(drawing, checkfirst=False)
    return _indexes(connection, "onthedot") ^ _indexes(connection, "drawn")


def _indexes(connection: Connection, schema: str) -> set[tuple[str, str]]:
    rows = connection.execute(
        text("""
            SELECT i.relname, replace(pg_get_indexdef(i.oid), :schema, '')
              FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid JOIN pg_class AS t ON t.oid = x.indrelid
             WHERE t.relnamespace = CAST(:schema AS regnamespace) AND NOT t.relispartition
               AND NOT x.indisprimary AND t.relname <> 'alembic_version'
        """),
        {"schema": schema},
    )
    return {(row[0], row[1]) for row in rows}
