"""No more runs at once than a limit says, whoever is killed, frozen or started; and no limit stays taken.

What ran is read from what handlers wrote down, not from the database. The suite runs a smaller case. The one that is
promised:

    LIMIT_JOBS=600 LIMIT_KILLS=10 LIMIT_FREEZES=10 LIMIT_ROUNDS=30 LIMIT_SLACK_SECONDS=2 \\
    pytest tests/life/test_limits.py --log-cli-level=INFO
"""

import logging
import os
import random
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil
import psycopg
import pytest

from tests.life import limit_tasks
from tests.life.processes import eventually, has_ended, serving

JOBS = int(os.environ.get("LIMIT_JOBS", "100"))
KILLS = int(os.environ.get("LIMIT_KILLS", "1"))
FREEZES = int(os.environ.get("LIMIT_FREEZES", "1"))
ROUNDS = int(os.environ.get("LIMIT_ROUNDS", "1"))
LEASE_SECONDS = float(os.environ.get("LIMIT_LEASE_SECONDS", "3"))
SLACK_SECONDS = float(os.environ.get("LIMIT_SLACK_SECONDS", "20"))
"""How much later than its lease a killed worker's place is free again; a busy machine takes its time."""
QUOTA = 5
SETTINGS = {
    "ROLES": "materializer,worker",
    "PORT": "0",
    "LEASE_SECONDS": str(LEASE_SECONDS),
    "CONCURRENCY": "20",
    "GRACE_SECONDS": "0",
    "TASK_MODULES": limit_tasks.__name__,
}
LIVE = "SELECT count(*) FROM onthedot.executions"
HOLDERS = "SELECT count(*) FROM onthedot.limit_holders"
COMPLETED = "SELECT count(*) FROM onthedot.execution_history WHERE status = 'COMPLETED'"
HELD_BY = """SELECT array_agg(h.execution_id), array_agg(h.lease_epoch)
               FROM onthedot.limit_holders AS h
               JOIN onthedot.executions AS e USING (execution_id, lease_epoch)
               JOIN onthedot.workers AS w USING (worker_id)
              WHERE w.pid = %s"""
HELD_STILL = """SELECT count(*) FROM onthedot.limit_holders
                  JOIN unnest(%s::uuid[], %s::int8[]) AS x (execution_id, lease_epoch)
                 USING (execution_id, lease_epoch)"""
OF_JOBS = """SELECT j.name, e.execution_id::text FROM onthedot.jobs AS j
               JOIN (SELECT job_id, execution_id FROM onthedot.executions WHERE attempt_number > 0
                      UNION ALL SELECT job_id, execution_id FROM onthedot.execution_history) AS e USING (job_id)"""
log = logging.getLogger(__name__)

Database = psycopg.Connection[tuple[Any, ...]]


class Run(NamedTuple):
    """A handler's run: moments of the monotonic clock."""

    began: float
    ended: float
    pid: int
    execution_id: str


