"""Workflows: what their runs are made of, the runs, and the steps of runs."""

from sqlalchemy import Boolean, Column, Double, Index, Integer, SmallInteger, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB

from app.db.tables.metadata import metadata, timestamptz

_UNDER_WAY = text("status = 'RUNNING'")

workflow_definitions = Table(
    "workflow_definitions",
    metadata,
    Column("shard", SmallInteger, primary_key=True),
    Column("workflow_id", Uuid, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("steps", JSONB, nullable=False),
    Column("overlap", Text, nullable=False),
    Column("deadline_seconds", Double),
    Column("created_by", Text, nullable=False),
    Column("created_at", timestamptz, nullable=False),
    postgresql_partition_by="HASH (shard)",
)

workflow_runs = Table(
    "workflow_runs",
    metadata,
    Column("shard", SmallInteger, primary_key=True),
    Column("workflow_run_id", Uuid, primary_key=True),
    Column("workflow_id", Uuid, nullable=False),
    Column("version", Integer, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("scheduled_time", timestamptz, nullable=False),
    Column("parameters", JSONB, nullable=False),
    Column("is_queued", Boolean, nullable=False),
    Column("ends_as", Text),
    Column("cause", Text),
    Column("started_at", timestamptz, nullable=False),
    Column("deadline_at", timestamptz),
    Column("completed_at", timestamptz),
    Index("workflow_runs_workflow", "workflow_id", "started_at", "workflow_run_id"),
    Index("workflow_runs_newest", "started_at", "workflow_run_id"),
    Index("workflow_runs_under_way", "workflow_id", postgresql_where=_UNDER_WAY),
    Index(
        "workflow_runs_deadline",
        "deadline_at",
        postgresql_where=text("status = 'RUNNING' AND deadline_at IS NOT NULL"),
    ),
    Index("workflow_runs_over", "completed_at", postgresql_using="brin"),
    postgresql_partition_by="HASH (shard)",
)

workflow_run_steps = Table(
    "workflow_run_steps",
    metadata,
    Column("shard", SmallInteger, primary_key=True),
    Column("workflow_run_id", Uuid, primary_key=True),
    Column("step", Text(collation="C"), primary_key=True),
    Column("status", Text, nullable=False),
    Column("counts_as", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("instances", Integer, nullable=False),
    Column("cause", Text),
    Column("released_at", timestamptz),
    Column("completed_at", timestamptz),
    Index("workflow_run_steps_running", "workflow_run_id", "step", postgresql_where=_UNDER_WAY),
    postgresql_partition_by="HASH (shard)",
)
