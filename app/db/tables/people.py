"""Users, their keys and their sessions."""

from sqlalchemy import (
    Boolean,
    Column,
    Computed,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.db.tables.metadata import metadata, timestamptz

_USER_IS_LIMITED = "max_concurrent_jobs IS NOT NULL OR rate_per_second IS NOT NULL"

users = Table(
    "users",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("email", Text),
    Column("role", Text, nullable=False),
    Column("notification_preferences", JSONB, nullable=False),
    Column("max_concurrent_jobs", Integer),
    Column("max_jobs_per_hour", Integer),
    Column("rate_per_second", Double),
    Column("rate_burst", Integer),
    Column("limited", Boolean, Computed(_USER_IS_LIMITED, persisted=True), nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", timestamptz, nullable=False),
    Column("updated_at", timestamptz, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", Uuid, primary_key=True),
    Column("user_id", Text, ForeignKey(users.c.user_id, ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("key_hash", LargeBinary, nullable=False, unique=True),
    Column("created_at", timestamptz, nullable=False),
    Column("expires_at", timestamptz),
    Column("last_used_at", timestamptz),
    Index("api_keys_user", "user_id"),
)

hourly_counts = Table(
    "hourly_counts",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("hour", timestamptz, primary_key=True),
    Column("created", Integer, nullable=False),
)

login_tokens = Table(
    "login_tokens",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("user_id", Text, ForeignKey(users.c.user_id, ondelete="CASCADE"), nullable=False),
    Column("expires_at", timestamptz, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("session_hash", LargeBinary, primary_key=True),
    Column("user_id", Text, ForeignKey(users.c.user_id, ondelete="CASCADE"), nullable=False),
    Column("created_at", timestamptz, nullable=False),
    Column("expires_at", timestamptz, nullable=False),
)
