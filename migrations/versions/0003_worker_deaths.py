"""Worker deaths: executions that were running when their worker process ended are told from those that failed."""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"

SQL = Path(__file__).parent.parent / "sql" / "0003_worker_deaths.sql"


def upgrade() -> None:
    """Count them from now on: what has been lost before counts as never lost."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
