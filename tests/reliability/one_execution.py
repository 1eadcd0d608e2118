"""One execution, the states it can be in, and all that workers, the reaper and people do to it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Self
from uuid import UUID, uuid4

from app.db.pools import Connection, Pool
from app.db.queries import load
from app.db.tables import executions
from app.domain.ids import SHARDS, new_execution_id, uuid7
from app.domain.statuses import LEASED, Status
from tests.factories import FAILURE, execution_row, insert, make_job, make_task, now_of
from tests.reliability.interleave import Statement

FIRST, SECOND = uuid4(), uuid4()
"""Two workers. The first one holds the execution under epoch 1 where it is leased at the beginning."""
LONG_SECONDS = 3600.0
"""Longer than everything takes: what is not due, or leased, remains so."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

STATES: Mapping[str, dict[str, Any]] = {
    "due": {"due_in_seconds": -1},
    "due soon": {"due_in_seconds": LONG_SECONDS},
    "leased ahead": {"status": Status.SCHEDULED, "due_in_seconds": LONG_SECONDS},
    "leased ahead, lapsed": {"status": Status.SCHEDULED, "lease_ends_in_seconds": -1},
    "running": {"status": Status.RUNNING},
    "running, lapsed": {"status": Status.RUNNING, "lease_ends_in_seconds": -1},
    "running alone, lapsed": {
        "status": Status.RUNNING,
        "lease_ends_in_seconds": -1,
        "attempt_number": 4,
        "worker_deaths": 3,
    },
    "to run alone": {
        "status": Status.RETRYING,
        "due_in_seconds": -1,
        "attempt_number": 2,
        "worker_deaths": 2,
    },
    "too late": {"due_in_seconds": -1, "expires_at": datetime.fromtimestamp(1, UTC)},
    "retrying": {"status": Status.RETRYING, "due_in_seconds": -1},
}
SKIPPING = frozenset(
    {
        "claim",
        "claim_alone",
        "claim_ahead",
        "renew",
        "reap",
        "reap_ahead",
        "reap_poison",
        "reap_asked",
        "expire",
    }
)
"""Operations that pass over a row which somebody else has locked."""
BEGINNING = frozenset({"claim", "claim_alone", "arm"})
"""Operations after which an attempt runs."""
TAKING_BACK = frozenset({"cancel", "pause", "drop"})
"""Operations after which it must not run."""
FREEING = frozenset({"release", "retry", "reap", "reap_ahead"})
"""Operations that end an attempt or a lease without ending the execution."""
FENCE = " AND e.lease_epoch = x.lease_epoch"


class Ended(NamedTuple):
    """What is left of the execution; without times, which differ from run to run."""

    live: tuple[Any, ...] | None
    finished: tuple[Any, ...] | None
    attempts: tuple[tuple[Any, ...], ...]


_LIVE = """SELECT status, lease_epoch, attempt_number, worker_id, held, cancel_requested_at IS NOT NULL,
                  due_at <= now(), lease_expires_at < now(), worker_deaths, max_attempts
             FROM onthedot.executions WHERE shard = $1 AND execution_id = $2"""
_FINISHED = """SELECT status, lease_epoch, attempt_number, worker_id, worker_deaths, max_attempts
                 FROM onthedot.execution_history WHERE execution_id = $1"""
_ATTEMPTS = """SELECT attempt_number, lease_epoch, worker_id, outcome
                 FROM onthedot.attempts WHERE execution_id = $1 ORDER BY 1, 2"""


class Subject(NamedTuple):
    """The execution, in a shard of its own: several are looked into at the same time."""

    shard: int
    job_id: UUID
    execution_id: UUID
    task_id: str

    @classmethod
    def of(cls, number: int) -> Self:
        """Return the one of a number below 16."""
        job_id = uuid7(1, last_byte=number)
        return cls(SHARDS[number], job_id, new_execution_id(job_id, 1), f"task-{number}")

    async def make(self, pool: Pool, state: str) -> None:
        """Make it in a state, with its job and its task."""
        await make_task(pool, self.task_id)
        await make_job(pool, job_id=self.job_id, task_id=self.task_id)
        columns = {"lease_ends_in_seconds": LONG_SECONDS} | STATES[state]
        row = execution_row(
            await now_of(pool),
            job_id=self.job_id,
            execution_id=self.execution_id,
            task_id=self.task_id,
            **columns,
        )
        if row["status"] in LEASED:
            row["worker_id"] = FIRST
        await insert(pool, "executions", [row])


