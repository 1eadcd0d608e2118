"""Writes down what attempts came to. What ends while one batch is being written goes into the next."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, assert_never
from uuid import UUID

from app.db.clock import DatabaseClock
from app.db.stores.catalog import Catalog
from app.db.stores.effects import EffectStore
from app.db.stores.executions import ExecutionStore, FailedAttempt, Settlement
from app.db.stores.limits import LimitStore
from app.db.stores.logs import LogStore, StoredLine
from app.domain.claims import Claim, LeaseId
from app.domain.hints import Ready
from app.domain.outcomes import Cancelled, Failed, Interrupted, Outcome, Released, Retry, Succeeded
from app.domain.statuses import Status, Trigger
from app.worker import records
from app.worker.attempt import Attempt
from app.worker.committer import Committer
from app.worker.leases import LeaseKeeper

log = logging.getLogger(__name__)
Row = TypeVar("Row", Settlement, FailedAttempt, Claim)

BATCH = 500
"""Rows in one statement: larger ones gain nothing and hold their locks longer."""


class Settler:
    """Takes ended attempts and makes what they came to durable; `tick` writes one batch of each kind.

    On an error the batch stays and is written again: every statement is fenced, a repeat finds nothing to do.
    A lease is kept alive until its outcome is written: what has ended must not be run again meanwhile.
    """

    def __init__(
        self,
        *,
        executions: ExecutionStore,
        logs: LogStore,
        limits: LimitStore,
        catalog: Catalog,
        clock: DatabaseClock,
        leases: LeaseKeeper,
        worker_id: UUID,
        hint: Callable[[list[Ready]], None],
        on_freed: Callable[[], None],
        on_durable: Sequence[Callable[[Claim], None]],
        effects: EffectStore,
        failed_outcome: Callable[[Attempt, BaseException], Outcome],
    ) -> None:
        self._executions = executions
        self._logs = logs
        self._limits = limits
        self._on_freed = on_freed
        self._on_durable = on_durable
        self._to_free: list[LeaseId] = []
        self._catalog = catalog
        self._clock = clock
        self._leases = leases
        self._worker_id = worker_id
        self._hint = hint
        self._failed_outcome = failed_outcome
        self._committer = Committer(effects, done=self._end, failed=self._fail)
        self._lines: list[StoredLine] = []
        self._settlements: list[tuple[Attempt, Settlement]] = []
        self._relaxed: list[tuple[Attempt, Settlement]] = []
        self._failures: list[tuple[Attempt, FailedAttempt]] = []
        self._releases: list[tuple[Attempt, Claim]] = []

    @property
    def waiting(self) -> int:
        """Return how many ended attempts are not durable yet."""
        ended = (self._settlements, self._relaxed, self._failures, self._releases)
        return sum(len(rows) for rows in ended) + len(self._committer)

    def add(self, attempt: Attempt, outcome: Outcome) -> None:
        """Take an ended attempt."""
        now = max(self._clock.now(), attempt.started_at)
        match outcome:
            case Succeeded() | Failed() | Cancelled():
                objective_ms = self._catalog.max_delay_ms(attempt.claim.queue)
                row = records.settlement(attempt, outcome, ended_at=now, max_delay_ms=objective_ms)
                self._take(attempt, row)
            case Retry():
                self._failures.append((attempt, records.failed_attempt(attempt, outcome, ended_at=now)))
            case Interrupted():
                self._failures.append((attempt, records.interrupted_attempt(attempt, ended_at=now)))
            case Released():
                self._releases.append((attempt, attempt.claim))
            case _ as never:
                assert_never(never)
        self._discard_transaction(attempt)
        attempt.log.close()
        self.collect_lines(attempt)

    def _take(self, attempt: Attempt, row: Settlement) -> None:
        transaction = attempt.effects.transaction
        if transaction is not None and row.status == Status.COMPLETED:
            attempt.effects.transaction = None
            self._committer.add(attempt, transaction, row)
        elif self._may_be_repeated(attempt.claim):
            self._relaxed.append((attempt, row))
        else:
            self._settlements.append((attempt, row))

    def _may_be_repeated(self, claim: Claim) -> bool:
        """Tell whether the record of an end may be lost in a crash. A workflow's step is what others begin on."""
        return self._catalog.is_relaxed(claim.queue) and claim.trigger != Trigger.WORKFLOW

    def _discard_transaction(self, attempt: Attempt) -> None:
        """Undo what an attempt that did not complete has done in its transaction."""
        if attempt.effects.transaction is not None:
            self._committer.discard(attempt.effects.transaction)
            attempt.effects.transaction = None

    def collect_lines(self, attempt: Attempt) -> None:
        """Take the lines that an attempt has written since the last time."""
        claim = attempt.claim
        for line in attempt.log.drain():
            self._lines.append(StoredLine(claim.shard, claim.execution_id, claim.attempt_number, line))

    def forget(self) -> None:
        """Write nothing of what waits: it counts no more."""
        for rows in (
            self._lines,
            self._settlements,
            self._relaxed,
            self._failures,
            self._releases,
            self._to_free,
        ):
            rows.clear()
        self._committer.forget()

    async def tick(self) -> bool:
        """Write one batch of each kind; return whether anything was written."""
        await self._write_lines()
        committed = await self._committer.tick()
        settled = await self._write(self._settlements, self._executions.settle)
        relaxed = await self._write(self._relaxed, self._executions.settle_relaxed)
        failed = await self._write(self._failures, self._retry)
        released = await self._write(self._releases, self._executions.release)
        await self._free()
        return committed or settled or relaxed or failed or released

    async def _write_lines(self) -> None:
        """Write log lines before outcomes: who sees an execution completed sees its whole log."""
        lines = self._lines[: BATCH * 4]
        if lines:
            await self._logs.append(lines)
            del self._lines[: len(lines)]

    async def _write(
        self, rows: list[tuple[Attempt, Row]], write: Callable[[list[Row]], Awaitable[set[UUID]]]
    ) -> bool:
        batch = rows[:BATCH]
        if not batch:
            return False
        kept = await write([row for _, row in batch])
        del rows[: len(batch)]
        for attempt, _ in batch:
            self._end(attempt, attempt.claim.execution_id in kept)
        return True

    def _end(self, attempt: Attempt, counts: bool) -> None:  # noqa: FBT001 - as the committer calls it
        """What an attempt came to is durable, or another worker's."""
        self._leases.drop(attempt.lease)
        if attempt.claim.limited:
            self._to_free.append(attempt.lease)
        if counts:
            for tell in self._on_durable:
                tell(attempt.claim)
        else:
            _report_lost(attempt)

    async def _free(self) -> None:
        """What has ended counts against its limits no more."""
        batch = self._to_free[:BATCH]
        if batch:
            await self._limits.free(batch)
            del self._to_free[: len(batch)]
            self._on_freed()

    def _fail(self, attempt: Attempt, error: Exception) -> None:
        """Its handler's transaction could not be committed: then it has not completed."""
        self.add(attempt, self._failed_outcome(attempt, error))

    async def _retry(self, rows: list[FailedAttempt]) -> set[UUID]:
        kept = await self._executions.retry(rows, worker_id=self._worker_id)
        claims = [(row.claim, row.due_at) for row in rows if row.claim.execution_id in kept]
        self._hint(
            [
                Ready(claim.shard, claim.queue, claim.priority, due_at, claim.limited)
                for claim, due_at in claims
            ]
        )
        return kept


def _report_lost(attempt: Attempt) -> None:
    """Say that an outcome came too late. Another worker has the execution; nothing is lost."""
    log.info(
        "the lease was lost before the attempt was settled",
        extra={
            "event": "settle_lost",
            "execution_id": str(attempt.claim.execution_id),
            "attempt_number": attempt.claim.attempt_number,
            "lease_epoch": attempt.claim.lease_epoch,
        },
    )
