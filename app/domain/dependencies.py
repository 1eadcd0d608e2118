"""Jobs after other jobs: whether an execution may begin, by what has become of those that it waits for."""

from collections import deque
from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from app.domain.failures import Category, Failure
from app.domain.statuses import FINAL, Status


class UpstreamEnd(msgspec.Struct, frozen=True):
    """What has become of the occurrence of a job that belongs to an instant."""

    job_id: UUID
    status: str | None
    """None: there is no such occurrence."""
    execution_id: UUID | None
    disposition: str | None
    is_known: bool
    """No other occurrence that would belong to the instant can come any more."""

    @property
    def is_open(self) -> bool:
        """Tell whether it is to be waited for."""
        return not self.is_known or (self.status is not None and self.status not in FINAL)

    @property
    def has_failed(self) -> bool:
        """Tell whether it ended without having completed."""
        return self.is_known and self.status in FINAL and self.status != Status.COMPLETED

    def words(self) -> str:
        """Return what became of it: "job X FAILED (execution Y)"."""
        where = f"execution {self.execution_id}" if self.execution_id else f"{self.disposition}"
        return f"the job {self.job_id} {self.status} ({where})"


def failure_of(ends: Sequence[UpstreamEnd]) -> Failure | None:
    """Return why an execution never begins; None: nothing is in its way for good."""
    failed = [end for end in ends if end.has_failed]
    if not failed:
        return None
    text = f"It waited for other jobs: {'; '.join(end.words() for end in failed)}"
    return Failure.build("UpstreamFailed", text, Category.UNKNOWN)


def may_begin(ends: Sequence[UpstreamEnd]) -> bool:
    """Tell whether everything that an execution waits for has completed."""
    return not any(end.is_open or end.has_failed for end in ends)


def way_back(
    job_id: UUID, depends_on: Sequence[UUID], edges: Mapping[UUID, Sequence[UUID]]
) -> list[UUID] | None:
    """Return the circle that a job would close by depending on others, in the order of running; None: it closes none.

    `edges`: what each job reachable from those depends on.
    """
    came_from: dict[UUID, UUID] = dict.fromkeys(depends_on, job_id)
    frontier = deque(came_from)
    while frontier and job_id not in came_from:
        here = frontier.popleft()
        for upstream in edges.get(here, ()):
            if upstream not in came_from:
                came_from[upstream] = here
                frontier.append(upstream)
    if job_id not in came_from:
        return None
    way = [job_id, came_from[job_id]]
    while way[-1] != job_id:
        way.append(came_from[way[-1]])
    return way
