"""Taking in jobs, one or a batch: check, plan, store, wake."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from app.db.clock import DatabaseClock
from app.db.notifier import HintSender
from app.db.reads.jobs import JobView
from app.db.stores.jobs import Existing, JobStore, NewBatch, Stored, Submission
from app.domain.access import Principal
from app.domain.errors import Conflict, InvalidInput
from app.domain.hints import Ready
from app.domain.hourly_quota import QuotaExceeded
from app.domain.idempotency import IdempotentRequest, StoredAnswer
from app.domain.ids import uuid7
from app.domain.jobs import JobRequest, NewJob
from app.domain.workflows.definition import WorkflowBody
from app.intake.group_commit import GroupCommit
from app.intake.planner import Item, JobPlanner

TRIES = 3
"""A task may change between the check of the parameters and the insert; then the check is made again."""


class Submitted(NamedTuple):
    """What a request came to; `batch_id` where it was a batch."""

    items: list[Item]
    batch_id: UUID | None

    @property
    def jobs(self) -> list[NewJob]:
        """Return the jobs that were stored."""
        return [item for item in self.items if isinstance(item, NewJob)]

    @property
    def job_ids(self) -> list[UUID]:
        """Return the jobs that were stored or that hold the unique keys of others, in their order."""
        jobs = [item.job if isinstance(item, Existing) else item for item in self.items]
        return [job.job_id for job in jobs if isinstance(job, JobView | NewJob)]

    def require_all(self) -> None:
        """Raise the first refusal, an `InvalidInput`; one of a batch points to its job: `/jobs/17/schedule`."""
        for index, item in enumerate(self.items):
            if isinstance(item, InvalidInput):
                raise item.within(f"/jobs/{index}") if self.batch_id else item

    def resolved(self, existing: Mapping[UUID, Existing]) -> "Submitted":
        """Return the same with what holds the unique keys in the place of jobs that were not created."""
        if not existing:
            return self
        items = [existing.get(item.job_id, item) if isinstance(item, NewJob) else item for item in self.items]
        return Submitted(items, self.batch_id)

    def within_quota(self, over: QuotaExceeded) -> "Submitted":
        """Return the same without the jobs that a quota had no room for, the last ones of each user."""
        room = dict(over.room)

        def fitting(item: Item) -> Item:
            if not isinstance(item, NewJob) or item.execution_id is None or item.user_id not in room:
                return item
            room[item.user_id] -= 1
            return item if room[item.user_id] >= 0 else over

        return Submitted([fitting(item) for item in self.items], self.batch_id)


class Kept(NamedTuple):
    """A request that may come again: its key, and how its answer is written."""

    request: IdempotentRequest
    answer: Callable[[Submitted], StoredAnswer]


class JobIntake:
    """Turns requests into stored jobs. Nothing of a request is stored unless all of it is right."""

    def __init__(
        self,
        *,
        planner: JobPlanner,
        jobs: JobStore,
        commits: GroupCommit,
        counted_commits: GroupCommit,
        unique_commits: GroupCommit,
        hints: HintSender,
        clock: DatabaseClock,
    ) -> None:
        self._planner = planner
        self._jobs = jobs
        self._commits = commits
        self._counted_commits = counted_commits
        self._unique_commits = unique_commits
        self._hints = hints
        self._clock = clock

    async def submit(
        self,
        request: JobRequest,
        *,
        by: Principal,
        kept: Kept | None = None,
        workflow: WorkflowBody | None = None,
    ) -> Submitted | StoredAnswer:
        """Store a job, a workflow's with what its runs are made of; return it, or the answer that a repeat had.

        Raises `InvalidInput`, `Forbidden`, `QuotaExceeded`, `IdempotencyMismatch` and `RequestUnderway`.
        """
        if kept and (answer := await self._jobs.recall(kept.request)):
            return answer
        for attempt in range(TRIES):
            items = await self._planner.plan_all(
                [request], by=by, fresh=attempt > 0, for_workflow=workflow is not None
            )
            wanted = Submitted(items, None)
            wanted.require_all()
            stored = await self._store(wanted, None, kept, by=by, workflow=workflow)
            if stored is not None:
                return stored
        raise Conflict(f"the task {request.task_id} is being changed; try again")

    async def submit_batch(
        self,
        requests: Sequence[JobRequest | InvalidInput],
        *,
        by: Principal,
        partial: bool,
        kept: Kept | None = None,
    ) -> Submitted | StoredAnswer:
        """Store jobs in one transaction: all or none, or, if `partial`, those that are right.

        A request that could not be read stands there as its error.
        Raises what `submit` does, `InvalidInput` with a pointer such as `/jobs/17/schedule` unless `partial`.
        """
        if kept and (answer := await self._jobs.recall(kept.request)):
            return answer
        for attempt in range(TRIES):
            batch_id = uuid7(self._clock.unix_microseconds())
            items = await self._planner.plan_all(requests, by=by, fresh=attempt > 0, batch_id=batch_id)
            wanted = Submitted(items, batch_id)
            if not partial:
                wanted.require_all()
            stored = await self._store_batch(wanted, kept, by=by, partial=partial)
            if stored is not None:
                return stored
        raise Conflict("a task of the batch is being changed; try again")

    async def _store_batch(
        self, wanted: Submitted, kept: Kept | None, *, by: Principal, partial: bool
    ) -> Submitted | StoredAnswer | None:
        """Store a batch as `_store` does; if `partial`, without what a quota has no room for."""
        while wanted.jobs and wanted.batch_id:
            batch = NewBatch.of(
                wanted.jobs, batch_id=wanted.batch_id, user_id=by.user_id, created_at=self._clock.now()
            )
            try:
                return await self._store(wanted, batch, kept, by=by)
            except QuotaExceeded as over:
                if not partial:
                    raise
                wanted = wanted.within_quota(over)
        return wanted

    async def _store(
        self,
        wanted: Submitted,
        batch: NewBatch | None,
        kept: Kept | None,
        *,
        by: Principal,
        workflow: WorkflowBody | None = None,
    ) -> Submitted | StoredAnswer | None:
        """Store what is wanted; None where something it was checked against has changed meanwhile.

        Raises `QuotaExceeded`.
        """
        submission = Submission(
            jobs=wanted.jobs,
            actor=by.actor,
            batch=batch,
            workflow=workflow,
            request=kept.request if kept else None,
            answer=kept.answer(wanted) if kept else None,
            answer_of=(lambda existing: kept.answer(wanted.resolved(existing))) if kept else None,
        )
        unique = any(job.unique_key is not None for job in wanted.jobs)
        stored = await (self._unique_commits if unique else self._commits).submit(submission)
        if any(job.job_id in stored.uncounted for job in wanted.jobs):
            stored = await self._counted_commits.submit(submission)
        if kept and kept.request.key_hash in stored.repeats:
            return await self._jobs.recall(kept.request)
        if over := next((stored.refused[j.job_id] for j in wanted.jobs if j.job_id in stored.refused), None):
            raise over
        if not all(job.job_id in stored.lanes or job.job_id in stored.existing for job in wanted.jobs):
            return None
        self._wake([job for job in wanted.jobs if job.job_id in stored.lanes], stored)
        return wanted.resolved(stored.existing)

    def _wake(self, jobs: Sequence[NewJob], stored: Stored) -> None:
        if any(job.due_at is None for job in jobs):
            self._hints.announce_schedules()
        lanes = [(job, stored.lanes[job.job_id]) for job in jobs]
        self._hints.announce(
            Ready(job.shard, lane.queue, lane.priority, job.due_at, lane.limited)
            for job, lane in lanes
            if lane and job.due_at
        )
        self._hints.announce(stored.ready)
