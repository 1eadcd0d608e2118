"""Limits: what counts against them, the buckets of rates, and limits that are new."""

from sqlalchemy import BigInteger, Column, Double, Index, Integer, SmallInteger, Table, Text, Uuid

from app.db.tables.metadata import metadata, timestamptz

limit_holders = Table(
    "limit_holders",
    metadata,
    Column("key", Text(collation="C"), primary_key=True),
    Column("execution_id", Uuid, primary_key=True),
    Column("shard", SmallInteger, nullable=False),
    Column("lease_epoch", BigInteger, nullable=False),
    Column("cpu_cores", Double, nullable=False),
    Column("memory_mb", Integer, nullable=False),
    Column("held_since", timestamptz, nullable=False),
    Index("limit_holders_execution", "execution_id"),
)

rate_buckets = Table(
    "rate_buckets",
    metadata,
    Column("key", Text(collation="C"), primary_key=True),
    Column("tokens", Double, nullable=False),
    Column("refilled_at", timestamptz, nullable=False),
)

new_limits = Table(
    "new_limits",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("set_at", timestamptz, nullable=False),
)
