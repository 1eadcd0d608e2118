"""What PostgreSQL's own log says is read as it was committed."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from app.db.pools import open_pool
from tests.chaos.history import History
from tests.chaos.server import ChaosServer
from tests.chaos.wal import changes, make_slot, read_slot
from tests.factories import make_execution, make_finished

LINES = """BEGIN 700
table onthedot.jobs_p1: INSERT: job_id[uuid]:'a'
COMMIT 700 (at 2026-01-31 10:00:00.5+00)
BEGIN 701
table onthedot.executions_p1: UPDATE: old-key: execution_id[uuid]:'old' new-tuple: execution_id[uuid]:'e' \
status[text]:'RUNNING' lease_epoch[bigint]:7 worker_id[uuid]:null parameters[jsonb]:'{"key": "it''s [x]:y"}' \
tags[text[]]:'{a,b}' due_at[timestamp with time zone]:'2026-01-31 10:00:00+00'
table onthedot.attempts_20260131: INSERT: execution_id[uuid]:'e' outcome[text]:'lost'
COMMIT 701 (at 2026-01-31 10:00:01+00)""".splitlines()


def test_a_transaction_is_read_when_it_is_committed() -> None:
    found = list(changes(LINES))

    assert [(c.transaction, c.table, c.action, c.execution_id) for c in found] == [
        (1, "executions", "update", "e"),
        (1, "attempts", "insert", "e"),
    ]
    assert found[0].columns == {
        "execution_id": "e",
        "status": "RUNNING",
        "lease_epoch": "7",
        "worker_id": None,
        "parameters": '{"key": "it\'s [x]:y"}',
        "due_at": "2026-01-31 10:00:00+00",
    }
    assert found[0].at == 1769853601.0


def test_what_is_not_committed_is_not_read() -> None:
    assert list(changes(LINES[:-1])) == []


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ChaosServer]:
    tmp_path.chmod(0o711)
    made = ChaosServer.create(tmp_path / "server")
    made.migrate()
    yield made
    made.destroy()


async def test_the_log_of_a_server_tells_what_was_committed_in_its_order(server: ChaosServer) -> None:
    make_slot(server.dsn)
    async with await open_pool(server.dsn, size=1, application_name="test") as pool:
        live = await make_execution(pool, parameters='{"key": "live"}')
        done = await make_finished(pool, parameters='{"key": "done"}')
    with psycopg.connect(server.dsn) as connection:
        connection.execute("UPDATE onthedot.executions SET priority = 1")
        connection.rollback()

    history = History(asked=[], effects=[], changes=read_slot(server.dsn), faults=[], clocks=[])

    assert [(life.execution_id, life.key, len(life.steps)) for life in history.lives.values()] == [
        (str(live), "live", 1),
        (str(done), "done", 1),
    ]
    assert [step.after.status for life in history.lives.values() for step in life.steps if step.after] == [
        "PENDING",
        "COMPLETED",
    ]
