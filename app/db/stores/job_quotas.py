"""What users with a quota may still have created: decided under the lock of their counters, as jobs are stored."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

import msgspec

from app.db.pools import Connection
from app.db.stores.hourly_counts import Hours, count_hours, lock_hours
from app.domain.hourly_quota import Count, QuotaExceeded, UserHour, exceeded
from app.domain.jobs import NewJob


class Asked(Protocol):
    """What one request wants stored: all of it or nothing."""

    @property
    def jobs(self) -> list[NewJob]: ...


A = TypeVar("A", bound=Asked)


class HourlyRoom:
    """Which requests fit into the quotas of this hour, in their order."""

    def __init__(self, hours: Hours) -> None:
        self._now = hours.now
        self._hours = {hour.user_id: hour for hour in hours.counts}
        self._counts = dict(hours.counts)

    @classmethod
    async def locked(cls, connection: Connection, asked: Iterable[Asked]) -> "HourlyRoom":
        """Lock the counters of all users who have a quota. Raises `CounterBusy`."""
        users: set[tuple[str, datetime | None]] = {(user, None) for one in asked for user in _users(one.jobs)}
        return cls(await lock_hours(connection, users))

    def divide(self, asked: Sequence[A]) -> tuple[list[A], dict[UUID, QuotaExceeded]]:
        """Return the requests that fit, and why each of the others does not, by the ids of its jobs."""
        fitting: list[A] = []
        refused: dict[UUID, QuotaExceeded] = {}
        for one in asked:
            refusal = self._take(_users(one.jobs))
            if refusal is None:
                fitting.append(one)
            else:
                refused |= {job.job_id: refusal for job in one.jobs}
        return fitting, refused

    def marked(self, jobs: Iterable[NewJob]) -> list[NewJob]:
        """Mark the jobs that are counted here: only those are stored of a user who has a quota."""
        return [
            msgspec.structs.replace(job, counted=True) if job.user_id in self._hours else job for job in jobs
        ]

    async def count(self, connection: Connection, stored: Iterable[NewJob]) -> None:
        """Count what was stored."""
        users = _users(stored)
        await count_hours(
            connection, Counter({self._hours[u]: n for u, n in users.items() if u in self._hours})
        )

    def _take(self, users: Counter[str]) -> QuotaExceeded | None:
        hours = {self._hours[user]: wanted for user, wanted in users.items() if user in self._hours}
        over = [hour for hour, wanted in hours.items() if wanted > self._counts[hour].room]
        if over:
            return self._refusal(over[0], hours)
        for hour, wanted in hours.items():
            created, quota = self._counts[hour]
            self._counts[hour] = Count(created + wanted, quota)
        return None

    def _refusal(self, over: UserHour, hours: Iterable[UserHour]) -> QuotaExceeded:
        quota, now = self._counts[over].quota, self._now or over.hour
        room = {hour.user_id: self._counts[hour].room for hour in hours}
        return exceeded(over.user_id, quota=quota, hour=over.hour, now=now, room=room)


def _users(jobs: Iterable[NewJob]) -> Counter[str]:
    """Count the executions that jobs bring with them, by their owners; those that recur bring none."""
    return Counter(job.user_id for job in jobs if job.execution_id is not None)
