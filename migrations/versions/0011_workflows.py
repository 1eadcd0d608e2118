"""Workflows: definitions, runs, and the steps of runs."""

from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"

SQL = Path(__file__).parent.parent / "sql" / "0011_workflows.sql"
HASH_PARTITIONED = ("workflow_definitions", "workflow_runs", "workflow_run_steps")
PARTITIONS = 16


def upgrade() -> None:
    """Add the tables; executions and history stay as they are, but for an index that holds steps only."""
    for statement in SQL.read_text("utf-8").split("\n---\n"):
        op.execute(statement)
    for table in HASH_PARTITIONED:
        for i in range(PARTITIONS):
            op.execute(
                f"CREATE TABLE onthedot.{table}_p{i:02} PARTITION OF onthedot.{table}"
                f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {i})"
            )
    op.execute("SELECT onthedot.ensure_roles()")
