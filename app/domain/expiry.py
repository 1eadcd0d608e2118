"""Start deadlines: an execution that has not begun by its own never runs. A retry is no start: it never expires."""

from app.domain.failures import Category, Failure

EXPIRED = Failure.build(
    "Expired", "its first attempt had to begin within expires_after_seconds of its job, by", Category.UNKNOWN
)
"""What it is recorded with; the statement that does so (expire_executions.sql) adds the instant."""
