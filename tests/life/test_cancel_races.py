"""Whoever was told that an execution will never run can rely on it, however close to its instant they asked.

The suite runs a smaller case. The one that is promised:

    CANCEL_RACES=10000 pytest --timeout 0 tests/life/test_cancel_races.py
"""

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
from typing import Any, NamedTuple

import aiohttp
import httpx
import psycopg
import pytest

from tests.chaos.proxy import Proxy
from tests.life.processes import environment, eventually, stop

ROOT = Path(__file__).parents[2]
RACES = int(os.environ.get("CANCEL_RACES", "300"))
RACES_A_SECOND = 200 if RACES <= 1000 else 100
"""More than a machine answers in time pile up, and come long after the instants that they are to race with."""
CUTS = RACES // 20
CUT_EVERY_SECONDS = 0.25
"""The network, between everything and PostgreSQL. A busy machine needs longer for an answer: it comes afterwards."""
UNKNOWN = {"request_underway", "database_unavailable"}
"""Answers after which it may have been cancelled or not: the same request is sent again."""
KEY = "r" * 32
HEADERS = {"Authorization": f"Bearer {KEY}"}

Database = psycopg.Connection[tuple[Any, ...]]
TASK_MODULE = """
import os
import time

from app import Context, task

EFFECTS = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@task
async def leave_a_mark(ctx: Context) -> None:
    os.write(EFFECTS, f"{{ctx.execution_id}} {{time.time()}}\\n".encode())
"""


@pytest.fixture
def effects(tmp_path: Path) -> Path:
    """Return the file that each start of `leave_a_mark` adds its execution to, and when it is."""
    path = tmp_path / "effects"
    (tmp_path / "racing_tasks.py").write_text(TASK_MODULE.format(path=str(path)))
    return path


@pytest.fixture
def proxy(dsn: str) -> Iterator[Proxy]:
    with Proxy(dsn) as made:
        yield made


@pytest.fixture(params=[False, True], ids=["calm", "network cut"])
def cuts(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def url(proxy: Proxy, effects: Path, *, cuts: bool) -> Iterator[str]:
    """Run everything against the test's database, by way of the proxy, and return the API's address."""
    own = {
        "DATABASE_URL": proxy.dsn, "DATA_DIR": str(effects.parent), "PORT": "0", "WORKER_PROCESSES": "2",
        "TASK_MODULES": "racing_tasks", "ADMIN_API_KEY": KEY,
        "LEASE_SECONDS": "5" if cuts else "30",
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
        stop(process)


def plan(url: str, database: Database) -> dict[str, float]:
    """Plan the executions; return each one's instant, in seconds since 1970."""
    with httpx.Client(base_url=f"{url}/api/v1", headers=HEADERS, timeout=30) as client:
        task = {"task_id": "mark", "execution_handler": "python:leave_a_mark"}
        client.post("/tasks", json=task).raise_for_status()
        now = time.time()
        planning_seconds = 3 + RACES / 1000
        instants = [now + planning_seconds + number / RACES_A_SECOND for number in range(RACES)]
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


class Answer(NamedTuple):
    """The status of an answer, and when it came, in seconds since 1970."""

    status: int
    at: float


async def race(url: str, planned: dict[str, float]) -> dict[str, Answer]:
    """Cancel every tenth execution long before its instant and the others around theirs, but for the last ten."""
    raced = list(planned.items())[:-10]
    # Not by httpx: it walks through all requests that wait whenever one ends, and 10,000 do.
    timeout = aiohttp.ClientTimeout(total=None, sock_read=30)
    async with aiohttp.ClientSession(f"{url}/api/v1/", headers=HEADERS, timeout=timeout) as client:
        answers = await asyncio.gather(
            *(
                _cancel(client, execution_id, instant - 5 if number % 10 == 0 else instant)
                for number, (execution_id, instant) in enumerate(raced)
            )
        )
    return dict(zip(planned, answers, strict=False))


async def race_with_cuts(url: str, planned: dict[str, float], proxy: Proxy) -> dict[str, Answer]:
    """Do the same while the network is cut again and again."""
    answers, _ = await asyncio.gather(race(url, planned), _cut(proxy))
    return answers


async def _cut(proxy: Proxy) -> None:
    for _ in range(CUTS):
        await asyncio.sleep(CUT_EVERY_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311
        await asyncio.to_thread(proxy.reset)


async def _cancel(client: aiohttp.ClientSession, execution_id: str, instant: float) -> Answer:
    """Cancel around an instant, and again for as long as nobody knows what came of it."""
    await asyncio.sleep(instant + random.uniform(-0.12, 0.02) - time.time())  # noqa: S311 - the race itself
    key = {"Idempotency-Key": execution_id}
    while True:
        async with client.post(f"executions/{execution_id}/actions/cancel", headers=key) as answer:
            document = await answer.json(content_type=None)
        if document.get("code") not in UNKNOWN:
            return Answer(answer.status, time.time())


def _text(instant: float) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=instant)).isoformat()


def test_what_was_cancelled_never_runs_and_nothing_is_lost(
    url: str, proxy: Proxy, effects: Path, database: Database, *, cuts: bool
) -> None:
    planned = plan(url, database)
    answers = asyncio.run(race_with_cuts(url, planned, proxy) if cuts else race(url, planned))

    def all_ended() -> bool:
        left = database.execute("SELECT 1 FROM onthedot.executions LIMIT 1").fetchone()
        database.rollback()
        return left is None

    eventually(all_ended)
    starts = [line.split() for line in effects.read_text().splitlines()]
    ran = Counter(execution_id for execution_id, _ in starts)
    cancelled = {each: answer.at for each, answer in answers.items() if answer.status == 200}
    ended = {
        str(execution_id): status
        for execution_id, status in database.execute(
            "SELECT execution_id, status FROM onthedot.execution_history"
        )
    }
    assert len(ended) == RACES
    assert {answer.status for answer in answers.values()} <= {200, 202, 409}
    assert not [each for each, at in starts if each in cancelled and float(at) > cancelled[each]], (
        "it ran after 200 had said that it never would"
    )
    # An attempt whose lease was lost may have begun before: what 200 says is that there will be no other.
    assert cuts or cancelled.keys().isdisjoint(ran)
    assert {ended[each] for each in cancelled} <= {"CANCELLED"}
    # A machine that is slow, too, may answer every request only after the last instant.
    assert cuts or cancelled
    assert {ended[each] for each in ended.keys() - answers.keys()} == {"COMPLETED"}
    # What a worker was told of by a reply that was lost is begun elsewhere when its lease is over.
    runs = {ran[each] for each, status in ended.items() if status == "COMPLETED"}
    assert min(runs) == 1
    assert cuts or max(runs) == 1