class House:
    """A database with a limited user, and what handlers have written down."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder / "effects"
        self.folder.mkdir()
        self.killed: dict[int, float] = {}
        """When killed processes were surely gone."""
        self.frozen: list[tuple[int, float, float]] = []
        """Processes, when they were stopped and when they went on."""

    def limit(self, most: int) -> None:
        """Limit what runs of the one who creates jobs here."""
        self._write(
            "INSERT INTO onthedot.users (user_id, name, role, max_concurrent_jobs)"
            " VALUES (lower(session_user), 'x', 'operator', %s)",
            most,
        )
        self._write(
            "INSERT INTO onthedot.tasks (task_id, name, execution_handler, created_by, max_retries)"
            " VALUES ('limited', 'limited', 'python:limited', 'test', 30)"
        )

    def rate(self, per_second: float, burst: int) -> None:
        """Limit how much of that task begins each second."""
        self._write("UPDATE onthedot.tasks SET rate_per_second = %s, rate_burst = %s", per_second, burst)

    def create(self, count: int, seconds: tuple[float, float]) -> None:
        """Create jobs that take as long as one of a range."""
        low, high = seconds
        self._write(
            "SELECT onthedot.enqueue('limited', jsonb_build_object('seconds', %s + random() * %s::float8))"
            "  FROM generate_series(1, %s)",
            low, high - low, count,
        )  # fmt: skip

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, as of now."""
        found = self.database.execute(query, values).fetchall()  # type: ignore[arg-type]  # our own text
        self.database.rollback()
        return found

    def one(self, query: str, *values: object) -> Any:
        """Return the one value of a query, as of now."""
        return self.rows(query, *values)[0][0]

    def kill(self, pid: int) -> float:
        """Kill a process; return when it was surely gone."""
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: has_ended(pid))
        self.killed[pid] = time.monotonic()
        return self.killed[pid]

    @contextmanager
    def stopped(self, pid: int) -> Iterator[None]:
        """Stop a process here, and let it go on at the end."""
        os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        try:
            yield
        finally:
            self.frozen.append((pid, began, time.monotonic()))
            os.kill(pid, signal.SIGCONT)

    def runs(self) -> list[Run]:
        """Return all runs. One that was killed ended then; one that goes on goes on for ever."""
        begun: dict[tuple[str, ...], float] = {}
        found = []
        for path in self.folder.iterdir():
            for line in path.read_text(encoding="utf-8").splitlines():
                at, what, *which = line.split()
                if what == "begin":
                    begun[tuple(which)] = float(at)
                else:
                    found.append(self._run(begun.pop(tuple(which)), float(at), which))
        return found + [
            self._run(began, self.killed.get(int(which[0]), float("inf")), which)
            for which, began in begun.items()
        ]

    def stale(self) -> list[Run]:
        """Return those that were frozen while they ran: others may have begun what they go on with."""
        return [run for run in self.runs() if self._froze(run) is not None]

    def most_at_once(self, among: "set[str] | None" = None) -> int:
        """Return how many ran at once, at most; of one that was frozen only what was before counts."""
        marks = []
        for run in self.runs():
            if among is not None and run.execution_id not in among:
                continue
            froze = self._froze(run)
            marks += [(run.began, 1), (run.ended if froze is None else froze, -1)]
        now = most = 0
        for _, change in sorted(marks):
            now += change
            most = max(most, now)
        return most

    def _froze(self, run: Run) -> float | None:
        return next(
            (began for pid, began, _ in self.frozen if pid == run.pid and run.began < began < run.ended), None
        )

    def _run(self, began: float, ended: float, which: "list[str] | tuple[str, ...]") -> Run:
        return Run(began, ended, int(which[0]), which[1])

    def _write(self, query: str, *values: object) -> None:
        self.database.execute(query, values)  # type: ignore[arg-type]  # our own text
        self.database.commit()


@pytest.fixture
def house(database: Database, tmp_path: Path) -> House:
    return House(database, tmp_path)


