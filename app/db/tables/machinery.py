"""What keeps the house running: workers, counts of what ended, answers kept for idempotent requests."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from app.db.tables.metadata import metadata, timestamptz

workers = Table(
    "workers",
    metadata,
    Column("worker_id", Uuid, primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", Text, nullable=False),
    Column("queues", ARRAY(Text), nullable=False),
    Column("labels", JSONB, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("running", Integer, nullable=False),
    Column("draining", Boolean, nullable=False),
    Column("started_at", timestamptz, nullable=False),
    Column("heartbeat_at", timestamptz, nullable=False),
    Column("stopped_at", timestamptz),
    Column("drain_reason", Text),
    Column("suspects_only", Boolean, nullable=False),
    Column("cpu_cores", Double),
    Column("memory_mb", Integer),
    Index("workers_alive", "heartbeat_at", postgresql_where=text("stopped_at IS NULL")),
)

rollups = Table(
    "rollups",
    metadata,
    Column("grain_seconds", Integer, primary_key=True),
    Column("bucket", timestamptz, primary_key=True),
    Column("queue", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("status", Text, primary_key=True),
    Column("executions", BigInteger, nullable=False),
    Column("late", BigInteger, nullable=False),
    Column("lateness_ms_sum", Double, nullable=False),
    Column("lateness_ms_max", Double),
    Column("run_ms_sum", Double, nullable=False),
    Index("rollups_task", "task_id", "grain_seconds", "bucket"),
)

rollup_state = Table(
    "rollup_state",
    metadata,
    Column("only_row", Boolean, primary_key=True),
    Column("rolled_until", timestamptz, nullable=False),
)

zone_rules = Table(
    "zone_rules",
    metadata,
    Column("only_row", Boolean, primary_key=True),
    Column("version", Text, nullable=False),
    Column("applied_at", timestamptz, nullable=False),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("key_hash", LargeBinary, primary_key=True),
    Column("request_hash", LargeBinary, nullable=False),
    Column("status_code", SmallInteger, nullable=False),
    Column("headers", JSONB, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    Column("created_at", timestamptz, nullable=False),
    Index("idempotency_keys_age", "created_at", postgresql_using="brin"),
    postgresql_partition_by="HASH (key_hash)",
)
