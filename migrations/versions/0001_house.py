"""The house: people, queues, tasks, jobs, executions, history, attempts, logs, workers."""

import tomllib
from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None

SQL = Path(__file__).parent.parent / "sql"
HASH_PARTITIONED = ("jobs", "executions", "ledger_ranges", "idempotency_keys", "effects")
PARTITIONS = 16


def upgrade() -> None:
    """Create everything. There is no downgrade: a migration that loses data is not undone by losing more."""
    for name in ("house", "upkeep", "functions", "audit", "views", "roles"):
        for statement in (SQL / f"0001_{name}.sql").read_text("utf-8").split("\n---\n"):
            op.execute(statement)
    for table in HASH_PARTITIONED:
        _create_hash_partitions(table)
    _comment()


def _create_hash_partitions(table: str) -> None:
    """Create 16 partitions. Queues live and die by vacuum: it starts early and does not pause on them."""
    tuned = table == "executions"
    for i in range(PARTITIONS):
        op.execute(
            f"CREATE TABLE onthedot.{table}_p{i:02} PARTITION OF onthedot.{table}"
            f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {i})"
            + (
                " WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,"
                " autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05)"
                if tuned
                else ""
            )
        )


def _comment() -> None:
    for table, comments in tomllib.loads((SQL / "0001_comments.toml").read_text("utf-8")).items():
        relation = table if "." in table else f"onthedot.{table}"
        for column, comment in comments.items():
            target = f"COLUMN {relation}.{column}" if column else f"TABLE {relation}"
            quoted = comment.replace("'", "''").replace(":", "\\:")
            op.execute(f"COMMENT ON {target} IS '{quoted}'")
