"""Whatever the order in which workers, reaper and people touch one execution: it ends once, by its newest lease."""

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.db.pools import Connection, Pool, connect
from app.db.queries import load
from app.domain.ids import shard_of
from tests.factories import FAILURE, make_execution, make_job, make_task
from tests.reliability.interleave import Session, Statement, orders, run_order


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _today() -> datetime:
    return datetime.now(UTC)


FIRST, SECOND = uuid4(), uuid4()
"""Two workers."""
HELD = True
FENCE = " AND e.lease_epoch = x.lease_epoch"


@dataclass
class World:
    """One execution, and the statements that may touch it."""

    execution_id: UUID
    job_id: UUID
    settle_text: str

    def statement(self, name: str) -> Statement:
        """Return a session's statement by the name of its operation."""
        shard, ids = shard_of(self.execution_id), [self.execution_id]
        now = "2026-01-01T00:00:00Z"
        operations: dict[str, Callable[[Connection], Any]] = {
            "claim": lambda c: c.fetch(load("claim_due"), shard, "general", 2, 5, SECOND, 30.0),
            "claim_ahead": lambda c: c.fetch(load("claim_ahead"), shard, "general", 2, 5, SECOND, 30.0, 60.0),
            "arm": lambda c: c.fetch(load("arm"), shard, ids, [1]),
            "renew": lambda c: c.fetch(load("renew"), shard, ids, [1], [30.0], [None]),
            "settle": lambda c: c.fetch(
                self.settle_text, shard, ids, [1], ["COMPLETED"], ["ran"], [_at(now)], [_today()], [0.0], ["1"],
                [False], [None],
            ),
            "settle_newer": lambda c: c.fetch(
                self.settle_text, shard, ids, [3], ["COMPLETED"], ["ran"], [_at(now)], [_today()], [0.0], ["3"],
                [False], [None],
            ),
            "retry": lambda c: c.fetch(
                load("retry"), shard, ids, [1], [_today()], [_at(now)], [_today()], [0.0], ["failed"], [FAILURE],
                FIRST,
            ),
            "release": lambda c: c.fetch(load("release"), shard, ids, [1]),
            "reap": lambda c: c.fetch(load("reap_running"), shard, 5, FAILURE),
            "reap_ahead": lambda c: c.fetch(load("reap_scheduled"), shard, 5),
            "cancel": lambda c: c.fetch(load("cancel_waiting"), shard, self.execution_id, FAILURE),
            "hold": lambda c: c.fetch(load("replan_waiting"), shard, self.job_id, None, HELD, _today()),
            "drop": lambda c: c.fetch(load("drop_planned"), shard, self.job_id, _at("1970-01-01T00:00:00Z")),
        }  # fmt: skip
        return operations[name]


BEGUN = {"claim", "arm"}
"""Statements after which an attempt runs."""
TOOK_BACK = {"cancel", "hold", "drop"}
"""Statements after which it must never run."""


@asynccontextmanager
async def world(pool: Pool, state: str, *, fenced: bool = True) -> AsyncIterator[World]:
    """Make one execution in a state: waiting, leased ahead, running, or running with a lease that has lapsed."""
    for table in ("executions", "execution_history", "attempts", "jobs", "ledger_ranges"):
        await pool.execute(f"DELETE FROM onthedot.{table}")  # noqa: S608 - TRUNCATE of so many partitions takes a second
    job_id = await make_job(pool)
    columns: dict[str, Any] = {"job_id": job_id, "task_id": "report", "due_in_seconds": -1}
    if state != "waiting":
        leased = "SCHEDULED" if state == "ahead" else "RUNNING"
        ends = -1 if state == "lapsed" else 30
        columns |= {"status": leased, "worker_id": FIRST, "lease_epoch": 1, "lease_ends_in_seconds": ends}
    text = load("settle") if fenced else load("settle").replace(FENCE, "")
    assert fenced or text != load("settle")
    yield World(await make_execution(pool, **columns), job_id, text)


async def violations(
    pool: Pool, dsn: str, state: str, names: tuple[str, ...], *, fenced: bool = True
) -> list[str]:
    """Run every possible order of these operations and return what went wrong in any."""
    found: list[str] = []
    monitor = await connect(dsn, application_name="monitor")
    connections = {name: await connect(dsn, application_name=name) for name in names}
    for order in orders(dict.fromkeys(names, 2)):
        async with world(pool, state, fenced=fenced) as made:
            sessions = {name: Session(connections[name], made.statement(name)) for name in names}
            possible = await run_order(order, sessions, monitor)
            if possible:
                found += [f"{order}: {problem}" for problem in await _problems(pool, sessions)]
            for name, session in sessions.items():
                await session.abandon()
                if session.connection.is_closed():
                    connections[name] = await connect(dsn, application_name=name)
    for connection in (*connections.values(), monitor):
        await connection.close()
    return found


async def _problems(pool: Pool, sessions: dict[str, Session]) -> list[str]:
    did = {name for name, session in sessions.items() if session.rows}
    live = await pool.fetch("SELECT * FROM onthedot.executions")
    ended = await pool.fetch("SELECT * FROM onthedot.execution_history")
    found: list[str] = []
    if len(live) + len(ended) != (0 if "drop" in did else 1):
        found.append(f"{len(live)} live and {len(ended)} finished rows")
    if did & TOOK_BACK and did & BEGUN and "release" not in did and not did & {"reap", "reap_ahead", "retry"}:
        found.append(f"{did & TOOK_BACK} took back what {did & BEGUN} began")
    for name, epoch in (("settle", 1), ("settle_newer", 3)):
        if name in did and ended[0]["lease_epoch"] != epoch:
            found.append(f"{name} under lease {epoch} completed what lease {ended[0]['lease_epoch']} holds")
    if {"settle", "settle_newer"} <= did:
        found.append("two completions were accepted")
    return found


@pytest.fixture
async def tasks(pool: Pool) -> None:
    await make_task(pool)


OF_STATE = {
    "waiting": ("claim", "cancel", "hold", "drop"),
    "ahead": ("arm", "release", "reap_ahead", "renew", "cancel", "hold", "drop"),
    "running": ("settle", "retry", "renew", "release", "cancel", "hold"),
    "lapsed": ("settle", "retry", "renew", "reap", "claim", "cancel"),
}


TRIPLES = {
    "waiting": [("claim", "cancel", "hold")],
    "ahead": [("arm", "cancel", "reap_ahead"), ("arm", "hold", "release")],
    "running": [("settle", "retry", "release")],
    "lapsed": [("settle", "reap", "claim"), ("renew", "reap", "claim")],
}


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize("state", OF_STATE)
async def test_whatever_meets_in_whatever_order(pool: Pool, dsn: str, state: str) -> None:
    groups = [*itertools.combinations(OF_STATE[state], 2), *TRIPLES[state]]

    found = [problem for names in groups for problem in await violations(pool, dsn, state, names)]

    assert found == []


@pytest.mark.usefixtures("tasks")
async def test_without_the_fence_a_worker_could_complete_what_another_one_has(pool: Pool, dsn: str) -> None:
    assert await violations(pool, dsn, "lapsed", ("settle", "reap", "claim"), fenced=False) != []


@pytest.mark.usefixtures("tasks")
async def test_a_worker_that_claims_again_what_it_lost_cannot_settle_with_the_old_epoch(pool: Pool) -> None:
    async with world(pool, "lapsed") as made, pool.acquire() as connection:
        for name, rows in (("reap", 1), ("claim", 1), ("settle", 0), ("settle_newer", 1), ("settle", 0)):
            assert len(await made.statement(name)(connection)) == rows, name
