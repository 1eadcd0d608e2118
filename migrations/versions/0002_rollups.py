"""Rollups: finished executions counted, and an index of those that did not complete."""

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"

SQL = Path(__file__).parent.parent / "sql" / "0002_rollups.sql"


def upgrade() -> None:
    """Create them. What ended before is not counted: rates begin now."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
