"""How Alembic runs a migration here: configured in code (`app.db.migrate`), one transaction, short lock waits."""

from alembic import context
from sqlalchemy import Connection, text

from app.db.tables import metadata


def _include(name: str | None, kind: str, _parents: object) -> bool:
    """Look at our schema only; partitions are made by code, not described by the metadata."""
    return kind != "schema" or name == "onthedot"


def run(connection: Connection) -> None:
    """Run the migrations on an open connection.

    A migration that waits for a lock makes every later query wait behind it, so it gives up after 5 s.
    """
    connection.execute(text("SET lock_timeout = '5s'"))
    connection.execute(text("CREATE SCHEMA IF NOT EXISTS onthedot"))
    connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table_schema="onthedot",
        include_schemas=True,
        include_name=_include,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run(context.config.attributes["connection"])
