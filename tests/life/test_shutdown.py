"""Processes end as they were asked to: what runs may finish, or is given back at once, and nobody is turned away."""

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count, pairwise
from typing import Any

import psycopg
import pytest

from tests.life.processes import ROOT, environment, eventually

LEASE_SECONDS = 120
SECONDS_UNDER_LOAD = 1.5
WORKERS = "SELECT count(*) FROM onthedot.workers WHERE stopped_at IS NULL"
DRAINING = "SELECT count(*) FROM onthedot.workers WHERE draining AND stopped_at IS NULL"
RUNNING_ON = """SELECT count(*) FROM onthedot.executions JOIN onthedot.workers AS w USING (worker_id)
                 WHERE status = 'RUNNING' AND w.pid = %s"""
LIVE = "SELECT count(*) FROM onthedot.executions"
TRACES = "SELECT count(*) FROM onthedot.attempts"
ENDED = """SELECT status, attempt_number, extract(epoch FROM started_at)::float8
             FROM onthedot.execution_history ORDER BY started_at"""
log = logging.getLogger(__name__)

Database = psycopg.Connection[tuple[Any, ...]]
Start = Callable[..., "subprocess.Popen[str]"]


def one(database: Database, query: str, *values: object) -> Any:
    """Return the one value of a query, as of now."""
    row = database.execute(query, values).fetchone()  # type: ignore[arg-type]  # our own text
    assert row is not None
    return row[0]


@pytest.fixture
def now(dsn: str) -> Iterator[Database]:
    """Return a connection on which each statement sees what is there now, with a task that sleeps."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO onthedot.tasks (task_id, name, execution_handler, created_by)"
            " VALUES ('sleep', 'sleep', 'builtin:sleep', 'test')"
        )
        yield connection


@pytest.fixture
def start(dsn: str, now: Database) -> Iterator[Start]:
    """Return what starts a worker and returns when it works; what is left at the end is killed."""
    with ExitStack() as stack:

        def start_worker(**settings: str) -> "subprocess.Popen[str]":
            before = one(now, WORKERS)
            own = {"DATABASE_URL": dsn, "LEASE_SECONDS": str(LEASE_SECONDS)} | settings
            process = subprocess.Popen(
                [sys.executable, "-m", "app", "worker"], cwd=ROOT, env=environment(**own), text=True
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            eventually(lambda: one(now, WORKERS) > before)
            return process

        yield start_worker


def enqueue(database: Database, *, seconds: float) -> None:
    database.execute("SELECT onthedot.enqueue('sleep', jsonb_build_object('seconds', %s::float8))", [seconds])


@pytest.mark.parametrize(("grace", "signals"), [("3600", 2), ("0.2", 1)], ids=["second signal", "grace over"])
def test_what_cannot_finish_is_given_back_at_once_and_begins_elsewhere(
    start: Start, now: Database, grace: str, signals: int
) -> None:
    leaving = start(GRACE_SECONDS=grace)
    enqueue(now, seconds=600)
    eventually(lambda: one(now, RUNNING_ON, leaving.pid) == 1)
    staying = start()

    leaving.terminate()
    for _ in range(signals - 1):
        eventually(lambda: one(now, DRAINING) == 1)
        assert one(now, RUNNING_ON, leaving.pid) == 1
        leaving.terminate()
    asked_at = time.monotonic()

    eventually(lambda: one(now, RUNNING_ON, staying.pid) == 1)
    log.info("given back by %s, begun elsewhere after %.2f s", leaving.pid, time.monotonic() - asked_at)
    assert leaving.wait() == 0
    assert one(now, TRACES) == 0, "an attempt that was given back counts for nothing"


def test_workers_are_replaced_under_load(start: Start, now: Database) -> None:
    workers = [start(), start()]
    numbers = count()

    def work_for(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            enqueue(now, seconds=0.05)
            next(numbers)

    for leaving in workers:
        start()
        work_for(SECONDS_UNDER_LOAD / 2)
        leaving.terminate()
        work_for(SECONDS_UNDER_LOAD / 2)
    eventually(lambda: one(now, LIVE) == 0)

    assert [leaving.wait() for leaving in workers] == [0, 0]
    ended = now.execute(ENDED).fetchall()  # type: ignore[arg-type]  # our own text
    assert [(status, attempts) for status, attempts, _ in ended] == [("COMPLETED", 1)] * next(numbers)
    gaps = [after - before for (*_, before), (*_, after) in pairwise(ended)]
    log.info("%d executions, at most %.2f s between two starts", len(ended), max(gaps))