@pytest.fixture
def settings(house: House, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return what a house of this test is started with."""
    monkeypatch.setenv(limit_tasks.FOLDER, str(house.folder))
    return SETTINGS | {"DATABASE_URL": dsn, "DATA_DIR": str(tmp_path / "data")}


def all_done(house: House, jobs: int) -> None:
    """Wait until all jobs have completed and nothing counts against any limit."""
    eventually(lambda: house.one(LIVE) == 0)
    assert house.one(COMPLETED) == jobs
    eventually(lambda: house.one(HOLDERS) == 0)
    assert len({run.execution_id for run in house.runs()}) == jobs


def running_now(house: House) -> list[int]:
    """Return the processes that run something, once there are any."""
    found: list[int] = []

    def look() -> bool:
        known = {pid for pid, *_ in house.frozen}
        found[:] = [run.pid for run in house.runs() if run.ended == float("inf") and run.pid not in known]
        return bool(found)

    eventually(look)
    return sorted(found)


def test_a_quota_holds_while_workers_race_and_are_killed(house: House, settings: dict[str, str]) -> None:
    chance, freed = random.Random(7), []  # noqa: S311 - a test's choices, not a secret
    house.limit(QUOTA)
    house.create(JOBS, (0.05, 0.2))
    with serving(**settings | {"WORKER_PROCESSES": "4"}):
        for number in range(KILLS):
            enough = (number + 1) * JOBS // (KILLS + 2)
            eventually(lambda enough=enough: house.one(COMPLETED) >= enough)  # type: ignore[misc]
            pid = chance.choice(running_now(house))
            held = house.rows(HELD_BY, pid)[0]
            killed_at = house.kill(pid)
            eventually(lambda held=held: house.one(HELD_STILL, *held) == 0)  # type: ignore[misc]
            freed.append(time.monotonic() - killed_at)
        all_done(house, JOBS)

    log.info("%d runs, at most %d at once; freed after %s s", len(house.runs()), house.most_at_once(), freed)
    assert house.most_at_once() == QUOTA
    assert max(freed) < LEASE_SECONDS + SLACK_SECONDS


def test_a_worker_that_comes_back_from_a_freeze_lets_nobody_else_in(
    house: House, settings: dict[str, str]
) -> None:
    jobs = 10 * FREEZES
    house.limit(1)
    house.create(jobs, (0.1, 0.1))
    with serving(**settings | {"WORKER_PROCESSES": "3"}):
        for number in range(FREEZES):
            eventually(lambda enough=8 * number + 1: house.one(COMPLETED) >= enough)  # type: ignore[misc]
            with house.stopped(running_now(house)[0]):
                completed = house.one(COMPLETED)
                eventually(lambda completed=completed: house.one(COMPLETED) > completed + 1)  # type: ignore[misc]
        all_done(house, jobs)

    log.info("%d runs, %d of them went on after a freeze", len(house.runs()), len(house.stale()))
    assert house.most_at_once() == 1


def test_a_limit_holds_when_everything_is_killed_and_started_at_once(
    house: House, settings: dict[str, str]
) -> None:
    house.limit(1)
    for number in range(ROUNDS):
        with serving(**settings | {"WORKER_PROCESSES": "3"}) as (supervisor, _):
            house.create(
                3, (0.3, 0.3)
            )  # not before: on a busy machine one worker is done with them before all are ready
            running_now(house)
            tree = [supervisor, *psutil.Process(supervisor.pid).children(recursive=True)]
            for process in tree:
                os.kill(process.pid, signal.SIGKILL)
            for process in tree:
                eventually(lambda pid=process.pid: has_ended(pid))  # type: ignore[misc]
                house.killed[process.pid] = time.monotonic()
        with serving(**settings | {"WORKER_PROCESSES": "3"}):
            all_done(house, 3 * (number + 1))

    assert house.most_at_once() == 1
    assert len(house.runs()) > 3 * ROUNDS


RATE, BURST, RATED = 20.0, 5, int(os.environ.get("LIMIT_RATED", "50"))
CLOCKS_SECONDS = 0.1
"""How far a worker's idea of the database's time may be off."""
STARTS = """SELECT extract(epoch FROM claimed_at)::float8, extract(epoch FROM started_at)::float8
              FROM onthedot.execution_history ORDER BY started_at"""


def test_no_more_begin_in_any_span_than_a_rate_allows(house: House, settings: dict[str, str]) -> None:
    house.limit(1000)
    house.rate(RATE, BURST)
    with serving(**settings | {"WORKER_PROCESSES": "3"}):
        house.create(RATED, (0.0, 0.0))
        all_done(house, RATED)

    starts = house.rows(STARTS)
    log.info("%d began within %.2f s", RATED, starts[-1][1] - starts[0][1])
    assert most_beyond(starts) <= 0


def most_beyond(starts: list[tuple[Any, ...]]) -> float:
    """Return by how many more began in some span than may; their tokens were taken since the first was claimed."""
    beyond = []
    for first in range(len(starts)):
        since = starts[first][0]
        for last in range(first, len(starts)):
            since = min(since, starts[last][0])
            seconds = starts[last][1] - since + CLOCKS_SECONDS
            beyond.append(last - first + 1 - (BURST + RATE * seconds))
    return max(beyond)


OVERLAPS = ("queue", "skip", "cancel_running")


def test_executions_of_a_job_do_not_overlap_though_their_workers_are_killed(
    house: House, settings: dict[str, str]
) -> None:
    own = settings | {"ROLES": "api,materializer,worker", "ADMIN_API_KEY": secrets.token_hex(16)}
    with (
        serving(**own | {"WORKER_PROCESSES": "3"}) as (_, ready),
        httpx.Client(
            base_url=f"{ready.split()[-1]}/api/v1",
            headers={"Authorization": f"Bearer {own['ADMIN_API_KEY']}"},
            timeout=30,
        ) as api,
    ):
        task = {
            "task_id": "limited",
            "execution_handler": "python:limited",
            "resource_requirements": {"max_retries": 30},
        }
        api.post("/tasks", json=task).raise_for_status()
        for overlap in OVERLAPS:
            job = {
                "name": overlap,
                "task_id": "limited",
                "schedule": {"type": "INTERVAL", "every": 1},
                "overlap": overlap,
            }
            api.post("/jobs", json=job | {"parameters": {"seconds": 1.2}}).raise_for_status()
        for number in range(1 + KILLS):
            eventually(lambda enough=2 * number + 2: min(begun(house).values()) >= enough)  # type: ignore[misc]
            if number < KILLS:
                house.kill(running_now(house)[0])

    ids = ran_of(house)
    log.info("begun: %s", begun(house))
    assert {overlap: house.most_at_once(ids[overlap]) for overlap in OVERLAPS} == dict.fromkeys(OVERLAPS, 1)


def ran_of(house: House) -> dict[str, set[str]]:
    """Return the executions of each job."""
    found: dict[str, set[str]] = {overlap: set() for overlap in OVERLAPS}
    for name, execution_id in house.rows(OF_JOBS):
        found[name].add(execution_id)
    return found


def begun(house: House) -> dict[str, int]:
    """Return how often each job has begun."""
    runs = [run.execution_id for run in house.runs()]
    return {name: sum(run in ids for run in runs) for name, ids in ran_of(house).items()}
