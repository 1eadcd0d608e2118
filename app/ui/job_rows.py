"""Jobs as pages show them: what each is doing, and how its last runs went."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from app.db.reads.job_runs import JobRunReads, LiveRuns, Run
from app.db.reads.jobs import JobReads, JobView
from app.domain.statuses import Status
from app.domain.stored_schedule import REPEATING

SHOWN_RUNS = 30
"""In a list's strip."""


class JobStatus(NamedTuple):
    """What a job is doing: the name of its mark, and the word beside it."""

    mark: str
    word: str


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """A job with its last runs, the newest first, and what of it runs and waits."""

    job: JobView
    runs: Sequence[Run]
    live: LiveRuns

    @property
    def name(self) -> str:
        """Return what the job is called; without a name it goes by its task."""
        return self.job.name or self.job.task_id

    @property
    def repeats(self) -> bool:
        """Tell whether it runs more than once by its schedule."""
        return self.job.schedule.type in REPEATING

    @cached_property
    def ended(self) -> list[Run]:
        """Return the runs that came to an end by themselves: what was cancelled or skipped tells nothing."""
        return [run for run in self.runs if run.status in {Status.COMPLETED, Status.FAILED}]

    @cached_property
    def completed(self) -> list[Run]:
        """Return the runs that completed."""
        return [run for run in self.runs if run.status is Status.COMPLETED]

    @property
    def success(self) -> float | None:
        """Return the share of the ended runs that completed; None without any."""
        return len(self.completed) / len(self.ended) if self.ended else None

    @property
    def last_started(self) -> Run | None:
        """Return the newest run that has begun."""
        return next((run for run in self.runs if run.started_at), None)

    @property
    def is_failing(self) -> bool:
        """Tell whether the newest run that ended by itself failed."""
        return bool(self.ended) and self.ended[0].status is Status.FAILED

    @property
    def status(self) -> JobStatus:
        """Return what it is doing. That a repeating job fails matters more than that it runs again right now."""
        if not self.job.is_active:
            return JobStatus("paused", "Paused")
        if self.repeats and self.is_failing:
            return JobStatus("failed", "Failing")
        if self.live.running:
            return JobStatus("running", "Running")
        if self.live.retrying:
            return JobStatus("retrying", "Retrying")
        if self.live.waiting or self.job.next_occurrences:
            return JobStatus("pending", "Waiting")
        return self._over

    @property
    def _over(self) -> JobStatus:
        """Return how it is with a job that has nothing before it."""
        if self.repeats:
            return JobStatus("stopped", "Ended")
        if not self.runs:
            return JobStatus("stopped", "Over")
        last = self.runs[0].status
        return JobStatus(last.lower(), last.capitalize())


class JobTable:
    """Reads jobs with what pages show beside them."""

    def __init__(self, jobs: JobReads, runs: JobRunReads) -> None:
        self._jobs = jobs
        self._runs = runs

    async def get(self, job_id: UUID, *, now: datetime, runs: int) -> JobRow:
        """Return a job with its last `runs`. Raises `NotFound`."""
        return (await self._beside([await self._jobs.get(job_id, now=now)], runs))[job_id]

    async def some(self, job_ids: Collection[UUID], *, now: datetime) -> list[JobRow]:
        """Return those of these jobs that exist, in the order of their ids here."""
        if not job_ids:
            return []
        found = await self._beside(await self._jobs.some(job_ids, now=now), SHOWN_RUNS)
        return [found[job_id] for job_id in job_ids if job_id in found]

    async def _beside(self, jobs: Sequence[JobView], count: int) -> Mapping[UUID, JobRow]:
        ids = [job.job_id for job in jobs]
        runs, live = await self._runs.recent(ids, count=count), await self._runs.live(ids)
        return {
            job.job_id: JobRow(job=job, runs=runs[job.job_id], live=live.get(job.job_id, LiveRuns()))
            for job in jobs
        }
