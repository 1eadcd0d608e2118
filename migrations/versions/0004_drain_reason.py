"""Drain reason: a worker that stops claiming by itself says why."""

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"

SQL = Path(__file__).parent.parent / "sql" / "0004_drain_reason.sql"


def upgrade() -> None:
    """Add the column; workers that run say nothing."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
