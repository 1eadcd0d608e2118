"""Jobs after other jobs: what depends on others waits for them."""

from pathlib import Path

from alembic import op

revision = "0012"
down_revision = "0011"

SQL = Path(__file__).parent.parent / "sql" / "0012_dependencies.sql"


def upgrade() -> None:
    """Add the column; jobs that exist depend on none."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
