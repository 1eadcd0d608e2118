"""Processes end as they were asked to: what runs may finish, or is given back at once, and nobody is turned away."""

import http.client
import json
import logging
import secrets
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count, cycle, pairwise
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.life.processes import ROOT, environment, eventually, serving

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


class Client(threading.Thread):
    """Creates jobs without a pause, at two servers in turn, over connections that it keeps.

    As a balancer does, it leaves out one that refuses connections, and one that has said goodbye until it is `back`.
    Whatever else goes wrong is a failed request.
    """

    def __init__(self, ports: list[int], key: str) -> None:
        super().__init__(daemon=True)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._open: dict[int, http.client.HTTPConnection] = {}
        self._usable = {port: threading.Event() for port in ports}
        self._done = threading.Event()
        self.answered = 0
        self.failed: list[str] = []
        for port in ports:
            self.back(port)

    def back(self, port: int) -> None:
        self._usable[port].set()

    def finish(self) -> None:
        self._done.set()
        self.join()
        for connection in self._open.values():
            connection.close()

    def run(self) -> None:
        for port in cycle(self._usable):
            if self._done.is_set():
                return
            if self._usable[port].is_set():
                try:
                    self._create_job(port)
                except ConnectionRefusedError:
                    self._usable[port].clear()
                except (OSError, http.client.HTTPException) as error:
                    self.failed.append(repr(error))

    def _create_job(self, port: int) -> None:
        connection = self._connection(port)
        body = {"task_id": "sleep", "schedule": {"type": "IMMEDIATE"}, "parameters": {"seconds": 0}}
        connection.request("POST", "/api/v1/jobs", json.dumps(body), self._headers)
        answer = connection.getresponse()
        if answer.will_close:
            self._usable[port].clear()
        if answer.read() and answer.status == http.client.CREATED:
            self.answered += 1
        else:
            self.failed.append(f"{answer.status}")

    def _connection(self, port: int) -> http.client.HTTPConnection:
        """Return the connection that is kept, or a new one where the server has ended it meanwhile."""
        kept = self._open.get(port)
        if kept is None or kept.sock is None or select.select([kept.sock], [], [], 0)[0]:
            if kept is not None:
                kept.close()
            kept = self._open[port] = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            kept.connect()
        return kept


def free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [each.getsockname()[1] for each in sockets]


def test_api_servers_are_replaced_under_load_and_no_request_fails(
    dsn: str, now: Database, tmp_path: Path
) -> None:
    key, ports = secrets.token_hex(16), free_ports(2)
    own = {"DATABASE_URL": dsn, "DATA_DIR": str(tmp_path), "ROLES": "api", "ADMIN_API_KEY": key}
    client = Client(ports, key)
    with ExitStack() as later:
        servers = {port: later.enter_context(serving(**own, PORT=str(port)))[0] for port in ports}
        client.start()
        for port, server in servers.items():
            before = client.answered
            eventually(lambda: client.answered > before + 50)  # noqa: B023 - asked at once
            server.terminate()
            assert server.wait() == 0
            if port == ports[0]:
                later.enter_context(serving(**own, PORT=str(port)))
                client.back(port)
        client.finish()

    log.info("%d requests answered", client.answered)
    assert client.failed == []
    assert one(now, LIVE) == client.answered


def test_who_waits_for_an_execution_is_answered_when_the_server_stops(
    dsn: str, now: Database, tmp_path: Path
) -> None:
    key = secrets.token_hex(16)
    own = {"DATABASE_URL": dsn, "DATA_DIR": str(tmp_path), "ROLES": "api", "ADMIN_API_KEY": key, "PORT": "0"}
    with serving(**own) as (server, line), ThreadPoolExecutor() as threads:
        body = {"task_id": "sleep", "schedule": {"type": "IMMEDIATE"}, "parameters": {"seconds": 0}}
        headers = {"Authorization": f"Bearer {key}"}
        asked = threads.submit(
            httpx.post, f"{line.split()[-1]}/api/v1/jobs?wait=60", json=body, headers=headers, timeout=60
        )
        eventually(lambda: one(now, LIVE) == 1)
        server.terminate()

        answer = asked.result()
        assert answer.headers["Connection"] == "close"
        assert (answer.status_code, answer.json()["execution"]["status"]) == (201, "PENDING")
        assert server.wait() == 0
