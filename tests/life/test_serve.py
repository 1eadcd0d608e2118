"""`onthedot serve` as a person meets it: first start, second start, Ctrl-C, and crashes of everything."""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from app.db.embedded import EmbeddedPostgres
from tests.life.processes import DEADLINE_SECONDS, environment, eventually, has_ended

ROOT = Path(__file__).parents[2]


class Serve:
    """A running `onthedot serve` with the embedded server, one worker process and a free port."""

    def __init__(self, data_dir: Path, *, port: int = 0) -> None:
        self._data_dir = data_dir
        self._errors = data_dir.with_name(f"errors-{time.monotonic_ns()}")
        own = {"DATA_DIR": str(data_dir), "PORT": str(port), "WORKER_PROCESSES": "1"}
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app", "serve"],
                cwd=ROOT,
                env=environment(**own),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self.url = ""

    def wait_ready(self) -> str:
        """Return the address in the ready line."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        found = re.fullmatch(r"onthedot ready (http://127\.0\.0\.1:\d+)\n", line)
        assert found, f"{line!r} is no ready line; on standard error: {self._errors.read_text()}"
        self.url = found[1]
        return self.url

    def api(self) -> httpx.Client:
        key = (self._data_dir / "admin.key").read_text().strip()
        return httpx.Client(base_url=f"{self.url}/api/v1", headers={"Authorization": f"Bearer {key}"})

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def finish(self) -> tuple[int, str, str]:
        """Wait for the end and return the exit status, what more was printed, and the errors."""
        printed, _ = self.process.communicate(timeout=DEADLINE_SECONDS)
        return self.process.returncode, printed, self._errors.read_text()


@pytest.fixture
def data_dir() -> Iterator[Path]:
    parent = Path(tempfile.mkdtemp(prefix="onthedot-"))
    parent.chmod(0o711)
    yield parent / "data"
    left = EmbeddedPostgres(parent / "data", max_connections=100)
    if (parent / "data" / "postgres" / "postmaster.pid").exists():
        left.start()
        left.stop()
    shutil.rmtree(parent)


@pytest.fixture
def serve(data_dir: Path) -> Iterator[Callable[..., Serve]]:
    started: list[Serve] = []

    def start(**options: int) -> Serve:
        started.append(Serve(data_dir, **options))
        return started[-1]

    yield start
    for one in started:
        if one.process.returncode is None:
            one.process.terminate()
            one.finish()


def start_nap(api: httpx.Client, *, seconds: float) -> str:
    """Start an execution that lasts `seconds`; return its id when it runs, or has run if that is over in a moment."""
    api.post("/tasks", json={"task_id": "nap", "name": "nap", "execution_handler": "builtin:sleep"})
    job = {"task_id": "nap", "schedule": {"type": "IMMEDIATE"}, "parameters": {"seconds": seconds}}
    execution_id = str(api.post("/jobs", json=job).raise_for_status().json()["execution_id"])
    eventually(lambda: status(api, execution_id) in {"RUNNING", "COMPLETED"})
    return execution_id


def status(api: httpx.Client, execution_id: str) -> str:
    return str(api.get(f"/executions/{execution_id}").raise_for_status().json()["status"])


def postmaster_pid(data_dir: Path) -> int:
    return int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])


def test_first_start_ctrl_c_and_second_start(serve: Callable[..., Serve], data_dir: Path) -> None:
    first = serve()
    url = first.wait_ready()
    assert first.process.stdout
    assert re.match(rf".*{url}/login\?token=\S+\n", first.process.stdout.readline())
    assert (data_dir / "admin.key").read_text().strip() in first.process.stdout.readline()
    assert stat.S_IMODE((data_dir / "admin.key").stat().st_mode) == 0o600
    commands = [" ".join(child.cmdline()) for child in first.children()]
    assert sorted(command.rpartition(" ")[2] for command in commands) == ["api", "maintenance", "worker"]
    with first.api() as api:
        nap = start_nap(api, seconds=1)
    postgres = postmaster_pid(data_dir)
    os.killpg(first.process.pid, signal.SIGINT)  # as a terminal does
    assert first.finish()[0] == 0
    assert has_ended(postgres)

    second = serve()
    second.wait_ready()
    with second.api() as api:
        assert status(api, nap) == "COMPLETED"
    second.process.terminate()
    code, printed, _ = second.finish()
    assert code == 0
    assert "admin API key" not in printed


def test_second_serve_is_told_who_holds_the_port_or_the_folder(
    serve: Callable[..., Serve], data_dir: Path
) -> None:
    holder = serve()
    port = int(holder.wait_ready().rpartition(":")[2])
    code, printed, errors = serve(port=port).finish()
    assert (code, printed) == (1, "")
    assert re.search(rf"port {port} on 127\.0\.0\.1 is held by pid \d+ \(.* api\)", errors)
    code, printed, errors = serve().finish()
    assert (code, printed) == (1, "")
    assert f"{data_dir} is held by another onthedot serve (pid {holder.process.pid})" in errors
    holder.process.terminate()
    assert holder.finish()[0] == 0


def test_everything_goes_on_after_the_supervisor_was_killed_and_after_all_was_killed(
    serve: Callable[..., Serve], data_dir: Path
) -> None:
    first = serve()
    port = int(first.wait_ready().rpartition(":")[2])
    with first.api() as api:
        nap = start_nap(api, seconds=0)
        eventually(lambda: status(api, nap) == "COMPLETED")
    children, postgres = first.children(), postmaster_pid(data_dir)
    first.process.kill()
    second = serve(port=port)  # at once: its predecessor's API is about to leave the port
    second.wait_ready()
    assert all(has_ended(child.pid) for child in children)
    assert postmaster_pid(data_dir) == postgres

    for child in [*second.children(), psutil.Process(postgres), psutil.Process(second.process.pid)]:
        child.kill()
    third = serve(port=port)
    third.wait_ready()
    with third.api() as api:
        assert status(api, nap) == "COMPLETED"
    third.process.terminate()
    assert third.finish()[0] == 0
    for killed in (first, second):
        killed.finish()


def test_database_that_dies_comes_back_and_work_goes_on(serve: Callable[..., Serve], data_dir: Path) -> None:
    running = serve()
    running.wait_ready()
    os.kill(postmaster_pid(data_dir), signal.SIGKILL)
    eventually(lambda: httpx.get(f"{running.url}/readyz").status_code == 503)
    eventually(lambda: httpx.get(f"{running.url}/readyz").status_code == 200)
    with running.api() as api:
        start_nap(api, seconds=5)
    running.process.terminate()
    assert running.finish()[0] == 0
