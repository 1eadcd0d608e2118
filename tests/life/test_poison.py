"""What ends its worker is found out and stopped; what was beside it, or was hit by chance, completes."""

import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.life.processes import eventually, has_ended, serving

NEIGHBOURS = 5
SETTINGS = {
    "ROLES": "materializer,worker",
    "WORKER_PROCESSES": "1",
    "LEASE_SECONDS": "3",
    "GRACE_SECONDS": "5",
}
TASKS = "tests.life.poison_tasks"
ENDED = (
    "SELECT status, attempt_number, worker_deaths, error ->> 'category', max_attempts FROM audit.executions"
)
SUSPECTS = "SELECT count(*) FROM onthedot.executions WHERE worker_deaths = 2"
LONE = "SELECT pid FROM onthedot.workers WHERE suspects_only"

Database = psycopg.Connection[tuple[Any, ...]]


class House:
    """A house that runs, its database, and the journal of its handlers."""

    def __init__(self, pid: int, database: Database, folder: Path) -> None:
        self.pid = pid
        self._database = database
        self._journal, self.until = folder / "journal", folder / "until"
        self._journal.touch()

    def run(self, name: str, *, times: int = 1, max_retries: int = 3) -> list[str]:
        """Create executions; return their ids."""
        self._database.execute(
            "INSERT INTO onthedot.tasks (task_id, name, execution_handler, created_by, max_retries)"
            " VALUES (%s, %s, %s, 'test', %s)",
            [name, name, f"python:{name}", max_retries],
        )
        parameters = Jsonb(
            {"journal": str(self._journal), "until": str(self.until), "neighbours": NEIGHBOURS}
        )
        self._database.execute(
            "SELECT onthedot.enqueue(%s, %s) FROM generate_series(1, %s)", [name, parameters, times]
        )
        self._database.commit()
        rows = self.rows("SELECT execution_id::text FROM onthedot.executions WHERE task_id = %s", name)
        return [row[0] for row in rows]

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, as of now."""
        found = self._database.execute(query, values).fetchall()  # type: ignore[arg-type]  # our own text
        self._database.rollback()
        return found

    def ended(self, execution_id: str) -> tuple[Any, ...]:
        """Return how an execution has ended."""
        (row,) = self.rows(f"{ENDED} WHERE execution_id = %s", execution_id)
        return row

    def is_live(self) -> bool:
        """Tell whether anything waits or runs."""
        return bool(self.rows("SELECT FROM onthedot.executions LIMIT 1"))

    def starts(self) -> dict[str, list[int]]:
        """Return the processes in which each execution has begun, one after the other."""
        found = defaultdict(list)
        for line in self._journal.read_text().splitlines():
            execution_id, pid = line.split()
            found[execution_id].append(int(pid))
        return found

    def lone_processes(self) -> list[psutil.Process]:
        """Return the processes for executions that run alone, as `ps` shows them."""
        tree = psutil.Process(self.pid).children(recursive=True)
        return [process for process in tree if _command(process)[-2:] == ["worker", "--suspects"]]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has just ended
        return []


@pytest.fixture
def house(dsn: str, database: Database, tmp_path: Path) -> Iterator[House]:
    """Run a worker and the maintenance."""
    own = {"DATABASE_URL": dsn, "DATA_DIR": str(tmp_path), "TASK_MODULES": TASKS}
    with serving(**SETTINGS | own) as (process, _):
        yield House(process.pid, database, tmp_path)


def test_poison_fails_after_four_starts_and_its_neighbours_complete(house: House) -> None:
    neighbours = house.run("wait", times=NEIGHBOURS, max_retries=0)
    (poison,) = house.run("poison", max_retries=0)

    eventually(lambda: house.rows(SUSPECTS) == [(NEIGHBOURS + 1,)])
    house.until.touch()
    eventually(lambda: not house.is_live())

    assert house.ended(poison) == ("FAILED", 4, 4, "poison", 5)
    # Had one of them been beside it in its last two starts, it would have another death.
    assert {house.ended(neighbour) for neighbour in neighbours} == {("COMPLETED", 3, 2, None, 3)}
    starts = house.starts()
    assert len(starts[poison]) == len(set(starts[poison])) == 4
    first, second, *alone = starts[poison]
    assert {pid for each in neighbours for pid in starts[each]} >= {first, second}
    assert set(alone) <= {pid for (pid,) in house.rows(LONE)}
    eventually(lambda: not house.lone_processes())


def test_what_three_kills_have_hit_by_chance_completes(house: House) -> None:
    (innocent,) = house.run("wait", max_retries=0)
    for deaths in range(3):
        eventually(lambda deaths=deaths: len(house.starts()[innocent]) == deaths + 1)
        os.kill(house.starts()[innocent][-1], signal.SIGKILL)
    eventually(lambda: len(house.starts()[innocent]) == 4)
    lone = house.starts()[innocent][-1]
    assert lone in {process.pid for process in house.lone_processes()}
    assert (lone,) in house.rows(LONE)

    os.kill(psutil.Process(lone).ppid(), signal.SIGKILL)  # it finishes what it has, and goes
    house.until.touch()

    eventually(lambda: not house.is_live())
    assert house.ended(innocent) == ("COMPLETED", 4, 3, None, 4)
    eventually(lambda: has_ended(lone))
