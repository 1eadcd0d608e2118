"""Anything that can be done to executions, in any order, on a real PostgreSQL: rows are always what the model says.

Workers write with tokens they hold and with tokens they have lost. Time does not pass here: leases lapse and instants
come because a step says so.

STATE_MACHINE_EXAMPLES sets how many courses are run; with STATE_MACHINE_SHRINK=no a failing one is not made shorter.
"""

import asyncio
import os
from collections.abc import Awaitable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from app.db.pools import Pool, open_pool
from app.db.queries import load
from app.db.stores.executions import ExecutionStore, FailedAttempt, Lease, Settlement, renew
from app.domain.claims import Claim, LeaseId
from app.domain.hints import Ready
from app.domain.ids import SHARDS, uuid7
from app.domain.poison import is_suspect
from app.domain.statuses import Status
from tests.factories import FAILURE, execution_row, insert, make_job, make_task, now_of
from tests.reliability.model import Model, Row, Token

EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "25"))
PHASES = tuple(set(Phase) - ({Phase.shrink} if os.environ.get("STATE_MACHINE_SHRINK") == "no" else set()))
STEPS = 40
LONG_SECONDS = 3600.0
"""Longer than everything takes: what is not due, or leased, remains so."""
SHARD, LAST_BYTE = SHARDS[0], 0
WORKERS = (uuid4(), uuid4())
LIVE = """SELECT execution_id, status, lease_epoch, attempt_number, max_attempts, worker_id, due_at <= now(),
                 coalesce(lease_expires_at < now(), false), held, cancel_requested_at IS NOT NULL, worker_deaths
            FROM onthedot.executions"""
COME_DUE = (
    "UPDATE onthedot.executions SET due_at = least(due_at, now() - interval '1 s') WHERE execution_id = $1"
)
LAPSE = "UPDATE onthedot.executions SET lease_expires_at = now() - interval '1 s' WHERE execution_id = $1"
T = TypeVar("T")
whichever = st.integers(min_value=0, max_value=1000)


