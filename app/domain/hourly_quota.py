"""`max_jobs_per_hour`: how many executions a user may have created in a UTC clock hour.

What is asked for counts in the hour in which that happens. Instants of schedules are created ahead of time: each
counts in the hour in which it lies.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec

from app.domain.errors import OnthedotError
from app.domain.planning import SOONEST, PassedOver, Plan
from app.domain.statuses import Disposition

HOUR = timedelta(hours=1)
LEAD = timedelta(seconds=2)
"""An instant that finds no room is judged so long before it comes: until then room may be made, and it is in time."""


class QuotaExceeded(OnthedotError):
    """The user's quota of this hour is used up."""

    code = "quota_exceeded"

    def __init__(
        self,
        detail: str | None = None,
        *,
        retry_after_seconds: int = 3600,
        room: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(detail)
        self.room = room or {}
        """Of each user whom the request would have cost something: how many executions there was room for."""
        self.retry_after_seconds = retry_after_seconds
        """Whole seconds until the next hour begins."""


class UserHour(NamedTuple):
    """An hour of a user who has a quota."""

    user_id: str
    hour: datetime


class Count(NamedTuple):
    """How much of an hour is used."""

    created: int
    quota: int

    @property
    def room(self) -> int:
        """Return how many more may be created."""
        return max(0, self.quota - self.created)


def hour_of(instant: datetime) -> datetime:
    """Return the beginning of the UTC hour in which an instant lies: some zones' hours begin at other minutes."""
    return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def exceeded(
    user_id: str, *, quota: int, hour: datetime, now: datetime, room: Mapping[str, int] | None = None
) -> QuotaExceeded:
    """Return the refusal of what is asked for in an hour whose quota is used up."""
    ends = hour + HOUR
    detail = (
        f"{user_id} may create {quota} executions an hour (job_quotas.max_jobs_per_hour), and this would be more; "
        f"the next hour begins at {_text(ends)}"
    )
    seconds = max(1, -((now - ends) // timedelta(seconds=1)))  # rounded up
    return QuotaExceeded(detail, retry_after_seconds=seconds, room=room)


class Admitted(NamedTuple):
    """Plans as far as quotas allow, and how many instants each hour gets."""

    plans: list[tuple[UUID, Plan]]
    created: Counter[UserHour]


def admit(
    plans: Sequence[tuple[UUID, Plan]],
    *,
    owners: Mapping[UUID, str],
    counts: Mapping[UserHour, Count] | None,
    now: datetime,
) -> Admitted:
    """Cut the plans of users who have a quota (`owners`: whose a job is) to the room there is, the earliest first.

    What finds no room and is about to come is passed over as `deferred_quota`. What comes later stays unplanned and
    is looked at again before it comes, so that room made until then helps. `counts` None: they cannot be known now,
    so nothing is decided.
    """
    created: Counter[UserHour] = Counter()
    kept: dict[UUID, list[datetime]] = defaultdict(list)
    deferred: dict[UUID, list[datetime]] = defaultdict(list)
    cut: dict[UUID, datetime] = {}
    limited = [(instant, job_id) for job_id, p in plans if job_id in owners for instant in p.instants]
    for instant, job_id in sorted(limited):
        if job_id in cut:
            continue
        hour = UserHour(owners[job_id], hour_of(instant))
        if counts is not None and created[hour] < counts[hour].room:
            created[hour] += 1
            kept[job_id].append(instant)
        elif counts is not None and instant <= now + LEAD:
            deferred[job_id].append(instant)
        else:
            cut[job_id] = instant

    def cut_plan(job_id: UUID, p: Plan) -> Plan:
        if job_id not in owners:
            return p
        passed = _deferred(deferred[job_id], owners[job_id], counts or {})
        p = msgspec.structs.replace(p, instants=kept[job_id], passed_over=p.passed_over + passed)
        return p if job_id not in cut else _until(p, cut[job_id], now)

    return Admitted([(job_id, cut_plan(job_id, p)) for job_id, p in plans], created)


def _until(p: Plan, cut: datetime, now: datetime) -> Plan:
    look_again = max(cut - LEAD, now + SOONEST)
    return msgspec.structs.replace(
        p, materialized_until=cut - timedelta.resolution, materialize_at=look_again
    )


def _deferred(
    instants: Iterable[datetime], user_id: str, counts: Mapping[UserHour, Count]
) -> list[PassedOver]:
    """Return instants that found no room as ranges, one an hour."""
    by_hour: dict[datetime, list[datetime]] = defaultdict(list)
    for instant in instants:
        by_hour[hour_of(instant)].append(instant)
    return [
        PassedOver(some[0], some[-1], len(some), Disposition.DEFERRED_QUOTA, _cause(user_id, hour, counts))
        for hour, some in by_hour.items()
    ]


def _cause(user_id: str, hour: datetime, counts: Mapping[UserHour, Count]) -> str:
    quota = counts[UserHour(user_id, hour)].quota
    limit = f"{user_id} may have {quota} executions an hour (max_jobs_per_hour)"
    return f"{limit}; the hour from {_text(hour)} had as many"


def _text(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%MZ}"
