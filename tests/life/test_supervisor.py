"""The process tree of `serve`, with stand-ins for its processes: started, kept alive, stopped in order."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from app.child_process import ChildProcess
from app.children import SupervisorLine
from app.settings import SUPERVISOR_FD
from tests.life.processes import DEADLINE_SECONDS, eventually, has_ended

ROOT = Path(__file__).parents[2]

# argv: journal. Settings come from the environment.
SUPERVISE = """
import asyncio, sys
from app.child_process import ChildFailed
from app.settings import Settings
from app.supervisor import Supervisor

async def main():
    supervisor = Supervisor(Settings.from_env(), command=lambda name: [sys.executable, *sys.argv[1:], name])
    await supervisor.run(on_ready=lambda: print("ready", flush=True))

try:
    asyncio.run(main())
except ChildFailed as error:
    sys.exit(str(error))
"""

# argv: journal, the processes that misbehave and how, name. Writes what happens to it into the journal.
WORK = """
import os, signal, subprocess, sys
from app.child_process import ChildProcess
from app.children import SupervisorLine

journal, misbehaving, how, name = sys.argv[1:]
how = how if name in misbehaving else ""

def note(event):
    with open(journal, "a") as file:
        file.write(f"{name} {event} {os.getpid()}\\n")

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
line = SupervisorLine.from_env()
line.exit_with_parent(grace_seconds=1)
note("started")
if how == "fails":
    sys.exit(f"{name} cannot work")
if how == "leaves":
    note(f"helper:{subprocess.Popen(['sleep', '600']).pid}")
line.report_ready()
note("asked:" + signal.sigwait({signal.SIGTERM, signal.SIGINT}).name)
while how == "stubborn":
    note("asked:" + signal.sigwait({signal.SIGTERM, signal.SIGINT}).name)
note("ended")
"""


class Tree:
    """A supervisor in a session of its own, as if started from a terminal, and its children's journal."""

    def __init__(self, folder: Path, *, misbehaving: str = "", how: str = "", **settings: str) -> None:
        self.journal = folder / "journal"
        self.journal.touch()
        child, supervisor = folder / "work.py", folder / "supervise.py"
        child.write_text(WORK)
        supervisor.write_text(SUPERVISE)
        variables = {f"ONTHEDOT_{name.upper()}": value for name, value in settings.items()}
        self.process = subprocess.Popen(
            [sys.executable, str(supervisor), str(child), str(self.journal), misbehaving, how],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "ONTHEDOT_WORKER_PROCESSES": "2", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_ready(self) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline() == "ready\n"

    def finish(self) -> tuple[int, str]:
        """Return the exit status and what stood on standard error."""
        _, errors = self.process.communicate(timeout=DEADLINE_SECONDS)
        return self.process.returncode, errors

    def events(self) -> list[str]:
        """Return what happened, without pids: `worker started`."""
        return [line.rpartition(" ")[0] for line in self.journal.read_text().splitlines()]

    def pids(self, event: str) -> list[int]:
        lines = [line.rpartition(" ") for line in self.journal.read_text().splitlines()]
        return [int(pid) for happened, _, pid in lines if happened == event]

    def helper_pid(self) -> int:
        return next(int(event.partition("helper:")[2]) for event in self.events() if "helper:" in event)


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Callable[..., Tree]]:
    trees: list[Tree] = []

    def make(**options: str) -> Tree:
        trees.append(Tree(tmp_path, **options))
        return trees[-1]

    yield make
    for tree in trees:
        tree.process.kill()  # its children follow
        tree.finish()


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ("api,materializer,worker", ["api", "api", "maintenance", "worker", "worker"]),
        ("worker", ["worker", "worker"]),
        ("materializer", ["maintenance"]),
    ],
)
def test_is_ready_when_every_process_of_its_roles_is(
    plant: Callable[..., Tree], roles: str, expected: list[str]
) -> None:
    tree = plant(roles=roles, api_processes="2")
    tree.wait_ready()
    assert sorted(tree.events()) == [f"{name} started" for name in expected]


