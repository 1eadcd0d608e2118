"""Workers die without a word; what they ran is run again, and every extra start is explained."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.life.processes import environment, eventually, has_ended

ROOT = Path(__file__).parents[2]
JOBS = 100

Database = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def serve(dsn: str, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run everything against the test's database, with short leases."""
    own = {
        "DATABASE_URL": dsn, "DATA_DIR": str(tmp_path), "PORT": "0", "LEASE_SECONDS": "2", "WORKER_PROCESSES": "2",
        "GRACE_SECONDS": "0", "ROLES": "materializer,worker", "CONCURRENCY": "60",
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "serve"], cwd=ROOT, env=environment(**own), start_new_session=True
    )
    yield process
    process.terminate()
    process.wait(60)


def one(database: Database, query: str) -> Any:
    """Return the one value of a query, as of now."""
    row = database.execute(query).fetchone()  # type: ignore[arg-type]  # our own text
    database.rollback()
    assert row is not None
    return row[0]


@pytest.mark.usefixtures("serve")
def test_what_killed_workers_ran_is_run_again_and_explained(database: Database) -> None:
    database.execute(
        "INSERT INTO onthedot.tasks (task_id, name, execution_handler, created_by)"
        " VALUES ('sleep', 'sleep', 'builtin:sleep', 'test')"
    )
    database.execute(
        "SELECT onthedot.enqueue('sleep', '{\"seconds\": 2}') FROM generate_series(1, %s::int)", [JOBS]
    )
    database.commit()
    running = "SELECT count(*) FROM onthedot.executions WHERE status = 'RUNNING'"
    eventually(lambda: one(database, running) == JOBS)
    workers = one(database, "SELECT array_agg(pid) FROM onthedot.workers WHERE stopped_at IS NULL")

    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: all(has_ended(pid) for pid in workers))
    interrupted = one(database, "SELECT count(*) FROM onthedot.executions")

    eventually(lambda: one(database, "SELECT count(*) FROM onthedot.executions") == 0)
    completed = "SELECT count(*) FROM onthedot.execution_history WHERE status = 'COMPLETED'"
    assert one(database, completed) == JOBS
    extra_starts = one(database, "SELECT sum(attempt_number - 1) FROM onthedot.execution_history")
    lost = one(database, "SELECT count(*) FROM onthedot.attempts WHERE outcome = 'lost'")
    assert interrupted > 0
    assert extra_starts == lost == interrupted
    dead = one(
        database,
        "SELECT array_agg(DISTINCT w.pid) FROM onthedot.attempts JOIN onthedot.workers w USING (worker_id)",
    )
    assert set(dead) <= set(workers)
