"""Quotas by the hour: how many executions of a user were created in it."""

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"

SQL = Path(__file__).parent.parent / "sql" / "0008_hourly_quota.sql"


def upgrade() -> None:
    """Count from now on; of users who have a quota already what is planned counts."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
