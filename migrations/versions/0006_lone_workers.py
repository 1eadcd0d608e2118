"""Lone workers: processes for executions that must run alone are told apart."""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"

SQL = Path(__file__).parent.parent / "sql" / "0006_lone_workers.sql"


def upgrade() -> None:
    """Add the column; workers that run are none of them."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
