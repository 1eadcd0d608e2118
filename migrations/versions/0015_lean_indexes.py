"""Fewer index entries: what a claim and a settlement need not write."""

from pathlib import Path

from alembic import op

revision = "0015"
down_revision = "0014"

SQL = Path(__file__).parent.parent / "sql" / "0015_lean_indexes.sql"


def upgrade() -> None:
    """Replace indexes, tell batches what they began with, and tune vacuum."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
