"""Limits that are set later: of a user who is new, and keys of a task that other limits had already."""

from pathlib import Path

from alembic import op

revision = "0013"
down_revision = "0012"

SQL = Path(__file__).parent.parent / "sql" / "0013_later_limits.sql"


def upgrade() -> None:
    """Replace the triggers; nothing that is there changes."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