def test_ctrl_c_in_the_terminal_reaches_only_the_supervisor_which_lets_all_finish_the_api_last(
    plant: Callable[..., Tree],
) -> None:
    tree = plant()
    tree.wait_ready()
    os.killpg(tree.process.pid, signal.SIGINT)
    assert tree.finish() == (0, "")
    stopping = tree.events()[4:]
    assert stopping[-2:] == ["api asked:SIGTERM", "api ended"]
    assert sorted(stopping[:-2]) == sorted(
        f"{name} {event}"
        for name in ("maintenance", "worker", "worker")
        for event in ("asked:SIGTERM", "ended")
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_stop_it_too(plant: Callable[..., Tree], number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # these tests, too, may be run under nohup
    tree = plant()
    signal.signal(number, before)
    tree.wait_ready()
    tree.process.send_signal(number)
    assert tree.finish() == (0, "")
    assert tree.events()[-1] == "api ended"


def test_second_signal_hurries_what_does_not_end(plant: Callable[..., Tree]) -> None:
    tree = plant(misbehaving="worker", how="stubborn", grace_seconds="3600")
    tree.wait_ready()
    tree.process.terminate()
    eventually(lambda: tree.events().count("worker asked:SIGTERM") == 2)
    tree.process.terminate()
    status, _ = tree.finish()
    assert status == 0
    assert tree.events().count("worker asked:SIGTERM") == 4
    assert all(has_ended(pid) for pid in tree.pids("worker started"))


def test_what_does_not_end_within_its_grace_is_killed(plant: Callable[..., Tree]) -> None:
    tree = plant(roles="worker", misbehaving="worker", how="stubborn", grace_seconds="0")
    tree.wait_ready()
    tree.process.terminate()
    status, _ = tree.finish()
    assert status == 0
    assert "worker ended" not in tree.events()
    assert all(has_ended(pid) for pid in tree.pids("worker started"))


def test_process_that_dies_is_started_again(plant: Callable[..., Tree]) -> None:
    tree = plant()
    tree.wait_ready()
    first, second = tree.pids("worker started")
    os.kill(first, signal.SIGKILL)
    eventually(lambda: len(tree.pids("worker started")) == 3)
    assert not has_ended(second)


def test_what_a_dead_process_left_in_its_group_ends_with_it(plant: Callable[..., Tree]) -> None:
    tree = plant(roles="worker", worker_processes="1", misbehaving="worker", how="leaves")
    tree.wait_ready()
    helper = tree.helper_pid()
    os.kill(tree.pids("worker started")[0], signal.SIGKILL)
    eventually(lambda: has_ended(helper))


def test_process_that_cannot_start_stops_everything_and_its_error_is_seen(plant: Callable[..., Tree]) -> None:
    tree = plant(misbehaving="api", how="fails")
    status, errors = tree.finish()
    assert status == 1
    assert "api cannot work" in errors
    assert "onthedot api does not start (exit status 1)" in errors
    assert all(has_ended(pid) for name in ("worker", "maintenance") for pid in tree.pids(f"{name} started"))


def test_processes_end_when_their_supervisor_is_killed(plant: Callable[..., Tree]) -> None:
    tree = plant()
    tree.wait_ready()
    pids = [pid for name in ("api", "maintenance", "worker") for pid in tree.pids(f"{name} started")]
    tree.process.kill()
    eventually(lambda: all(has_ended(pid) for pid in pids))
    assert sum(event.endswith(" ended") for event in tree.events()) == 4


def test_secrets_reach_processes_by_their_environment_and_not_by_their_command_line(
    plant: Callable[..., Tree],
) -> None:
    tree = plant(roles="worker", database_url="postgresql://me:hush@localhost/db")
    tree.wait_ready()
    worker = psutil.Process(tree.pids("worker started")[0])
    assert worker.environ()["ONTHEDOT_DATABASE_URL"] == "postgresql://me:hush@localhost/db"
    assert "hush" not in " ".join(worker.cmdline())


def test_process_that_a_person_started_has_no_line_and_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SUPERVISOR_FD, raising=False)
    line = SupervisorLine.from_env()
    line.exit_with_parent(grace_seconds=0)
    line.report_ready()


async def test_process_that_is_done_is_not_started_again_and_one_that_crashed_is(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    program = "import sys; n = open(sys.argv[1], 'a+'); n.write('x'); n.seek(0); sys.exit(len(n.read()) < 3)"
    child = ChildProcess(
        "work",
        [sys.executable, "-c", program, str(journal)],
        environment=lambda _: dict(os.environ),
        until_done=True,
    )
    child.start()
    await child.ended()

    assert child.has_ended
    assert child.failure is None
    assert journal.read_text() == "xxx"


async def test_process_that_is_given_up_says_why() -> None:
    command = [sys.executable, "-c", "raise SystemExit(1)"]
    child = ChildProcess("work", command, environment=lambda _: dict(os.environ), until_done=True)
    child.start()
    await child.ended()

    assert child.has_ended
    assert str(child.failure) == "onthedot work does not start (exit status 1)"
