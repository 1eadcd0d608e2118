"""Workers, or all processes, die without a word: what ran is run again, and every extra start is explained.

The suite runs a smaller case. The one that is promised:

    CRASH_JOBS=200 CRASH_SECONDS=4 CRASH_LEASE_SECONDS=5 CRASH_SLACK_SECONDS=2 \\
    pytest tests/life/test_crash.py --log-cli-level=INFO
"""

import logging
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest

from app.db.embedded import EmbeddedPostgres
from tests.life.processes import eventually, has_ended, serving

JOBS = int(os.environ.get("CRASH_JOBS", "100"))
SECONDS = float(os.environ.get("CRASH_SECONDS", "5"))
LEASE_SECONDS = float(os.environ.get("CRASH_LEASE_SECONDS", "3"))
SLACK_SECONDS = float(os.environ.get("CRASH_SLACK_SECONDS", "20"))
"""How much later than its lease an execution may start again; a busy machine takes its time to start processes."""
SETTINGS = {
    "PORT": "0",
    "LEASE_SECONDS": str(LEASE_SECONDS),
    "WORKER_PROCESSES": "2",
    "CONCURRENCY": str(JOBS),
    "GRACE_SECONDS": "0",
}
RUNNING = "SELECT count(*) FROM onthedot.executions WHERE status = 'RUNNING'"
LIVE = "SELECT count(*) FROM onthedot.executions"
COMPLETED = "SELECT count(*) FROM onthedot.execution_history WHERE status = 'COMPLETED'"
EXTRA_STARTS = "SELECT coalesce(sum(attempt_number - 1), 0) FROM onthedot.execution_history"
LOST = "SELECT count(*) FROM onthedot.attempts WHERE outcome = 'lost'"
WORKERS = "SELECT array_agg(pid) FROM onthedot.workers WHERE stopped_at IS NULL"
LOST_BY = (
    "SELECT array_agg(DISTINCT w.pid) FROM onthedot.attempts JOIN onthedot.workers AS w USING (worker_id)"
)
AGAIN = """SELECT percentile_disc(ARRAY[0.5, 1]) WITHIN GROUP (ORDER BY extract(epoch FROM h.started_at)::float8)
             FROM onthedot.execution_history AS h
            WHERE EXISTS (SELECT FROM onthedot.attempts AS a
                           WHERE a.execution_id = h.execution_id AND a.outcome = 'lost')"""
ENDED = """SELECT execution_id::text, task_id, attempt_number, extract(epoch FROM completed_at)::float8
             FROM onthedot.execution_history"""
log = logging.getLogger(__name__)

Database = psycopg.Connection[tuple[Any, ...]]


def one(database: Database, query: str, *values: object) -> Any:
    """Return the one value of a query, as of now."""
    row = database.execute(query, values).fetchone()  # type: ignore[arg-type]  # our own text
    database.rollback()
    assert row is not None
    return row[0]


def kill(pids: Sequence[int]) -> float:
    """Kill processes; return when, in seconds since 1970."""
    killed_at = time.time()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: all(has_ended(pid) for pid in pids))
    return killed_at


def report(what: str, database: Database, since: float) -> float:
    """Log how long after a moment what was lost has started again; return the longest."""
    median, longest = (instant - since for instant in one(database, AGAIN))
    log.info("%s: %d starts again after p50 %.2f s, max %.2f s", what, one(database, LOST), median, longest)
    return float(longest)


@pytest.fixture
def serve(dsn: str, tmp_path: Path) -> Iterator[None]:
    """Run everything but the API against the test's database."""
    own = {"DATABASE_URL": dsn, "DATA_DIR": str(tmp_path), "ROLES": "materializer,worker"}
    with serving(**SETTINGS | own):
        yield


