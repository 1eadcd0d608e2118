"""What workers that have nothing to do cost the database, and that they still look often enough."""

import time
from pathlib import Path

import psycopg

from tests.chaos.proxy import Proxy
from tests.life.processes import eventually, serving

WORKERS = 3
LOOKS = 4
"""Of each worker, to be measured over."""
MOST_A_SECOND = 2.2
"""Statements of an idle worker: 1.6. It looks for work each 0.9 s, at queues each 10 s, beats each 5 s and notifies
itself each 10 s."""
CLOCK = "SELECT clock_timestamp()"
CLOCK_STATEMENTS = 4
"""By which each sets its clock, at its start and each 10 s."""


def test_idle_workers_ask_little(dsn: str, database: psycopg.Connection[tuple[int]], tmp_path: Path) -> None:
    database.autocommit = True

    def are_at_work() -> bool:
        row = database.execute("SELECT count(*) FROM onthedot.workers").fetchone()
        return row == (WORKERS,)

    with Proxy(dsn) as proxy:
        settings = {"DATABASE_URL": proxy.dsn, "DATA_DIR": str(tmp_path), "ROLES": "worker"}
        with serving(WORKER_PROCESSES=str(WORKERS), **settings):
            eventually(are_at_work)
            proxy.statements.clear()
            began = time.monotonic()
            eventually(lambda: proxy.statements["-- peek"] >= WORKERS * LOOKS)
            asked, seconds = proxy.statements.copy(), time.monotonic() - began

    assert asked.pop(CLOCK, 0) <= WORKERS * CLOCK_STATEMENTS * (seconds / 10 + 2)
    assert asked.total() <= WORKERS * MOST_A_SECOND * (seconds + 1), asked
