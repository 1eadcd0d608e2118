"""Unique jobs: who asks for what is there already gets that, or has it put off."""

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = "0009"

SQL = Path(__file__).parent.parent / "sql" / "0010_unique_jobs.sql"


def upgrade() -> None:
    """Add the columns and the table of keys; jobs that exist have none."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
