"""Claims for tests of what a worker does with them, without a database."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from app.domain.claims import Claim
from app.domain.ids import SHARDS

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def claim(queue: str = "general", priority: int = 2, *, since_seconds: float = 0.0) -> Claim:
    """Return a claim of an execution that has been due for so long."""
    due_at = NOW - timedelta(seconds=since_seconds)
    return Claim(
        shard=SHARDS[0],
        execution_id=uuid4(),
        job_id=uuid4(),
        user_id="ada",
        task_id="report",
        task_revision=1,
        queue=queue,
        priority=priority,
        status="RUNNING",
        trigger="schedule",
        scheduled_time=due_at,
        due_at=due_at,
        first_due_at=due_at,
        parameters="{}",
        timeout_seconds=None,
        max_attempts=1,
        attempt_number=1,
        lease_epoch=1,
        claimed_at=NOW,
        lease_expires_at=NOW + timedelta(seconds=30),
        lateness_ms=None,
    )
