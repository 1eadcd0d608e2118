"""Who changed what, and when."""

from sqlalchemy import BigInteger, Column, Index, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from app.db.tables.metadata import metadata, timestamptz

audit_log = Table(
    "audit_log",
    metadata,
    Column("audit_id", BigInteger, primary_key=True),
    Column("at", timestamptz, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target_type", Text, nullable=False),
    Column("target_id", Text, nullable=False),
    Column("before", JSONB),
    Column("after", JSONB),
    Column("reason", Text),
    Column("request_id", Text),
    Column("client", Text, nullable=False),
    Column("session_role", Text, nullable=False),
    Index("audit_log_target", "target_type", "target_id", "audit_id"),
    Index("audit_log_actor", "actor", "audit_id"),
    Index("audit_log_at", "at", postgresql_using="brin"),
)
