"""How Alembic runs a migration here: configured in code (`app.db.migrate`), one transaction, short lock waits."""

import re

from alembic import context
from sqlalchemy import Connection, text

from app.db.tables import metadata

PARTITION = re.compile(r"_(p\d\d|\d{8})$")


def _include(name: str | None, kind: str, _parents: object) -> bool:
    """Look at our schema only; partitions are made by code, not described by the metadata."""
    if kind == "schema":
        return name == "onthedot"
    return kind != "table" or PARTITION.search(name or "") is None


def run(connection: Connection) -> None:
    """Run the migrations on an open connection.

    A migration that waits for a lock makes every later query wait behind it, so it gives up after 5 s.
    """
    connection.execute(text("SET lock_timeout = '5s'"))
    # The role may be called like the schema; its tables would then be read as those of no schema.
    connection.dialect.default_schema_name = "public"
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