class Bed:
    """A database and the loop in which it is talked to."""

    def __init__(self, dsn: str) -> None:
        self._runner = asyncio.Runner()
        self.pool: Pool = self.wait(open_pool(dsn, size=1, application_name="state machine"))
        self.executions = ExecutionStore(self.pool)

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Return what comes of it."""

        async def result() -> T:
            return await awaitable

        return self._runner.run(result())

    def fetch(self, query: str, *values: object) -> list[Any]:
        """Return the rows of a query."""
        return self.wait(self.pool.fetch(query, *values))

    def close(self) -> None:
        """Close everything."""
        self.wait(self.pool.close())
        self._runner.close()


@pytest.fixture
def bed(dsn: str) -> Iterator[Bed]:
    made = Bed(dsn)
    made.wait(make_task(made.pool))
    yield made
    made.close()


class Machine(RuleBasedStateMachine):
    """Every rule does one thing to the database and to the model; both must say the same of it."""

    bed: Bed

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.keys: list[UUID] = []
        self.jobs: dict[UUID, UUID] = {}
        self.claims: list[Claim] = []
        """All that were ever granted, under their old tokens."""

    @initialize()
    def begin(self) -> None:
        """Begin with an empty table."""
        for table in ("executions", "execution_history", "attempts", "jobs"):
            self.bed.fetch(f"DELETE FROM onthedot.{table}")  # noqa: S608 - one of these
        self.bed.fetch("UPDATE onthedot.queues SET paused_at = NULL")
        for is_due in (True, False):
            self.create(is_due=is_due, most_attempts=3)

    @rule(is_due=st.booleans(), most_attempts=st.integers(min_value=1, max_value=3))
    def create(self, *, is_due: bool, most_attempts: int) -> None:
        """Create a job and its execution."""
        pool = self.bed.pool
        now = self.bed.wait(now_of(pool))
        job_id = uuid7(int(now.timestamp() * 1e6), last_byte=LAST_BYTE)
        self.bed.wait(make_job(pool, job_id=job_id, max_retries=most_attempts - 1))
        due_in = -1 if is_due else LONG_SECONDS
        row = execution_row(now, job_id=job_id, due_in_seconds=due_in, max_attempts=most_attempts)
        self.bed.wait(insert(pool, "executions", [row]))
        self._know(row["execution_id"], job_id, Row(most_attempts=most_attempts, is_due=is_due))

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(min_value=1, max_value=3))
    def claim(self, worker: UUID, limit: int) -> None:
        """Take what is due."""
        claims = self.bed.wait(
            self.bed.executions.claim_due(
                self._place(), limit=limit, worker_id=worker, lease_seconds=LONG_SECONDS, mark=_EPOCH
            )
        )
        self._grant(claims, worker, Status.RUNNING, limit=limit)

    @precondition(lambda self: any(is_suspect(row.deaths) for row in self.model.live.values()))
    @rule(worker=st.sampled_from(WORKERS))
    def claim_alone(self, worker: UUID) -> None:
        """Take one of what is due and must run alone."""
        claims = self.bed.wait(
            self.bed.executions.claim_suspect(self._place(), worker_id=worker, lease_seconds=LONG_SECONDS)
        )
        self._grant(claims, worker, Status.RUNNING, limit=1, alone=True)

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(min_value=1, max_value=3))
    def lease_ahead(self, worker: UUID, limit: int) -> None:
        """Lease what is due soon."""
        claims = self.bed.wait(
            self.bed.executions.claim_ahead(
                self._place(),
                limit=limit,
                worker_id=worker,
                lease_seconds=LONG_SECONDS,
                lookahead_seconds=2 * LONG_SECONDS,
            )
        )
        self._grant(claims, worker, Status.SCHEDULED, limit=limit)

    @precondition(lambda self: self.claims)
    @rule(which=whichever)
    def arm(self, which: int) -> None:
        """Begin the attempt of what was leased ahead; what has begun stays as it is."""
        claim, token = self._claim(which)
        armed = self.bed.wait(self.bed.executions.arm([claim]))
        row = self.model.held_by(token)
        if row:
            row.attempt += row.status is Status.SCHEDULED
            row.status = Status.RUNNING
        assert armed == ({claim.lease: row.attempt} if row else {})

    @precondition(lambda self: self.claims)
    @rule(which=whichever)
    def renew(self, which: int) -> None:
        """Prolong a lease."""
        claim, token = self._claim(which)
        lease = Lease(claim.shard, claim.execution_id, claim.lease_epoch, LONG_SECONDS, None)
        lost = self._with_connection(lease)
        row = self.model.held_by(token)
        if row:
            row.has_lapsed = False
        assert lost == (set() if row else {claim.lease})

    @precondition(lambda self: self.claims)
    @rule(which=whichever, status=st.sampled_from((Status.COMPLETED, Status.FAILED, Status.CANCELLED)))
    def settle(self, which: int, status: Status) -> None:
        """Record the end of an execution."""
        claim, token = self._claim(which)
        kept = self.bed.wait(self.bed.executions.settle([_settlement(claim, status, self._now())]))
        is_ours = self.model.running_by(token) is not None
        if is_ours:
            self.model.end(claim.execution_id, status)
        assert kept == ({claim.execution_id} if is_ours else set())

    @precondition(lambda self: self.claims)
    @rule(which=whichever, at_once=st.booleans())
    def retry(self, which: int, *, at_once: bool) -> None:
        """Record a failed attempt."""
        claim, token = self._claim(which)
        failed = _failed(claim, self._now(), due_in=-1 if at_once else LONG_SECONDS)
        kept = self.bed.wait(self.bed.executions.retry([failed], worker_id=WORKERS[0]))
        row = self.model.running_by(token)
        if row:
            self.model.fail(claim.execution_id, "failed")
            row.is_due = at_once
        assert kept == ({claim.execution_id} if row else set())

    @precondition(lambda self: self.claims)
    @rule(which=whichever)
    def release(self, which: int) -> None:
        """Give back what has not begun."""
        claim, token = self._claim(which)
        kept = self.bed.wait(self.bed.executions.release([claim]))
        row = self.model.held_by(token)
        if row:
            row.attempt -= row.status is Status.RUNNING
            row.free()
        assert kept == ({claim.execution_id} if row else set())

    @precondition(lambda self: any(row.is_leased for row in self.model.live.values()))
    @rule(which=whichever, worker=st.sampled_from(WORKERS), ahead=st.booleans())
    def lose(self, which: int, worker: UUID, *, ahead: bool) -> None:
        """Let a worker lose its lease to another one, and then write whatever it can: this is what fences are for."""
        leased = [key for key in self.keys if key in self.model.live and self.model.live[key].is_leased]
        index = self.keys.index(leased[which % len(leased)])
        old = max(i for i, claim in enumerate(self.claims) if claim.execution_id == self.keys[index])
        self.lapse(index)
        self.reap()
        if ahead:
            self.lease_ahead(worker, 3)
        else:
            self.come_due(index)
            self.claim(worker, 3)
            self.claim_alone(worker)
        self.lapse(index)  # a renewal would be seen
        by_age = len(self.claims) - 1 - old
        for write in (self.arm, self.renew, partial(self.retry, at_once=True), self.release):
            write(by_age)
            self.rows_are_what_the_model_says()
        self.settle(by_age, Status.COMPLETED)

    @rule()
    def reap(self) -> None:
        """Free what has lapsed."""
        self.bed.wait(self.bed.executions.reap(SHARD, limit=100))
        self.model.reap()

    @precondition(lambda self: self.keys)
    @rule(which=whichever)
    def lapse(self, which: int) -> None:
        """Let time pass until a lease is over."""
        key, row = self._row(which)
        if row and row.is_leased:
            row.has_lapsed = True
            self.bed.fetch(
                "UPDATE onthedot.executions SET lease_expires_at = now() - interval '1 s' WHERE execution_id = $1",
                key,
            )

    @precondition(lambda self: self.keys)
    @rule(which=whichever)
    def come_due(self, which: int) -> None:
        """Let time pass until an instant comes."""
        key, row = self._row(which)
        if row:
            row.is_due = True
            self.bed.fetch(COME_DUE, key)

    @precondition(lambda self: self.keys)
    @rule(which=whichever)
    def cancel(self, which: int) -> None:
        """End what has not begun, ask what runs to stop."""
        key, row = self._row(which)
        ended = self.bed.fetch(load("cancel_waiting"), SHARD, key, FAILURE)
        asked = [] if ended else self.bed.fetch(load("request_cancel"), SHARD, key, self._now(), FAILURE)
        is_running = row is not None and row.status is Status.RUNNING
        if row and is_running:
            row.is_asked_to_stop = True
        elif row:
            self.model.end(key, Status.CANCELLED, epochs=1)
        assert (bool(ended), bool(asked)) == (row is not None and not is_running, is_running)

    @precondition(lambda self: self.keys)
    @rule(which=whichever, held=st.booleans())
    def pause_or_resume(self, which: int, *, held: bool) -> None:
        """Pause or resume a job: what nobody has begun is taken back."""
        key, row = self._row(which)
        values = (SHARD, self.jobs[key], None, held, self._now(), False)
        taken = self.bed.fetch(load("replan_waiting"), *values)
        is_waiting = row is not None and row.is_waiting
        if row and is_waiting:
            row.free(Status.PENDING)
            row.held = held
        assert bool(taken) == is_waiting

    @precondition(lambda self: self.keys)
    @rule(which=whichever)
    def take_back(self, which: int) -> None:
        """Change a job so that its instant is no more."""
        key, row = self._row(which)
        dropped = self.bed.fetch(load("drop_planned"), SHARD, self.jobs[key], _EPOCH)
        if row and row.is_waiting:
            del self.model.live[key]
            assert dropped
        else:
            assert not dropped

    @rule()
    def pause_or_resume_the_queue(self) -> None:
        """Pause the queue, or resume it."""
        paused = self.model.is_queue_paused = not self.model.is_queue_paused
        self.bed.fetch("UPDATE onthedot.queues SET paused_at = CASE WHEN $1 THEN now() END", paused)

    @invariant()
    def rows_are_what_the_model_says(self) -> None:
        """Compare everything."""
        live = {key: Row(Status(status), *rest) for key, status, *rest in self.bed.fetch(LIVE)}
        assert live == self.model.live
        history = self.bed.fetch("SELECT execution_id, status, lease_epoch FROM onthedot.execution_history")
        assert {key: (status, epoch) for key, status, epoch in history} == self.model.ended
        assert len(history) == len(self.model.ended)
        attempts = self.bed.fetch(
            "SELECT execution_id, attempt_number, lease_epoch, outcome FROM onthedot.attempts"
        )
        assert sorted(map(tuple, attempts)) == sorted(self.model.attempts)

    def _know(self, key: UUID, job_id: UUID, row: Row) -> None:
        self.keys.append(key)
        self.jobs[key] = job_id
        self.model.live[key] = row

    def _grant(
        self, claims: list[Claim], worker: UUID, status: Status, *, limit: int, alone: bool = False
    ) -> None:
        got = {claim.execution_id for claim in claims}
        ready = self.model.ready(due=status is Status.RUNNING, alone=alone)
        assert got <= ready
        assert len(claims) == len(got) == min(limit, len(ready))
        tokens: set[Token] = {(claim.execution_id, claim.lease_epoch) for claim in claims}
        assert not tokens & self.model.granted, "a token was granted twice"
        self.model.grant(got, worker, status)
        self.claims += claims

    def _place(self) -> Ready:
        return Ready(SHARD, "general", 2, self._now())

    def _now(self) -> datetime:
        return self.bed.wait(now_of(self.bed.pool))

    def _claim(self, which: int) -> tuple[Claim, Token]:
        claim = self.claims[
            -1 - which % len(self.claims)
        ]  # small numbers are drawn most: they are the newest
        return claim, (claim.execution_id, claim.lease_epoch)

    def _row(self, which: int) -> tuple[UUID, Row | None]:
        key = self.keys[which % len(self.keys)]
        return key, self.model.live.get(key)

    def _with_connection(self, lease: Lease) -> set[LeaseId]:
        async def renewed() -> set[LeaseId]:
            async with self.bed.pool.acquire() as connection:
                return (await renew(connection, [lease])).lost  # type: ignore[arg-type]  # a proxy of one

        return self.bed.wait(renewed())


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00Z")


def _settlement(claim: Claim, status: Status, now: datetime) -> Settlement:
    disposition = {Status.COMPLETED: "ran", Status.FAILED: "failed", Status.CANCELLED: "cancelled"}[status]
    return Settlement(
        claim=claim,
        status=status,
        disposition=disposition,
        started_at=now - timedelta(seconds=1),
        completed_at=now,
        lateness_ms=0.0,
        error=FAILURE if status is Status.FAILED else None,
    )


def _failed(claim: Claim, now: datetime, *, due_in: float) -> FailedAttempt:
    return FailedAttempt(
        claim=claim,
        due_at=now + timedelta(seconds=due_in),
        started_at=now - timedelta(seconds=1),
        ended_at=now,
        lateness_ms=0.0,
        outcome="failed",
        error=FAILURE,
    )


def test_rows_are_what_the_model_says_whatever_is_done(bed: Bed) -> None:
    machine = type("Machine", (Machine,), {"bed": bed})
    run(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        ),
    )
