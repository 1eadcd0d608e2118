"""Turns schedules into executions ahead of time, so that nobody evaluates expressions to find due work."""

import logging
from collections.abc import Callable
from datetime import timedelta

import msgspec

from app.db.notifier import HintSender
from app.db.stores.schedules import DueJob, ScheduleStore
from app.domain.errors import InvalidInput
from app.domain.planning import Misfire, MisfirePolicy, Plan, plan
from app.domain.schedule import Schedule
from app.domain.stored_schedule import stored_schedule

log = logging.getLogger(__name__)

JOBS_AT_ONCE = 1000
"""Jobs planned in one transaction: it holds their locks, and an edit of one of them waits for it."""
SET_ASIDE = timedelta(minutes=1)


class Materializer:
    """One `tick`: plan the due jobs of each shard. Any number of materializers may run, without a leader."""

    def __init__(self, *, schedules: ScheduleStore, hints: HintSender, horizon_seconds: float) -> None:
        self._schedules = schedules
        self._hints = hints
        self._horizon = timedelta(seconds=horizon_seconds)

    async def tick(self) -> bool:
        """Plan what is due; return whether a shard may have more."""
        planned = [await self._plan_shard(shard) for shard in await self._schedules.shards_to_plan()]
        return JOBS_AT_ONCE in planned

    async def _plan_shard(self, shard: int) -> int:
        result = await self._schedules.plan_due(shard, limit=JOBS_AT_ONCE, plan=self._planner())
        self._hints.announce(result.created)
        return result.jobs

    def plan(self, job: DueJob) -> Plan:
        """Say what is created of one job now."""
        return self._planner()(job)

    def _planner(self) -> Callable[[DueJob], Plan]:
        """Return what says what is created of each job of a transaction; one that cannot be read is left for later.

        Jobs that share their schedule and were planned up to the same instant share the computation: they were made
        together, or planned together the last time.
        """
        shared: dict[tuple[object, ...], Plan] = {}

        def plan_job(job: DueJob) -> Plan:
            key = msgspec.structs.astuple(job)[1:]  # all but whose it is
            try:
                if key not in shared:
                    shared[key] = self._plan(job)
                return shared[key]
            except InvalidInput as error:
                return _set_aside(job, error)

        return plan_job

    def _plan(self, job: DueJob) -> Plan:
        policy = MisfirePolicy(Misfire(job.misfire), job.misfire_grace_seconds)
        return plan(
            _schedule(job),
            policy,
            materialized_until=job.materialized_until,
            now=job.now,
            horizon=self._horizon,
        )


def _schedule(job: DueJob) -> Schedule:
    return stored_schedule(
        schedule_type=job.schedule_type,
        expression=job.expression,
        every_seconds=job.every_seconds,
        timezone=job.timezone,
        gap=job.gap,
        fold=job.fold,
        starts_at=job.starts_at,
        ends_at=job.ends_at,
    )


def _set_aside(job: DueJob, error: InvalidInput) -> Plan:
    """Leave a job that this version cannot read (say, of a zone that its tzdata lacks) for later.

    Its watermark stays, so that nothing is lost; the jobs beside it are not held up.
    """
    log.error(
        "a job's schedule cannot be read",
        extra={"event": "job_set_aside", "job_id": str(job.job_id), "reason": error.detail},
    )
    return Plan([], [], job.materialized_until, job.now + SET_ASIDE)
