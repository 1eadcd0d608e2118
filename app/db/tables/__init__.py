"""SQLAlchemy Core tables: what CRUD and lists are written with. The migrations create them; a test compares."""

from app.db.tables.audit import audit_log
from app.db.tables.definitions import (
    batches,
    jobs,
    ledger_ranges,
    queues,
    tasks,
    unique_keys,
    zone_aliases,
)
from app.db.tables.executions import (
    IS_LEASED,
    IS_UNLEASED,
    attempts,
    effects,
    execution_history,
    execution_logs,
    executions,
)
from app.db.tables.limits import limit_holders, new_limits, rate_buckets
from app.db.tables.machinery import idempotency_keys, rollup_state, rollups, workers, zone_rules
from app.db.tables.metadata import metadata
from app.db.tables.people import api_keys, hourly_counts, login_tokens, sessions, users
from app.db.tables.workflows import workflow_definitions, workflow_run_steps, workflow_runs

__all__ = [
    "IS_LEASED",
    "IS_UNLEASED",
    "api_keys",
    "attempts",
    "audit_log",
    "batches",
    "effects",
    "execution_history",
    "execution_logs",
    "executions",
    "hourly_counts",
    "idempotency_keys",
    "jobs",
    "ledger_ranges",
    "limit_holders",
    "login_tokens",
    "metadata",
    "new_limits",
    "queues",
    "rate_buckets",
    "rollup_state",
    "rollups",
    "sessions",
    "tasks",
    "unique_keys",
    "users",
    "workers",
    "workflow_definitions",
    "workflow_run_steps",
    "workflow_runs",
    "zone_aliases",
    "zone_rules",
]
