"""What cannot start says why in one line, and is not tried again and again."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.life.processes import environment

ROOT = Path(__file__).parents[2]
UNREACHABLE = "postgresql://onthedot:hunter2@127.0.0.1:1/onthedot"


def refusal(command: str, data_dir: Path, **settings: str) -> tuple[int, list[str]]:
    """Run `onthedot COMMAND`, which must end by itself; return its status and what it said on standard error."""
    own = {"DATA_DIR": str(data_dir), "PORT": "0", "WORKER_PROCESSES": "1"} | settings
    ended = subprocess.run(
        [sys.executable, "-m", "app", command],
        check=False,
        cwd=ROOT,
        env=environment(**own),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended.returncode, ended.stderr.splitlines()


@pytest.mark.parametrize("command", ["serve", "migrate", "worker", "api", "maintenance"])
def test_an_unreachable_database_is_named_without_its_password(command: str, tmp_path: Path) -> None:
    status, lines = refusal(command, tmp_path / "data", DATABASE_URL=UNREACHABLE)

    assert status == 1
    assert len(lines) == 1
    assert "the database of ONTHEDOT_DATABASE_URL cannot be used" in lines[0]
    assert "hunter2" not in lines[0]


def test_a_task_module_that_is_not_there_stops_the_start_at_once(tmp_path: Path, dsn: str) -> None:
    status, lines = refusal("serve", tmp_path / "data", DATABASE_URL=dsn, TASK_MODULES="no_such_module")

    assert status == 1
    refusals = [line for line in lines if "no_such_module cannot be imported" in line]
    assert len(refusals) == 1, lines
    assert str(ROOT) in refusals[0]
    assert not any("Traceback" in line for line in lines)
