"""The roles that people grant to their logins may do what they are for, and nothing else."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import asyncpg
import pytest

from app.db.migrate import migrate
from app.db.pools import Connection, Pool, connect
from tests.databases import Databases
from tests.factories import make_execution, make_job, make_task

RELATIONS = """
    SELECT c.oid::regclass::text AS name, privilege
      FROM pg_class AS c
     CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS privilege
     WHERE c.relnamespace IN ('onthedot'::regnamespace, 'audit'::regnamespace) AND c.relkind IN ('r', 'p', 'v', 'S')
       AND CASE WHEN c.relkind = 'S' THEN has_sequence_privilege($1, c.oid, 'USAGE,SELECT,UPDATE')
                ELSE has_table_privilege($1, c.oid, privilege) END
"""
FUNCTIONS = """
    SELECT proname FROM pg_proc
     WHERE pronamespace IN ('onthedot'::regnamespace, 'audit'::regnamespace)
       AND has_function_privilege($1, oid, 'EXECUTE')
"""
SCHEMAS = """
    SELECT name || '.' || lower(privilege)
      FROM unnest('{onthedot,audit}'::text[]) AS name, unnest('{USAGE,CREATE}'::text[]) AS privilege
     WHERE has_schema_privilege($1, name, privilege)
"""
VIEWS = (
    "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'audit'::regnamespace AND relkind = 'v'"
)


@dataclass(kw_only=True)
class Owned:
    """An empty database and its owner, who is no superuser."""

    dsn: str
    name: str
    owner: str
    admin: Connection


@pytest.fixture
async def owned(databases: Databases) -> AsyncIterator[Owned]:
    """Return an empty database of an owner who may create roles, as the embedded server's owner may."""
    name, owner = databases.name("owned"), "roles_test_owner"
    address = f"{databases.host}:{databases.port}"
    admin = await connect(databases.dsn("postgres"), application_name="test")
    await admin.execute(f"CREATE ROLE {owner} LOGIN CREATEROLE PASSWORD 'x'")
    await admin.execute(f'CREATE DATABASE "{name}" OWNER {owner}')
    yield Owned(dsn=f"postgresql://{owner}:x@{address}/{name}", name=name, owner=owner, admin=admin)
    await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await admin.execute(f"DROP ROLE {owner}")
    await admin.close()


async def may(pool: Pool, query: str, role: str) -> set[tuple[str, ...]]:
    """Return what a role may do."""
    return {tuple(row) for row in await pool.fetch(query, role)}


async def test_a_producer_may_enqueue_and_nothing_else(pool: Pool) -> None:
    assert await may(pool, RELATIONS, "onthedot_producer") == set()
    assert await may(pool, FUNCTIONS, "onthedot_producer") == {("enqueue",)}
    assert await may(pool, SCHEMAS, "onthedot_producer") == {("onthedot.usage",)}


async def test_a_producer_enqueues(pool: Pool) -> None:
    await make_task(pool)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL ROLE onthedot_producer")
        await connection.fetchval("SELECT onthedot.enqueue('report', '{}', now(), 'key')")

    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions") == 1


async def test_a_producers_own_tables_and_functions_are_not_taken_for_ours(pool: Pool) -> None:
    await make_task(pool)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("CREATE SCHEMA trap AUTHORIZATION onthedot_producer")
        await connection.execute(
            "SET LOCAL ROLE onthedot_producer; SET LOCAL search_path = trap, pg_catalog, onthedot"
        )
        for name in ("jobs", "executions", "tasks", "users"):
            await connection.execute(f"CREATE TEMP TABLE {name} ()")
        for signature in (
            "clock_timestamp()",
            "now()",
            "gen_random_uuid()",
            "lower(text)",
            "jsonb_typeof(jsonb)",
        ):
            await connection.execute(
                f"CREATE FUNCTION trap.{signature} RETURNS text LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE 'trapped as %', current_user; END $$"
            )
        await connection.fetchval("SELECT enqueue('report', '{}', pg_catalog.now(), 'key')")
        await connection.execute("RESET ROLE; DROP SCHEMA trap CASCADE")

    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions") == 1


