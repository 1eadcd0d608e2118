"""Start deadlines: what has not begun in time never runs."""

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"

SQL = Path(__file__).parent.parent / "sql" / "0007_expiry.sql"


def upgrade() -> None:
    """Add them; what waits already has none."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
