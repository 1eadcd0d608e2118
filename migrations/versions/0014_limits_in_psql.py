"""Limits as psql shows them: what waits for one is neither stuck nor late."""

from pathlib import Path

from alembic import op

revision = "0014"
down_revision = "0013"

SQL = Path(__file__).parent.parent / "sql" / "0014_limits_in_psql.sql"


def upgrade() -> None:
    """Replace two views."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
