"""The version of the rules of time zones that planned executions follow."""

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"

SQL = Path(__file__).parent.parent / "sql" / "0005_zone_rules.sql"


def upgrade() -> None:
    """Make room for it; maintenance writes it down at its first look."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
