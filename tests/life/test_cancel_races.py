"""Whoever was told that an execution will never run can rely on it, however close to its instant they asked."""

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.life.processes import environment, eventually

ROOT = Path(__file__).parents[2]
RACES = int(os.environ.get("CANCEL_RACES", "300"))
RACES_A_SECOND = 100
KEY = "r" * 32
HEADERS = {"Authorization": f"Bearer {KEY}"}

Database = psycopg.Connection[tuple[Any, ...]]
TASK_MODULE = """
import os

from app import Context, task

EFFECTS = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@task
async def leave_a_mark(ctx: Context) -> None:
    os.write(EFFECTS, f"{{ctx.execution_id}}\\n".encode())
"""


@pytest.fixture
def effects(tmp_path: Path) -> Path:
    """Return the file that each start of `leave_a_mark` adds its execution to."""
    path = tmp_path / "effects"
    (tmp_path / "racing_tasks.py").write_text(TASK_MODULE.format(path=str(path)))
    return path


@pytest.fixture
def url(dsn: str, effects: Path) -> Iterator[str]:
    """Run everything against the test's database and return the API's address."""
    own = {
        "DATABASE_URL": dsn, "DATA_DIR": str(effects.parent), "PORT": "0", "WORKER_PROCESSES": "2",
        "TASK_MODULES": "racing_tasks", "ADMIN_API_KEY": KEY,
    }  # fmt: skip
    path = os.pathsep.join([str(effects.parent), str(ROOT)])
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "serve"],
        cwd=effects.parent,
        env={**environment(**own), "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout
        yield process.stdout.readline().split()[-1]
        process.terminate()


def plan(url: str, database: Database) -> dict[str, float]:
    """Plan the executions; return each one's instant, in seconds since 1970."""
    with httpx.Client(base_url=f"{url}/api/v1", headers=HEADERS, timeout=30) as client:
        task = {"task_id": "mark", "execution_handler": "python:leave_a_mark"}
        client.post("/tasks", json=task).raise_for_status()
        now = time.time()
        instants = [now + 10 + number / RACES_A_SECOND for number in range(RACES)]
        for first in range(0, RACES, 10_000):
            jobs = [
                {"task_id": "mark", "schedule": {"type": "ONCE", "scheduled_time": _text(instant)}}
                for instant in instants[first : first + 10_000]
            ]
            client.post("/jobs/batch", json={"jobs": jobs}).raise_for_status()
    planned = database.execute(
        "SELECT execution_id::text, extract(epoch FROM scheduled_time)::float8 FROM onthedot.executions ORDER BY 2"
    ).fetchall()
    database.rollback()
    return dict(planned)


async def race(url: str, planned: dict[str, float]) -> dict[str, int]:
    """Cancel every tenth execution long before its instant and the others around theirs, but for the last ten.

    Returns the answers' statuses.
    """
    raced = list(planned.items())[:-10]
    async with httpx.AsyncClient(base_url=f"{url}/api/v1", headers=HEADERS, timeout=30) as client:
        answers = await asyncio.gather(
            *(
                _cancel(client, execution_id, instant - 5 if number % 10 == 0 else instant)
                for number, (execution_id, instant) in enumerate(raced)
            )
        )
    return dict(zip(planned, answers, strict=False))


async def _cancel(client: httpx.AsyncClient, execution_id: str, instant: float) -> int:
    await asyncio.sleep(instant + random.uniform(-0.12, 0.02) - time.time())  # noqa: S311 - the race itself
    return (await client.post(f"/executions/{execution_id}/actions/cancel")).status_code


def _text(instant: float) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=instant)).isoformat()


def test_what_was_cancelled_never_runs_and_what_ran_is_named(
    url: str, effects: Path, database: Database
) -> None:
    answers = asyncio.run(race(url, plan(url, database)))

    def all_ended() -> bool:
        left = database.execute("SELECT 1 FROM onthedot.executions LIMIT 1").fetchone()
        database.rollback()
        return left is None

    eventually(all_ended)
    ran = Counter(effects.read_text().split())
    ended = {
        str(execution_id): status
        for execution_id, status in database.execute(
            "SELECT execution_id, status FROM onthedot.execution_history"
        )
    }
    assert len(ended) == RACES
    assert set(answers.values()) <= {200, 202, 409}
    assert not [each for each in ran if answers.get(each) == 200], (
        "it ran after 200 had said that it never would"
    )
    assert {ended[each] for each, status in answers.items() if status == 200} == {"CANCELLED"}
    assert {ended[each] for each in ended.keys() - answers.keys()} == {"COMPLETED"}
    assert all(ran[each] == 1 for each, status in ended.items() if status == "COMPLETED")