_COLUMNS = ", ".join(column.name for column in executions.columns if column.computed is None)


class Bed:
    """Where one execution is made anew before each order, and looked at after it."""

    def __init__(self, subject: Subject, monitor: Connection) -> None:
        self._subject = subject
        self._monitor = monitor
        self._has_left_rows = False

    async def keep(self) -> None:
        """Keep what the execution looks like now."""
        await self._monitor.execute("CREATE TEMP TABLE pristine (LIKE onthedot.executions)")
        await self._monitor.execute(
            "INSERT INTO pristine SELECT * FROM onthedot.executions WHERE shard = $1", self._subject.shard
        )

    async def reset(self) -> None:
        """Make the execution as it was kept."""
        shard, execution_id = self._subject.shard, self._subject.execution_id
        await self._monitor.execute("DELETE FROM onthedot.executions WHERE shard = $1", shard)
        await self._monitor.execute(
            f"INSERT INTO onthedot.executions ({_COLUMNS}) SELECT {_COLUMNS} FROM pristine"  # noqa: S608 - ours
        )
        if self._has_left_rows:
            for table in ("execution_history", "attempts"):
                delete = f"DELETE FROM onthedot.{table} WHERE execution_id = $1"  # noqa: S608 - one of these two
                await self._monitor.execute(delete, execution_id)

    async def ended(self) -> Ended:
        """Return what is left of the execution."""
        shard, execution_id = self._subject.shard, self._subject.execution_id
        live = await self._monitor.fetchrow(_LIVE, shard, execution_id)
        finished = await self._monitor.fetchrow(_FINISHED, execution_id)
        attempts = await self._monitor.fetch(_ATTEMPTS, execution_id)
        self._has_left_rows = finished is not None or bool(attempts)
        return Ended(live and tuple(live), finished and tuple(finished), tuple(map(tuple, attempts)))


def operations(subject: Subject, *, unfenced: str | None = None) -> dict[str, Statement]:
    """Return all that is done to an execution, by name; one of them without its fence where it is named."""
    return {
        name: _statement(query, arguments, fenced=name != unfenced)
        for name, (query, arguments) in _calls(subject).items()
    }


def _statement(query: str, arguments: Sequence[object], *, fenced: bool) -> Statement:
    text = load(query) if fenced else load(query).replace(FENCE, "")
    assert fenced or text != load(query)
    return lambda connection: connection.fetch(text, *arguments)


def _calls(subject: Subject) -> dict[str, tuple[str, Sequence[object]]]:
    shard, job_id, execution_id, task_id = subject
    ids, now = [execution_id], datetime.now(UTC)
    began, again = now - timedelta(seconds=1), now - timedelta(milliseconds=1)
    place = (shard, "general", 2, 5, SECOND)
    ended = (["COMPLETED"], ["ran"], [began], [now], [0.0], ["1"], [False], [None])
    return {
        "claim": ("claim_due", (*place, LONG_SECONDS, _EPOCH)),
        "claim_alone": ("claim_suspect", (shard, "general", 2, SECOND, LONG_SECONDS)),
        "claim_ahead": ("claim_ahead", (*place, LONG_SECONDS, 2 * LONG_SECONDS)),
        "arm": ("arm", (shard, ids, [1])),
        "renew": ("renew", (shard, ids, [1], [LONG_SECONDS], [None])),
        "settle": ("settle", (shard, ids, [1], *ended)),
        "settle_newer": ("settle", (shard, ids, [3], *ended)),
        "retry": (
            "retry",
            (shard, ids, [1], [again], [began], [now], [0.0], ["failed"], [FAILURE], [0], FIRST),
        ),
        "release": ("release", (shard, ids, [1])),
        "reap": ("reap_running", (shard, 5, FAILURE, _EPOCH)),
        "reap_ahead": ("reap_scheduled", (shard, 5)),
        "reap_poison": ("reap_poison", (shard, 5, FAILURE, _EPOCH)),
        "reap_asked": ("reap_cancelled", (shard, 5)),
        "expire": ("expire_executions", (shard, 5, FAILURE)),
        "cancel": ("cancel_waiting", (shard, execution_id, FAILURE)),
        "ask": ("request_cancel", (shard, execution_id, now, FAILURE)),
        "pause": ("replan_waiting", (shard, job_id, None, True, now, False)),
        "replan": ("replan_waiting", (shard, job_id, again, False, now, False)),
        "replan_task": ("replan_task", (task_id,)),
        "drop": ("drop_planned", (shard, job_id, _EPOCH)),
    }
