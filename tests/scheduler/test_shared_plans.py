"""Jobs planned in one transaction share what their schedules come to, and nothing else."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from app.db.stores.schedules import DueJob
from app.scheduler.materializer import Materializer

NOW = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
"""Half an hour before Berlin's clocks are put forward."""
due_jobs = st.builds(
    DueJob,
    job_id=st.builds(uuid4),
    schedule_type=st.just("RECURRING"),
    expression=st.sampled_from(["*/20 * * * *", "30 2 * * *", "0 0 30 2 *", "not an expression"]),
    every_seconds=st.none(),
    timezone=st.sampled_from(["Europe/Berlin", "UTC"]),
    gap=st.sampled_from(["skip", "run_after_gap"]),
    fold=st.sampled_from(["first", "both"]),
    starts_at=st.sampled_from([None, NOW]),
    ends_at=st.sampled_from([None, NOW + timedelta(hours=1)]),
    misfire=st.sampled_from(["skip", "run_once", "run_all"]),
    misfire_grace_seconds=st.sampled_from([0.0, 60.0]),
    materialized_until=st.sampled_from([NOW, NOW - timedelta(hours=3)]),
    now=st.just(NOW),
)


@given(st.lists(due_jobs, max_size=40))
def test_what_is_shared_is_what_each_would_come_to_by_itself(jobs: list[DueJob]) -> None:
    materializer = Materializer(schedules=None, hints=None, horizon_seconds=3600)  # type: ignore[arg-type]
    together = materializer._planner()

    assert [together(job) for job in jobs] == [materializer.plan(job) for job in jobs]
