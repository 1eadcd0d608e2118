"""Limits: on what runs at once, on what begins each second, and on what a worker can take."""

from pathlib import Path

from alembic import op

revision = "0009"
down_revision = "0008"

SQL = Path(__file__).parent.parent / "sql" / "0009_limits.sql"


def upgrade() -> None:
    """Nothing is limited until somebody says so."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
