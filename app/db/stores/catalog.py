"""Tasks and queues as workers need them: few, read often, cached under their version."""

from collections.abc import Iterable

import msgspec

from app.db.pools import Pool
from app.domain.claims import Claim, QueueToServe, TaskToRun
from app.domain.failure_rules import FailureRule
from app.domain.retry import Backoff, RetryPolicy

DEFAULT_MAX_DELAY_MS = 2000
"""Lateness objective of a queue that names none."""

_TASKS = """SELECT task_id, revision, execution_handler, timeout_seconds, retry_policy, retry_delay_seconds,
                   retry_max_delay_seconds, parameter_schema, failure_rules, memory_mb
              FROM onthedot.tasks WHERE task_id = ANY ($1::text[])"""
_QUEUES = """SELECT queue, max_delay_ms, lease_seconds, batch_size, durability, priority, reserved_slots,
                    interruptible, paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > now()) AS paused,
                    EXISTS (SELECT FROM onthedot.jobs WHERE depends_on <> '{}') AS jobs_depend
               FROM onthedot.queues"""


class Catalog:
    """The newest definition of every task seen, and all queues.

    A claim carries the revision its task has at that moment; an older one in the cache is read anew.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._tasks: dict[str, TaskToRun] = {}
        self.queues: dict[str, QueueToServe] = {}
        self.jobs_depend = False
        """Whether there are jobs that depend on others."""

    async def refresh_queues(self) -> None:
        """Read all queues."""
        rows = await self._pool.fetch(_QUEUES)
        self.jobs_depend = any(row["jobs_depend"] for row in rows)
        self.queues = {
            row["queue"]: QueueToServe(
                queue=row["queue"],
                max_delay_ms=row["max_delay_ms"] or DEFAULT_MAX_DELAY_MS,
                lease_seconds=row["lease_seconds"],
                batch_size=row["batch_size"],
                relaxed=row["durability"] == "relaxed",
                paused=row["paused"],
                priority=row["priority"],
                reserved_slots=row["reserved_slots"],
                interruptible=row["interruptible"],
            )
            for row in rows
        }

    async def load_tasks_of(self, claims: Iterable[Claim]) -> None:
        """Make sure that `task_of` knows the tasks of these claims, and the queues they wait in."""
        stale = {claim.task_id for claim in claims if self._is_stale(claim)}
        if stale:
            for row in await self._pool.fetch(_TASKS, list(stale)):
                backoff = Backoff(
                    RetryPolicy(row["retry_policy"]),
                    row["retry_delay_seconds"],
                    row["retry_max_delay_seconds"],
                )
                self._tasks[row["task_id"]] = TaskToRun(
                    row["task_id"],
                    row["revision"],
                    row["execution_handler"],
                    row["timeout_seconds"],
                    backoff,
                    row["parameter_schema"],
                    msgspec.json.decode(row["failure_rules"], type=tuple[FailureRule, ...]),
                    row["memory_mb"],
                )

    @property
    def has_paused(self) -> bool:
        """Whether a queue is paused."""
        return any(queue.paused for queue in self.queues.values())

    def to_look_at(self, served: tuple[str, ...]) -> list[str] | None:
        """Return the queues in which a look for work makes sense; empty for all, None for none at all.

        A paused queue's backlog would be walked through at every look, for nothing.
        """
        if not self.has_paused:
            return list(served)
        return [
            q.queue for q in self.queues.values() if not q.paused and (not served or q.queue in served)
        ] or None

    def lease_seconds(self, queue: str, *, most: float) -> float:
        """Return how long a lease of this queue's work is: `most`, or less where the queue says so."""
        known = self.queues.get(queue)
        return min(most, known.lease_seconds) if known else most

    def is_relaxed(self, queue: str) -> bool:
        """Tell whether a crash may repeat the record of this queue's completions."""
        known = self.queues.get(queue)
        return known is not None and known.relaxed

    def is_interruptible(self, queue: str) -> bool:
        """Tell whether this queue's work yields to more urgent work of others."""
        known = self.queues.get(queue)
        return known is not None and known.interruptible

    def max_delay_ms(self, queue: str) -> int:
        """Return the lateness objective of a queue."""
        known = self.queues.get(queue)
        return known.max_delay_ms if known else DEFAULT_MAX_DELAY_MS

    def task_of(self, claim: Claim) -> TaskToRun | None:
        """Return the task of a claim; None where the task is gone."""
        return self._tasks.get(claim.task_id) if claim.task_revision is not None else None

    def _is_stale(self, claim: Claim) -> bool:
        if claim.task_revision is None:
            return False
        known = self._tasks.get(claim.task_id)
        return known is None or known.revision < claim.task_revision
