"""Anything that can be done to executions, in any order, on a real PostgreSQL: rows are always what the model says.

Workers write with tokens they hold and with tokens they have lost; some of what they claim comes under limits, which
change. Time does not pass here: leases lapse and instants come because a step says so.

STATE_MACHINE_EXAMPLES sets how many courses are run; with STATE_MACHINE_SHRINK=no a failing one is not made shorter.
"""

import asyncio
import os
from collections.abc import Awaitable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from app.db.pools import Pool, open_pool
from app.db.queries import load
from app.db.stores import limits
from app.db.stores.admissions import AdmissionStore, Claimant, LaneCursor, LimitedClaims
from app.db.stores.executions import ExecutionStore, FailedAttempt, Lease, Settlement, renew
from app.db.stores.limits import LimitStore
from app.domain.admission import Host
from app.domain.claims import Claim, LeaseId
from app.domain.hints import Ready
from app.domain.ids import SHARDS, uuid7
from app.domain.poison import is_suspect
from app.domain.statuses import Status
from tests.factories import FAILURE, execution_row, insert, make_job, make_task, now_of
from tests.reliability.model import KEY_LIMIT, Model, Row, Token

EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "40"))
PHASES = tuple(set(Phase) - ({Phase.shrink} if os.environ.get("STATE_MACHINE_SHRINK") == "no" else set()))
STEPS = 40
LONG_SECONDS = 3600.0
"""Longer than everything takes: what is not due, or leased, remains so."""
SHARD, LAST_BYTE = SHARDS[0], 0
WORKERS = (uuid4(), uuid4())
ALL = 100
"""More than there is: a claim of so many leaves nothing that has room."""
SERIAL = uuid7(1, last_byte=LAST_BYTE)
"""A job of which one execution at a time is under way."""
LIMITS: dict[str, dict[str, Any]] = {
    "none": {},
    "quota": {"user_id": "eve"},
    "key": {"concurrency_key": "k", "concurrency_limit": KEY_LIMIT},
    "quota and key": {"user_id": "eve", "concurrency_key": "k", "concurrency_limit": KEY_LIMIT},
    "overlap": {"overlap": "queue", "job_id": SERIAL},
}
LIVE = """SELECT execution_id, status, lease_epoch, attempt_number, max_attempts, worker_id, due_at <= now(),
                 coalesce(lease_expires_at < now(), false), held, cancel_requested_at IS NOT NULL, worker_deaths,
                 limited, user_id, concurrency_key, overlap, job_id
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
        self.limits = LimitStore(self.pool)
        host = Host("ant", 4.0, 4096)
        self.admissions = {each: AdmissionStore(self.pool, Claimant(each, host, "{}")) for each in WORKERS}

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
def bed(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bed]:
    monkeypatch.setattr(limits, "SHARDS", (SHARD,))  # nothing lies in the other ones
    made = Bed(dsn)
    made.wait(make_task(made.pool))
    made.wait(insert(made.pool, "users", [{"user_id": "eve", "name": "eve", "role": "operator"}]))
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

    @initialize(quota=st.sampled_from((1, 2, None)))
    def begin(self, quota: int | None) -> None:
        """Begin with a few executions, two that are due of each limit."""
        for table in ("executions", "execution_history", "attempts", "jobs", "limit_holders", "new_limits"):
            self.bed.fetch(f"DELETE FROM onthedot.{table}")  # noqa: S608 - one of these
        self.bed.fetch("UPDATE onthedot.queues SET paused_at = NULL")
        self.bed.fetch("UPDATE onthedot.users SET max_concurrent_jobs = NULL")
        self.set_quota(quota)
        for limit in LIMITS:
            for is_due in (True, limit != "none"):
                self.create(is_due=is_due, most_attempts=3, limit=limit)

    @rule(
        is_due=st.booleans(),
        most_attempts=st.integers(min_value=1, max_value=3),
        limit=st.sampled_from(sorted(LIMITS)),
    )
    def create(self, *, is_due: bool, most_attempts: int, limit: str) -> None:
        """Create a job and its execution; of the serial one another execution."""
        pool, now = self.bed.pool, self._now()
        micros = int(now.timestamp() * 1e6)
        columns = {"job_id": uuid7(micros, last_byte=LAST_BYTE)} | LIMITS[limit]
        if columns["job_id"] not in self.jobs.values():
            retries = None if columns["job_id"] == SERIAL else most_attempts - 1
            self.bed.wait(make_job(pool, **columns, max_retries=retries))
        known = Row(
            most_attempts=4 if columns["job_id"] == SERIAL else most_attempts,
            is_due=is_due,
            user=columns.get("user_id", "ada"),
            key=columns.get("concurrency_key"),
            overlap=columns.get("overlap", "allow"),
            job=columns["job_id"],
        )
        known.limited = self.model.is_limited_anew(known)
        columns |= {"max_attempts": known.most_attempts, "limited": known.limited}
        row = execution_row(now, due_in_seconds=-1 if is_due else LONG_SECONDS, **columns)
        self.bed.wait(insert(pool, "executions", [row]))
        self._know(row["execution_id"], columns["job_id"], known)

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(min_value=1, max_value=3))
    def claim(self, worker: UUID, limit: int) -> None:
        """Take what is due."""
        claims = self.bed.wait(
            self.bed.executions.claim_due(
                self._place(), limit=limit, worker_id=worker, lease_seconds=LONG_SECONDS, mark=_EPOCH
            )
        )
        self._grant(claims, worker, Status.RUNNING, limit=limit)

    @precondition(lambda self: any(row.limited for row in self.model.live.values()))
    @rule(worker=st.sampled_from(WORKERS), limit=st.sampled_from((1, 3, ALL)), by_lane=st.booleans())
    def claim_beside_limits(self, worker: UUID, limit: int, *, by_lane: bool) -> None:
        """Take what is due, and what limits let in."""
        store, place = self.bed.admissions[worker], self._place()
        if by_lane:
            claim = store.claim_by_lane(
                place, LaneCursor(), limit=limit, lease_seconds=LONG_SECONDS, mark=_EPOCH
            )
        else:
            claim = store.claim_oldest(place, limit=limit, lease_seconds=LONG_SECONDS, mark=_EPOCH)
        found = self.bed.wait(claim)
        if by_lane:  # which takes what nothing limits, too
            free = [each for each in found.claims if not self.model.live[each.execution_id].limited]
            self._grant(free, worker, Status.RUNNING, limit=len(free))
            found = msgspec.structs.replace(found, claims=[one for one in found.claims if one not in free])
        self._grant_beside_limits(found, worker, limit=limit, whole=limit == ALL)

    @precondition(lambda self: any(is_suspect(row.deaths) for row in self.model.live.values()))
    @rule(worker=st.sampled_from(WORKERS))
    def claim_alone(self, worker: UUID) -> None:
        """Take one of what is due and must run alone."""
        claims = self.bed.wait(
            self.bed.executions.claim_suspect(self._place(), worker_id=worker, lease_seconds=LONG_SECONDS)
        )
        self._grant(claims, worker, Status.RUNNING, limit=1, alone=True)
        found = self.bed.wait(
            self.bed.admissions[worker].claim_alone(self._place(), lease_seconds=LONG_SECONDS)
        )
        self._grant_beside_limits(found, worker, limit=1, alone=True, whole=not found.claims)

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
    @rule(
        which=whichever,
        status=st.sampled_from((Status.COMPLETED, Status.FAILED, Status.CANCELLED)),
        frees=st.booleans(),
    )
    def settle(self, which: int, status: Status, *, frees: bool) -> None:
        """Record the end of an execution; a worker may end before it has freed what that has held."""
        claim, token = self._claim(which)
        kept = self.bed.wait(self.bed.executions.settle([_settlement(claim, status, self._now())]))
        is_ours = self.model.running_by(token) is not None
        if is_ours:
            self.model.end(claim.execution_id, status)
        assert kept == ({claim.execution_id} if is_ours else set())
        self._free(token, frees=frees)

    @precondition(lambda self: self.claims)
    @rule(which=whichever, at_once=st.booleans(), frees=st.booleans())
    def retry(self, which: int, *, at_once: bool, frees: bool) -> None:
        """Record a failed attempt."""
        claim, token = self._claim(which)
        failed = _failed(claim, self._now(), due_in=-1 if at_once else LONG_SECONDS)
        kept = self.bed.wait(self.bed.executions.retry([failed], worker_id=WORKERS[0]))
        row = self.model.running_by(token)
        if row:
            self.model.fail(claim.execution_id, "failed")
            row.is_due = at_once
        assert kept == ({claim.execution_id} if row else set())
        self._free(token, frees=frees)

    @precondition(lambda self: self.claims)
    @rule(which=whichever, frees=st.booleans())
    def release(self, which: int, *, frees: bool) -> None:
        """Give back what has not begun."""
        claim, token = self._claim(which)
        kept = self.bed.wait(self.bed.executions.release([claim]))
        row = self.model.held_by(token)
        if row:
            row.attempt -= row.status is Status.RUNNING
            row.free()
        assert kept == ({claim.execution_id} if row else set())
        self._free(token, frees=frees)

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
            self.sweep()
            self.claim_beside_limits(worker, ALL, by_lane=ahead)
            self.claim_alone(worker)
        self.lapse(index)  # a renewal would be seen
        by_age = len(self.claims) - 1 - old
        late = (partial(self.retry, at_once=True, frees=True), partial(self.release, frees=True))
        for write in (self.arm, self.renew, *late):
            write(by_age)
            self.rows_are_what_the_model_says()
        self.settle(by_age, Status.COMPLETED, frees=True)

    @precondition(lambda self: any(row.limited for row in self.model.live.values()))
    @rule(
        worker=st.sampled_from(WORKERS),
        which=whichever,
        end=st.sampled_from(("settle", "retry", "release")),
        frees=st.booleans(),
        by_lane=st.booleans(),
    )
    def end_beside_limits(self, worker: UUID, which: int, end: str, *, frees: bool, by_lane: bool) -> None:
        """Take what limits let in, end one attempt of what was taken, and take what is let in then."""
        before = len(self.claims)
        self.claim_beside_limits(worker, ALL, by_lane=False)
        if len(self.claims) == before:
            return
        newest = which % (len(self.claims) - before)
        ends = {
            "settle": partial(self.settle, status=Status.COMPLETED),
            "retry": partial(self.retry, at_once=True),
            "release": self.release,
        }
        ends[end](newest, frees=frees)
        self.what_counts_is_what_the_model_says()
        self.claim_beside_limits(worker, ALL, by_lane=by_lane)

    @rule(most=st.integers(min_value=1, max_value=2), worker=st.sampled_from(WORKERS))
    def set_quota_beside_leases(self, most: int, worker: UUID) -> None:
        """Limit what was leased without a limit."""
        self.set_quota(None)
        for is_due in (True, False):
            self.create(is_due=is_due, most_attempts=2, limit="quota")
        self.lease_ahead(worker, ALL)
        self.claim(worker, 1)
        self.set_quota(most)

    @rule()
    def reap(self) -> None:
        """Free what has lapsed."""
        self.bed.wait(self.bed.executions.reap(SHARD, limit=100))
        self.model.reap()

    @rule()
    def sweep(self) -> None:
        """Let what is over count no more."""
        self.bed.wait(self.bed.limits.sweep())
        self.model.sweep()

    @rule(most=st.sampled_from((None, 1, 2)))
    def set_quota(self, most: int | None) -> None:
        """Set, change or remove how much of eve's may run."""
        self.bed.fetch("UPDATE onthedot.users SET max_concurrent_jobs = $1", most)
        for limit in self.bed.wait(self.bed.limits.new_limits()):
            self.bed.wait(self.bed.limits.apply(limit))
            self.bed.wait(self.bed.limits.forget(limit))
        self.model.set_quota(most)

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
        job = self.jobs[self._row(which)[0]]
        values = (SHARD, job, None, held, self._now(), False)
        taken = self.bed.fetch(load("replan_waiting"), *values)
        waiting = self._waiting_of(job)
        for row in waiting.values():
            row.free(Status.PENDING)
            row.held, row.limited = held, self.model.is_limited_anew(row)
        assert len(taken) == len(waiting)

    @precondition(lambda self: self.keys)
    @rule(which=whichever)
    def take_back(self, which: int) -> None:
        """Change a job so that its instant is no more."""
        job = self.jobs[self._row(which)[0]]
        dropped = self.bed.fetch(load("drop_planned"), SHARD, job, _EPOCH)
        waiting = self._waiting_of(job)
        for key in waiting:
            del self.model.live[key]
        assert len(dropped) == len(waiting)

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

    @invariant()
    def what_counts_is_what_the_model_says(self) -> None:
        """Compare holders; all that runs beside a limit is among them, one at a time of a job that is serial."""
        rows = self.bed.fetch("SELECT key, execution_id, lease_epoch FROM onthedot.limit_holders")
        assert {(limit, key): epoch for limit, key, epoch in rows} == self.model.holders
        for key, row in self.model.live.items():
            if row.status is Status.RUNNING:
                assert all(
                    self.model.holders.get((limit, key)) == row.epoch
                    for limit, _ in self.model.limits_of(row)
                )
        of_key = [row for row in self.model.live.values() if row.key and row.status is Status.RUNNING]
        assert len(of_key) <= KEY_LIMIT
        serial = [row for row in self.model.live.values() if row.job == SERIAL and row.attempt > 0]
        assert len(serial) <= 1

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

    def _grant_beside_limits(
        self, found: LimitedClaims, worker: UUID, *, limit: int, whole: bool, alone: bool = False
    ) -> None:
        """Take what was granted: no limit has let in too many and, if it is all, nothing that has room was left."""
        ready = self.model.ready(due=True, alone=alone, limited=True)
        got = {claim.execution_id for claim in found.claims}
        assert got <= ready
        assert len(got) == len(found.claims) <= limit
        self.model.grant(got, worker, Status.RUNNING)
        self.claims += found.claims
        counts = self.model.counts()
        for key in got:
            full = [
                (name, most)
                for name, most in self.model.limits_of(self.model.live[key])
                if counts[name] > most
            ]
            assert not full
        left = [self.model.live[key] for key in ready - got]
        assert not whole or all(self.model.is_kept_out(row) for row in left)

    def _free(self, token: Token, *, frees: bool) -> None:
        if frees:
            self.bed.wait(self.bed.limits.free([LeaseId(*token)]))
            self.model.free(token)

    def _waiting_of(self, job: UUID) -> dict[UUID, Row]:
        return {key: row for key, row in self.model.live.items() if row.job == job and row.is_waiting}

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


@pytest.mark.timeout(1800)  # to make a failing course shorter takes long
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
