"""In every order of the statements of claims beside limits, of ends, sweeps and new limits: no more run than may.

Every order of the statements of two is run, as the stores are shipped, and a sample of those of three. Without a lock
or an epoch one is found in which more run.

INTERLEAVINGS=all runs ten times as many of three (with `--timeout 0`).
"""

import os
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest

from app.db import queries
from app.db.pools import Pool
from app.db.stores import admissions, limits
from app.db.stores.admissions import AdmissionStore, Claimant
from app.db.stores.executions import ExecutionStore, FailedAttempt, Settlement
from app.db.stores.limits import LimitStore, NewLimit
from app.domain.admission import Host
from app.domain.claims import Claim, LeaseId
from app.domain.hints import Ready
from app.domain.ids import SHARDS, uuid7
from app.worker.marks import START
from tests.factories import FAILURE, execution_row, insert, make_task, now_of
from tests.reliability.stepped import Act, bench, following

SHARD, JOB = SHARDS[0], uuid7(1, last_byte=0)
SAMPLE = 400 if os.environ.get("INTERLEAVINGS") == "all" else 40
LEASE_SECONDS = 3600.0
RUNNING = "SELECT count(*) FROM onthedot.executions WHERE status = 'RUNNING'"
UNDER_WAY = "SELECT count(*) FROM onthedot.executions WHERE status = 'RUNNING' OR attempt_number > 0"
UNCOUNTED = """SELECT count(*) FROM onthedot.executions AS e
                WHERE status = 'RUNNING' AND NOT EXISTS (
                      SELECT FROM onthedot.limit_holders AS h
                       WHERE h.execution_id = e.execution_id AND h.lease_epoch = e.lease_epoch)"""
Row = Mapping[str, Any]


class Story(NamedTuple):
    """What is there, who does something to it, and what must never come of it."""

    rows: Sequence[Row]
    acts: Sequence[str]
    most: int
    """How many may be `counted` at the end."""
    counted: str = RUNNING
    quota: int | None = None
    first_order: Sequence[int] = ()
    """Who goes on, each time, in the first order of three that is run: the others are drawn."""


KEYED: Row = {"limited": True, "concurrency_key": "k", "due_in_seconds": -1.0}
ENDED: Row = KEYED | {"lease_epoch": 2}
"""Its first lease is over, and still has a row that counts."""
SERIAL: Row = {"limited": True, "overlap": "queue", "job_id": JOB, "due_in_seconds": -1.0}
FREE: Row = {"due_in_seconds": -1.0}

STORIES = {
    "two claims": Story([KEYED, KEYED], ["claim", "claim"], 1),
    "a claim, and an end": Story([KEYED | {"status": "RUNNING"}, KEYED], ["settle", "claim"], 1),
    "a claim, and the next attempt of a job": Story(
        [SERIAL | {"status": "RUNNING"}, SERIAL | {"run_key": "2"}], ["retry", "claim"], 1, UNDER_WAY
    ),
    "claims, and a late end": Story([ENDED, KEYED], ["claim", "free", "claim"], 1),
    "claims, and a sweep": Story([ENDED, KEYED], ["claim", "sweep", "claim"], 1),
    "claims, and a new limit": Story(
        [FREE | {"status": "RUNNING"}, FREE, FREE], ["apply", "claim"], 1, quota=1
    ),
    "a claim beside no limit, one beside it, and a new limit": Story(
        [FREE, FREE],
        ["apply", "claim_free", "claim"],
        1,
        quota=1,
        first_order=[0, 0, 1, 0, 1, 1, 1, 1, 1],  # claimed between being counted and being told
    ),
    "claims of both kinds, and a new limit": Story(
        [FREE | {"status": "RUNNING"}, FREE, FREE], ["apply", "claim_free", "claim"], 2, quota=1
    ),
}


