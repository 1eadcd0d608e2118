"""Workflow runs whose workers are killed again and again: every step of every run is released once.

The suite runs a smaller case. The one that is promised:

    DIAMONDS=1000 KILLS=10 pytest --timeout 0 tests/life/test_workflows.py --log-cli-level=INFO
"""

import asyncio
import logging
import os
import signal
from contextlib import suppress
from typing import Any

import httpx
import psycopg
import pytest

from tests.life.processes import eventually, serving

DIAMONDS = int(os.environ.get("DIAMONDS", "100"))
KILLS = int(os.environ.get("KILLS", "3"))
KILL_EVERY_SECONDS = 1.0
AT_ONCE = 50
"""Requests that begin runs."""
KEY = "w" * 32
HEADERS = {"Authorization": f"Bearer {KEY}"}
STEPS = [
    {"key": "top", "task_id": "nap"},
    {"key": "left", "task_id": "nap", "depends_on": ["top"]},
    {"key": "right", "task_id": "nap", "depends_on": ["top"]},
    {"key": "join", "task_id": "nap", "depends_on": ["left", "right"]},
]
WORKERS = (
    "SELECT pid FROM onthedot.workers WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '5 s'"
)
UNDER_WAY = "SELECT count(*) FROM onthedot.workflow_runs WHERE status = 'RUNNING'"
BEGUN = "SELECT count(*) FROM onthedot.workflow_runs"
STEP_ENDS = """SELECT split_part(run_key, '/', 2), status, count(*), count(DISTINCT run_key)
                 FROM onthedot.execution_history WHERE trigger = 'workflow' GROUP BY 1, 2 ORDER BY 1"""
TOO_EARLY = """SELECT count(*)
                 FROM onthedot.execution_history AS h
                 JOIN onthedot.execution_history AS j
                   ON split_part(j.run_key, '/', 1) = split_part(h.run_key, '/', 1) AND j.run_key LIKE 'w:%/join/%'
                WHERE h.run_key LIKE ANY (ARRAY['w:%/left/%', 'w:%/right/%'])
                  AND j.first_due_at < h.completed_at - interval '10 ms'"""
"""A worker that has just begun knows the clock of the database to some milliseconds only; by it ends are written."""
RELEASED = """SELECT percentile_disc(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY lateness_ms)
                FROM onthedot.execution_history WHERE trigger = 'workflow' AND attempt_number = 1"""
log = logging.getLogger(__name__)

Database = psycopg.Connection[tuple[Any, ...]]


def rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    found = database.execute(query).fetchall()  # type: ignore[arg-type]  # our own text
    database.rollback()
    return found


async def begin_all(url: str) -> None:
    """Make a workflow and begin its runs, many at a time."""
    async with httpx.AsyncClient(base_url=f"{url}/api/v1", headers=HEADERS, timeout=60) as client:
        task = {"task_id": "nap", "execution_handler": "builtin:sleep", "parameter_schema": {}}
        (await client.post("/tasks", json=task)).raise_for_status()
        steps = [step | {"parameters": {"seconds": 0.02}} for step in STEPS]
        body = {"schedule": {"type": "IMMEDIATE"}, "steps": steps}
        answer = await client.post("/workflows", json=body)
        answer.raise_for_status()
        path = f"/workflows/{answer.json()['workflow_id']}/actions/run"
        turns = asyncio.Semaphore(AT_ONCE)

        async def begin() -> None:
            async with turns:
                (await client.post(path, json={})).raise_for_status()

        await asyncio.gather(*(begin() for _ in range(DIAMONDS - 1)))


async def kill_workers(dsn: str) -> None:
    """Kill every worker, again and again, until so many were killed: the supervisor starts others."""
    killed = 0
    while killed < KILLS:
        await asyncio.sleep(KILL_EVERY_SECONDS)  # when the fault comes: nothing is waited for
        with psycopg.connect(dsn) as database:
            workers = database.execute(WORKERS).fetchall()
        for (pid,) in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1


async def begin_and_kill(url: str, dsn: str) -> None:
    """Begin all runs while workers are killed."""
    await asyncio.gather(begin_all(url), kill_workers(dsn))


@pytest.mark.parametrize("kills", [False, True], ids=["calm", "workers killed"])
def test_every_step_of_every_run_is_released_once(dsn: str, database: Database, *, kills: bool) -> None:
    settings = {
        "DATABASE_URL": dsn,
        "PORT": "0",
        "LEASE_SECONDS": "3",
        "WORKER_PROCESSES": "2",
        "ADMIN_API_KEY": KEY,
    }
    with serving(**settings) as (_, ready):
        url = ready.split()[-1]
        if kills:
            asyncio.run(begin_and_kill(url, dsn))
        else:
            asyncio.run(begin_all(url))
        eventually(lambda: rows(database, BEGUN) == [(DIAMONDS,)] and rows(database, UNDER_WAY) == [(0,)])

    ends = {(step, status): (ended, keys) for step, status, ended, keys in rows(database, STEP_ENDS)}
    log.info("released to started, ms, p50 and p99: %s", rows(database, RELEASED)[0][0])
    assert ends == {(step["key"], "COMPLETED"): (DIAMONDS, DIAMONDS) for step in STEPS}
    assert rows(database, TOO_EARLY) == [(0,)]
