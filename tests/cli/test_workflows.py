"""`onthedot wf` against a real server: workflows, and what people do to their runs."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from tests.cli.conftest import Shell
from tests.life.processes import eventually

LATER = {"type": "ONCE", "scheduled_time": "2999-01-01T00:00:00Z"}
LINE = [
    {"key": "first", "task_id": "echo", "parameters": {"n": {"$from": "parameters.n"}}},
    {"key": "each", "task_id": "echo", "depends_on": ["first"], "map": [1, 2], "parameters": {}},
    {"key": "alarm", "task_id": "echo", "depends_on": ["each"], "when": "any_failed"},
]
BREAKS = [
    {"key": "fine", "task_id": "echo"},
    {"key": "breaks", "task_id": "boom", "depends_on": ["fine"], "parameters": {"message": "\x1b[31mred"}},
    {"key": "after", "task_id": "echo", "depends_on": ["breaks"]},
]
NAPS = [
    {"key": "naps", "task_id": "nap", "parameters": {"seconds": 300}},
    {"key": "after", "task_id": "echo", "depends_on": ["naps"]},
]


@pytest.fixture(scope="module", autouse=True)
def tasks(shell: Shell) -> None:
    for task_id, handler in (("echo", "builtin:echo"), ("nap", "builtin:sleep"), ("boom", "builtin:fail")):
        shell.json(
            "task", "create", task_id, "--handler", handler, "--set", "resource_requirements.max_retries=0"
        )


def created(shell: Shell, folder: Path, steps: list[dict[str, Any]], **fields: object) -> str:
    """Return a new workflow that runs when it is told to."""
    file = folder / "workflow.json"
    file.write_bytes(msgspec.json.encode({"schedule": LATER, "steps": steps} | fields))
    workflow_id: str = shell.json("wf", "create", str(file))["workflow_id"]
    return workflow_id


def steps_of(shell: Shell, run_id: str) -> dict[str, str]:
    return {step["key"]: step["status"] for step in shell.json("wf", "status", run_id)["steps"]}


def failed_run(shell: Shell, folder: Path) -> str:
    workflow_id = created(shell, folder, BREAKS)
    run = shell.run("wf", "run", workflow_id, "--follow", "--timeout", "60", "-o", "json")
    assert run.exit_code == 1, run.output
    run_id: str = msgspec.json.decode(run.stdout)["workflow_run_id"]
    return run_id


def test_a_workflow_lives_its_life(shell: Shell, tmp_path: Path) -> None:
    workflow_id = created(shell, tmp_path, LINE, name="line", parameters={"n": 1, "kept": True})
    listed = {item["workflow_id"]: item for item in shell.json("wf", "list")["items"]}[workflow_id]
    edited = shell.json("wf", "edit", workflow_id, "--set", "overlap=queue", "--if-version", "1")
    paused = shell.json("wf", "pause", workflow_id, "--reason", "holiday")
    resumed = shell.json("wf", "resume", workflow_id)
    ran = shell.run("wf", "run", workflow_id, "--param", "n=7", "--follow", "--timeout", "60", "-o", "json")
    run = msgspec.json.decode(ran.stdout)

    assert (listed["name"], listed["step_count"]) == ("line", 3)
    assert (edited["overlap"], edited["definition_version"]) == ("queue", 2)
    assert (paused["is_active"], paused["pause_reason"], resumed["is_active"]) == (False, "holiday", True)
    assert (ran.exit_code, run["status"], run["parameters"]) == (0, "COMPLETED", {"n": 7, "kept": True})
    assert run["steps"][0]["result"] == {"n": 7}
    for told in (
        "each COMPLETED",
        "alarm SKIPPED: any_failed: nothing before it has failed",
        f"run {run['workflow_run_id']} COMPLETED",
    ):
        assert told in ran.stderr.splitlines()
    assert shell.json("wf", "runs", workflow_id, "--status", "completed")["items"][0]["status"] == "COMPLETED"
    assert shell.json("wf", "runs", workflow_id, "--status", "failed")["items"] == []
    assert run["workflow_run_id"] in shell.run("wf", "runs").stdout
    assert shell.run("wf", "delete", workflow_id).exit_code == 2
    assert shell.run("wf", "delete", workflow_id, "--yes").exit_code == 0
    assert shell.run("wf", "show", workflow_id).exit_code == 3


def test_a_workflow_and_a_run_for_scripts(shell: Shell, tmp_path: Path) -> None:
    workflow_id = created(shell, tmp_path, LINE, parameters={"n": 1})
    shown = shell.run("wf", "show", workflow_id).stdout
    fields, steps = shown.split("\n\nSTEPS\n")
    started = shell.run("wf", "run", workflow_id, "-o", "json")
    run_id = msgspec.json.decode(started.stdout)["workflow_run_id"]
    followed = shell.run("wf", "status", run_id, "--follow", "--timeout", "60")
    table = [line.split("\t") for line in followed.stdout.splitlines()]

    assert f"workflow_id\t{workflow_id}" in fields.splitlines()
    assert steps.splitlines()[1].split("\t")[:4] == ["first", "echo", "", "all_success"]
    assert f"onthedot wf status {run_id} --follow" in started.stderr
    assert followed.exit_code == 0, followed.output
    assert [row[:3] for row in table] == [
        ["STEP", "STATUS", "TASK"],
        ["first", "COMPLETED", "echo"],
        ["each", "COMPLETED", "echo"],
        ["alarm", "SKIPPED", "echo"],
    ]
    assert table[2][4:6] == ["2", "2"]
    assert table[3][-1] == "any_failed: nothing before it has failed"
    assert msgspec.json.decode(shell.run("wf", "status", run_id, "--json").stdout) == shell.json(
        "wf", "status", run_id
    )


def test_what_is_no_graph_is_refused_with_the_place(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "workflow.json"
    steps = [{"key": "a", "task_id": "echo", "depends_on": ["b"]}, {"key": "b", "task_id": "echo"}]
    steps[1]["depends_on"] = ["a"]
    file.write_bytes(msgspec.json.encode({"schedule": LATER, "steps": steps}))
    circle = shell.run("wf", "create", str(file))
    file.write_text("[]")

    assert circle.exit_code == 2
    assert "(circular_steps)" in circle.stderr
    assert "a → b → a" in circle.stderr
    assert "  at /steps/0/depends_on" in circle.stderr.splitlines()
    assert shell.run("wf", "create", str(file)).exit_code == 2
    assert shell.run("wf", "create", str(tmp_path / "nothing.json")).exit_code == 2


def test_a_run_that_failed_is_tried_again_or_goes_on_without_the_step(shell: Shell, tmp_path: Path) -> None:
    run_id = failed_run(shell, tmp_path)
    table = shell.run("wf", "status", run_id, "-o", "table")
    retried = shell.run("wf", "retry", run_id)
    again = shell.run("wf", "status", run_id, "--follow", "--timeout", "60")
    from_the_first = shell.run("wf", "retry", run_id, "--from", "fine", "--from", "breaks")
    shell.run("wf", "status", run_id, "--follow", "--timeout", "60")
    rounds = {step["key"]: step["round"] for step in shell.json("wf", "status", run_id)["steps"]}
    skipped = shell.run("wf", "skip", run_id, "breaks", "--reason", "not today")
    done = shell.run("wf", "status", run_id, "--follow", "--timeout", "60")

    assert "✗ FAILED" in table.stdout
    assert "\\x1b[31mred" in table.stdout
    assert "breaks FAILED: \\x1b[31mred" in again.stderr.splitlines()
    assert "\x1b" not in table.stdout
    assert (retried.exit_code, again.exit_code, from_the_first.exit_code) == (0, 1, 0)
    assert rounds == {"fine": 2, "breaks": 3, "after": 0}
    assert "passed over by admin: not today" in skipped.stdout
    assert done.exit_code == 0, done.output
    assert steps_of(shell, run_id) == {"fine": "COMPLETED", "breaks": "SKIPPED", "after": "COMPLETED"}
    assert shell.run("wf", "skip", run_id, "breaks").exit_code == 5
    assert shell.run("wf", "skip", run_id, "nowhere").exit_code == 2
    assert shell.run("wf", "retry", run_id).exit_code == 5


def test_a_run_is_cancelled(shell: Shell, tmp_path: Path) -> None:
    workflow_id = created(shell, tmp_path, NAPS)
    run_id = shell.json("wf", "run", workflow_id)["workflow_run_id"]
    eventually(lambda: shell.run("wf", "status", run_id).exit_code == 0)
    eventually(lambda: steps_of(shell, run_id)["naps"] == "RUNNING")
    given_up = shell.run("wf", "status", run_id, "--follow", "--timeout", "0")
    cancelled = shell.run("wf", "cancel", run_id, "--reason", "enough")
    followed = shell.run("wf", "status", run_id, "--follow", "--timeout", "60")

    assert given_up.exit_code == 6
    assert "the run is RUNNING after 0 s" in given_up.stderr
    assert cancelled.exit_code == 0, cancelled.output
    assert "after\tCANCELLED" in cancelled.stdout
    assert followed.exit_code == 1
    assert f"run {run_id} CANCELLED: cancelled by admin: enough" in followed.stderr.splitlines()
    assert shell.run("wf", "cancel", run_id).exit_code == 5


def test_a_run_that_never_begins_is_not_waited_for(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "workflow.json"
    file.write_bytes(msgspec.json.encode({"schedule": LATER, "steps": LINE}))
    made = shell.run("wf", "create", str(file), "-o", "json")
    run_id = msgspec.json.decode(made.stdout)["workflow_run_id"]
    waits = shell.run("wf", "status", run_id, "--follow", "--timeout", "0")
    shell.json("exec", "cancel", run_id)
    gone = shell.run("wf", "status", run_id, "--follow")

    assert f"onthedot wf status {run_id} --follow" in made.stderr
    assert (waits.exit_code, gone.exit_code) == (6, 1)
    assert "the run is yet to begin after 0 s" in waits.stderr
    assert f"the run {run_id} never began" in gone.stderr
    assert shell.run("wf", "status", str(uuid4()), "--follow").exit_code == 3
