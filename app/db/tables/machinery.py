"""What keeps the house running: workers, and the answers kept for idempotent requests."""

from sqlalchemy import Boolean, Column, Index, Integer, LargeBinary, SmallInteger, Table, Text, Uuid, text
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
    Index("workers_alive", "heartbeat_at", postgresql_where=text("stopped_at IS NULL")),
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
