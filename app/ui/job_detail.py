"""One job as its page shows it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.db.reads.audit import AuditReads, ChangeView
from app.db.reads.job_policy import DEFAULT_DELAY_MS, JobPolicy, JobPolicyReads
from app.domain.timezones import Zone, resolve
from app.ui.job_rows import JobRow, JobTable
from app.ui.job_words import Rule, Sample, policy_rules, sample_of

MEASURED_RUNS = 100
LOOKED_FOR_PAUSE = 200
"""Newest changes among which the pause of a paused job is looked for: who runs it by hand leaves some, too."""


@dataclass(frozen=True, kw_only=True)
class JobDetail:
    """A job, what holds for it, and by which change it was paused."""

    row: JobRow
    policy: JobPolicy | None
    pause: ChangeView | None

    @property
    def zone(self) -> Zone:
        """Return the zone of its schedule."""
        return resolve(self.row.job.schedule.timezone)

    @property
    def rules(self) -> list[Rule]:
        """Return its policy in words."""
        return policy_rules(self.row.job, self.policy)

    @property
    def sample(self) -> Sample:
        """Return how its last runs went."""
        late_ms = self.policy.max_delay_ms if self.policy else DEFAULT_DELAY_MS
        return sample_of(self.row.runs, max_delay_ms=late_ms)


class JobDetails:
    """Reads what the page of a job shows on each of its tabs."""

    def __init__(self, table: JobTable, policies: JobPolicyReads, audit: AuditReads) -> None:
        self._table = table
        self._policies = policies
        self._audit = audit

    async def get(self, job_id: UUID, *, now: datetime) -> JobDetail:
        """Return a job. Raises `NotFound`."""
        row = await self._table.get(job_id, now=now, runs=MEASURED_RUNS)
        pause = None if row.job.is_active else await self._pause(job_id)
        return JobDetail(row=row, policy=await self._policies.get(job_id), pause=pause)

    async def _pause(self, job_id: UUID) -> ChangeView | None:
        """Return the change by which a job was paused last."""
        changes = await self._audit.of("job", str(job_id), limit=LOOKED_FOR_PAUSE)
        return next((one for one in changes if one.after and one.after.get("is_active") is False), None)