async def test_an_auditor_may_read_the_views_and_nothing_else(pool: Pool) -> None:
    views = {row[0] for row in await pool.fetch(VIEWS)}

    assert await may(pool, RELATIONS, "onthedot_auditor") == {(view, "SELECT") for view in views}
    assert await may(pool, FUNCTIONS, "onthedot_auditor") == set()
    assert await may(pool, SCHEMAS, "onthedot_auditor") == {("audit.usage",)}


async def test_an_auditor_reads_every_view(pool: Pool) -> None:
    await make_task(pool)
    await make_execution(pool, job_id=await make_job(pool), status="RUNNING")
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL ROLE onthedot_auditor")
        for view in [row[0] for row in await connection.fetch(VIEWS)]:
            await connection.fetch(f"TABLE {view}")
        assert await connection.fetchval("SELECT count(*) FROM audit.executions") == 1
        assert (
            await connection.fetchval("SELECT count(*) FROM audit.changes WHERE action = 'job.create'") == 1
        )
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("INSERT INTO audit.changes (actor) VALUES ('me')")


async def test_everybody_else_may_do_nothing(pool: Pool) -> None:
    for query in (RELATIONS, FUNCTIONS, SCHEMAS):
        assert await may(pool, query, "pg_checkpoint") == set()  # a role that nobody grants anything to


async def test_nobody_logs_in_as_a_role(pool: Pool) -> None:
    roles = await pool.fetch(
        "SELECT rolname, rolcanlogin, rolsuper, rolcreaterole FROM pg_roles WHERE rolname = ANY ($1::text[])",
        ["onthedot_producer", "onthedot_auditor"],
    )
    assert [tuple(row)[1:] for row in roles] == [(False, False, False)] * 2


async def test_to_ensure_them_twice_changes_nothing(pool: Pool) -> None:
    before = await may(pool, RELATIONS, "onthedot_auditor")
    await pool.execute("SELECT onthedot.ensure_roles()")
    assert await may(pool, RELATIONS, "onthedot_auditor") == before


async def test_who_may_not_create_them_is_told_what_to_do(dsn: str) -> None:
    hints: list[str] = []
    connection = await connect(dsn, application_name="test")
    connection.add_log_listener(lambda _connection, message: hints.append(message.hint))
    await connection.execute(
        "BEGIN; CREATE ROLE roles_test_plain; GRANT USAGE ON SCHEMA onthedot TO roles_test_plain"
    )
    await connection.execute("GRANT EXECUTE ON FUNCTION onthedot.ensure_roles() TO roles_test_plain")
    await connection.execute("ALTER ROLE onthedot_auditor RENAME TO roles_test_auditor")
    await connection.execute("ALTER ROLE onthedot_producer RENAME TO roles_test_producer")
    await connection.execute("SET LOCAL SESSION AUTHORIZATION roles_test_plain")
    await connection.execute("SELECT onthedot.ensure_roles()")
    await connection.execute("ROLLBACK")
    await connection.close()

    assert len(hints) == 2
    assert "CREATE ROLE onthedot_producer NOLOGIN" in hints[0]
    assert "onthedot.ensure_roles()" in hints[1]


async def test_an_owner_who_is_no_superuser_migrates_and_finds_tables_by_their_bare_names(
    owned: Owned,
) -> None:
    await migrate(owned.dsn)

    connection = await connect(owned.dsn, application_name="psql")
    assert await connection.fetchval("SELECT count(*) FROM executions") == 0
    assert await connection.fetchval("SELECT count(*) FROM late_executions") == 0
    assert await connection.fetchval("SELECT has_table_privilege('onthedot_auditor', 'audit.jobs', 'SELECT')")
    await connection.close()


async def test_a_search_path_that_the_owner_has_chosen_stays(owned: Owned) -> None:
    await owned.admin.execute(
        f'ALTER ROLE {owned.owner} IN DATABASE "{owned.name}" SET search_path = pg_catalog, public'
    )
    await migrate(owned.dsn)

    connection = await connect(owned.dsn, application_name="psql")
    assert await connection.fetchval("SHOW search_path") == "pg_catalog, public"
    await connection.close()