class Stage:
    """Makes what a story begins with, and says what came of it."""

    def __init__(self, pool: Pool, story: Story) -> None:
        self._pool, self._story = pool, story
        self.ids: list[UUID] = []
        self._now = START

    async def set(self) -> None:
        """Begin anew."""
        await self._pool.execute(
            "DELETE FROM onthedot.executions; DELETE FROM onthedot.limit_holders; DELETE FROM onthedot.new_limits;"
        )
        now = self._now = await now_of(self._pool)
        rows = [
            execution_row(now, **({"job_id": uuid7(n, last_byte=0)} | row))
            for n, row in enumerate(self._story.rows)
        ]
        await insert(self._pool, "executions", rows)
        self.ids = [row["execution_id"] for row in rows]
        held = [row for row in rows if row.get("lease_epoch") and row.get("limited")]
        for row in held:
            key = "key:k" if row.get("concurrency_key") else f"job:{row['job_id']}"
            await self._pool.execute(
                "INSERT INTO onthedot.limit_holders (key, execution_id, shard, lease_epoch) VALUES ($1, $2, $3, 1)",
                key, row["execution_id"], SHARD,
            )  # fmt: skip

    async def wrong(self) -> str | None:
        """Return what must not be."""
        counted = await self._pool.fetchval(self._story.counted)
        if counted > self._story.most:
            return f"{counted} at once"
        uncounted = await self._pool.fetchval(UNCOUNTED)
        return f"{uncounted} run and do not count" if uncounted else None

    def act(self, name: str) -> Act:
        """Return what one does."""
        what: Callable[[Pool], Awaitable[object]] = getattr(self, f"_{name}")
        return what

    async def _claim(self, pool: Pool) -> None:
        store = AdmissionStore(pool, Claimant(uuid4(), Host("ant", 4.0, 4096), "{}"))
        await store.claim_oldest(self._place(), limit=1, lease_seconds=LEASE_SECONDS, mark=START)

    async def _claim_free(self, pool: Pool) -> None:
        await ExecutionStore(pool).claim_due(
            self._place(), limit=1, worker_id=uuid4(), lease_seconds=LEASE_SECONDS, mark=START
        )

    async def _settle(self, pool: Pool) -> None:
        claim = self._claim_of_first()
        settlement = Settlement(claim, "COMPLETED", "ran", claim.claimed_at, claim.claimed_at, 0.0)
        await ExecutionStore(pool).settle([settlement])
        await self._free(pool)

    async def _retry(self, pool: Pool) -> None:
        claim = self._claim_of_first()
        at = claim.claimed_at
        failed = FailedAttempt(claim, at, at, at, 0.0, "failed", FAILURE)
        await ExecutionStore(pool).retry([failed], worker_id=uuid4())
        await self._free(pool)

    async def _free(self, pool: Pool) -> None:
        await LimitStore(pool).free([LeaseId(self.ids[0], 1)])

    async def _sweep(self, pool: Pool) -> None:
        await LimitStore(pool).sweep()

    async def _apply(self, pool: Pool) -> None:
        await LimitStore(pool).apply(
            NewLimit("user", "ada", START, is_known=True, oldest_transaction=0, next_transaction=0)
        )

    def _place(self) -> Ready:
        return Ready(SHARD, "general", 2, START, limited=True)

    def _claim_of_first(self) -> Claim:
        return Claim(
            shard=SHARD, execution_id=self.ids[0], job_id=JOB, user_id="ada", task_id="report", task_revision=1,
            queue="general", priority=2, status="RUNNING", trigger="schedule", scheduled_time=START, due_at=START,
            first_due_at=START, parameters="{}", timeout_seconds=None, max_attempts=4, attempt_number=1,
            lease_epoch=1, claimed_at=self._now, lease_expires_at=self._now, lateness_ms=None, limited=True,
        )  # fmt: skip


async def played(dsn: str, pool: Pool, story: Story, *, until_wrong: bool = False) -> tuple[int, list[str]]:
    """Run every order of two, a sample of those of three; return how many, and what was wrong."""
    await make_task(pool)
    row = {"user_id": "ada", "name": "ada", "role": "operator", "max_concurrent_jobs": story.quota}
    await insert(pool, "users", [row])
    stage, wrong, orders = Stage(pool, story), list[str](), 0
    chance = random.Random(3)  # noqa: S311 - the same at every run
    choices: list[int] | None = list(story.first_order)
    async with bench(dsn, len(story.acts)) as made:
        while choices is not None and orders < (SAMPLE if len(story.acts) > 2 else 10_000):
            await stage.set()
            chosen, among = await made.run([stage.act(name) for name in story.acts], choices)
            orders += 1
            if what := await stage.wrong():
                wrong.append(f"{chosen}: {what}")
                if until_wrong:
                    break
            choices = (
                following(chosen, among) if len(story.acts) == 2 else [chance.randrange(6) for _ in range(30)]
            )
    return orders, wrong


@pytest.fixture(autouse=True)
def one_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing lies in the other ones: their statements would only be more steps."""
    monkeypatch.setattr(limits, "SHARDS", (SHARD,))


@pytest.mark.parametrize("name", STORIES)
async def test_no_order_lets_more_run_than_may(dsn: str, pool: Pool, name: str) -> None:
    orders, wrong = await played(dsn, pool, STORIES[name])

    assert orders > 1
    assert wrong == []


async def test_a_new_limit_is_told_under_its_lock(
    dsn: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_LOCK", "SELECT $1::text")
    story = STORIES["a claim beside no limit, one beside it, and a new limit"]
    _, wrong = await played(dsn, pool, story, until_wrong=True)

    assert wrong != []


BROKEN = {
    "lock_limits": ("two claims", " WHERE pg_try_advisory_xact_lock(hashtextextended(key, 7))", ""),
    "free_holders": ("claims, and a late end", " AND h.lease_epoch = x.lease_epoch", ""),
    "stale_holders": (
        "claims, and a sweep",
        "e.status = 'RUNNING' AND e.lease_epoch = h.lease_epoch",
        "false",
    ),
    "count_running": ("claims, and a new limit", "e.status = 'RUNNING' AND", "false AND"),
}
"""For each statement that keeps a limit, the story in which it alone does so, and how it is broken."""


@pytest.mark.parametrize("query", BROKEN)
async def test_without_its_lock_or_its_epoch_one_does(
    dsn: str, pool: Pool, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    story, right, wrong_text = BROKEN[query]
    text = queries.load(query)
    assert text.count(right) == 1

    def load(name: str) -> str:
        return text.replace(right, wrong_text) if name == query else queries.load(name)

    monkeypatch.setattr(admissions, "load", load)
    monkeypatch.setattr(limits, "load", load)
    _, wrong = await played(dsn, pool, STORIES[story], until_wrong=True)

    assert wrong != []