@pytest.mark.usefixtures("serve")
def test_what_killed_workers_ran_is_run_again_and_explained(database: Database) -> None:
    database.execute(
        "INSERT INTO onthedot.tasks (task_id, name, execution_handler, created_by)"
        " VALUES ('sleep', 'sleep', 'builtin:sleep', 'test')"
    )
    database.execute(
        "SELECT onthedot.enqueue('sleep', jsonb_build_object('seconds', %s::float8))"
        "  FROM generate_series(1, %s::int)",
        [SECONDS, JOBS],
    )
    database.commit()
    eventually(lambda: one(database, RUNNING) == JOBS)
    workers = one(database, WORKERS)

    killed_at = kill(workers)
    interrupted = one(database, LIVE)

    eventually(lambda: one(database, LIVE) == 0)
    assert one(database, COMPLETED) == JOBS
    assert one(database, EXTRA_STARTS) == one(database, LOST) == interrupted > 0
    assert set(one(database, LOST_BY)) <= set(workers)
    assert report("workers killed", database, killed_at) < LEASE_SECONDS + SLACK_SECONDS


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """Return a folder for the embedded server; whatever a failed test leaves running in it is stopped."""
    parent = Path(tempfile.mkdtemp(prefix="onthedot-"))
    parent.chmod(0o711)
    yield parent / "data"
    if (parent / "data" / "postgres" / "postmaster.pid").exists():
        left = EmbeddedPostgres(parent / "data", max_connections=100)
        left.start()
        left.stop()
    shutil.rmtree(parent)


class Producer(threading.Thread):
    """Creates jobs one after the other until the API is gone, and knows which of them were accepted."""

    def __init__(self, api: httpx.Client) -> None:
        super().__init__(daemon=True)
        self._api = api
        self.accepted: set[str] = set()

    def run(self) -> None:
        """Create jobs."""
        body = {"task_id": "noop", "schedule": {"type": "IMMEDIATE"}}
        with suppress(httpx.HTTPError):
            while True:
                answer = self._api.post("/jobs", json=body).raise_for_status()
                self.accepted.add(answer.json()["execution_id"])


def whole_tree(supervisor: "subprocess.Popen[str]", data_dir: Path) -> list[int]:
    """Return the supervisor, all it has started, and the database server."""
    children = psutil.Process(supervisor.pid).children(recursive=True)
    postmaster = int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])
    return [supervisor.pid, *(child.pid for child in children), postmaster]


def create(api: httpx.Client) -> None:
    """Create the tasks and the jobs that sleep."""
    for task_id in ("sleep", "noop"):
        api.post(
            "/tasks", json={"task_id": task_id, "execution_handler": f"builtin:{task_id}"}
        ).raise_for_status()
    job = {"task_id": "sleep", "schedule": {"type": "IMMEDIATE"}, "parameters": {"seconds": SECONDS}}
    api.post("/jobs/batch", json={"jobs": [job] * JOBS}).raise_for_status()


def test_nothing_is_lost_when_everything_is_killed_at_once(data_dir: Path) -> None:
    own = SETTINGS | {"DATA_DIR": str(data_dir), "ADMIN_API_KEY": secrets.token_hex(16)}
    headers = {"Authorization": f"Bearer {own['ADMIN_API_KEY']}"}
    with (
        serving(**own) as (first, ready),
        httpx.Client(base_url=f"{ready.split()[-1]}/api/v1", headers=headers, timeout=30) as api,
    ):
        create(api)
        with psycopg.connect((data_dir / "dsn").read_text().strip()) as database:
            eventually(lambda: one(database, f"{RUNNING} AND task_id = 'sleep'") == JOBS)
            workers = one(database, WORKERS)
        producer = Producer(api)
        producer.start()
        eventually(lambda: len(producer.accepted) >= JOBS // 2)
        killed_at = kill(whole_tree(first, data_dir))
        producer.join()

    started_at = time.time()
    with (
        serving(**own) as (_, ready),
        psycopg.connect((data_dir / "dsn").read_text().strip()) as database,
    ):
        ready_at = time.time()
        log.info("all killed: ready again in %.2f s", ready_at - started_at)
        eventually(lambda: one(database, LIVE) == 0)
        report("all killed, from the second start on", database, started_at)
        longest = report("all killed, from readiness on", database, ready_at)
        ended = database.execute(ENDED).fetchall()
        assert producer.accepted <= {execution_id for execution_id, *_ in ended}
        assert len(ended) == one(database, COMPLETED) == len({row[0] for row in ended})
        slept = [(number, at) for _, task_id, number, at in ended if task_id == "sleep"]
        assert len(slept) == JOBS
        assert slept == [(2 if at > killed_at else 1, at) for _, at in slept]
        assert one(database, EXTRA_STARTS) == one(database, LOST) > 0
        assert set(one(database, LOST_BY)) <= set(workers)
        assert longest < LEASE_SECONDS + SLACK_SECONDS
