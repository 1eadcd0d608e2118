"""The command line against a real server: what it prints, where, and how it ends."""

import os
import pty
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import msgspec
import psycopg
import pytest

from app import __version__
from tests.cli.conftest import KEY, Shell
from tests.life.processes import eventually


@pytest.fixture(scope="module", autouse=True)
def tasks(shell: Shell) -> None:
    for task_id, handler in (("echo", "builtin:echo"), ("nap", "builtin:sleep"), ("boom", "builtin:fail")):
        shell.json(
            "task", "create", task_id, "--handler", handler, "--set", "resource_requirements.max_retries=0"
        )


def test_data_goes_to_stdout_and_messages_go_to_stderr(shell: Shell) -> None:
    result = shell.run("task", "create", "parted", "--handler", "builtin:noop", "-o", "json")

    assert msgspec.json.decode(result.stdout)["task_id"] == "parted"
    assert result.stderr == "created task parted\n"


def test_a_list_in_every_form(shell: Shell) -> None:
    tsv = shell.run("task", "list").stdout.splitlines()
    table = shell.run("task", "list", "-o", "table").stdout.splitlines()
    lines = shell.run("task", "list", "-o", "jsonl").stdout.splitlines()
    whole = shell.json("task", "list")

    assert tsv[0].split("\t")[:2] == ["TASK", "HANDLER"]
    assert ["echo", "builtin:echo"] in [line.split("\t")[:2] for line in tsv[1:]]
    assert table[0].split()[:2] == ["TASK", "HANDLER"]
    assert len(tsv) == len(table) == len(lines) + 1 == len(whole["items"]) + 1
    assert [msgspec.json.decode(line) for line in lines] == whole["items"]


def test_one_thing_in_every_form(shell: Shell) -> None:
    tsv = dict(line.split("\t") for line in shell.run("task", "get", "echo").stdout.splitlines())
    table = shell.run("task", "get", "echo", "-o", "table").stdout

    assert tsv["resource_requirements.max_retries"] == "0"
    assert tsv["description"] == ""
    assert "execution_handler  " in table
    assert shell.json("task", "get", "echo")["execution_handler"] == "builtin:echo"


def test_control_characters_are_made_visible(shell: Shell) -> None:
    shell.json(
        "job", "create", "boom", "--now", "-p", 'message="\\u001b[31mred\\tone\\nline"', "--name", "esc"
    )
    job_id = next(job["job_id"] for job in shell.json("job", "list")["items"] if job["name"] == "esc")
    eventually(lambda: shell.json("job", "history", job_id)["items"][0]["status"] == "FAILED")

    for form in ("tsv", "table"):
        printed = shell.run("job", "history", job_id, "-o", form).stdout
        assert "\\x1b[31mred\\tone\\nline" in printed
        assert "\x1b" not in printed
        assert len(printed.splitlines()) == 2


def test_a_body_is_put_together_from_a_file_and_options(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_text('{"execution_handler": "builtin:noop", "priority": 3, "description": "from the file"}')
    made = shell.json(
        "task",
        "create",
        "built",
        "-f",
        str(file),
        "--priority",
        "1",
        "--set",
        "queue=bulk",
        "--set",
        'name="17"',
    )

    assert (made["description"], made["priority"], made["queue"], made["name"]) == (
        "from the file",
        1,
        "bulk",
        "17",
    )


def test_a_unique_key_is_held_and_said_to_be(shell: Shell) -> None:
    asked = [
        "job",
        "create",
        "echo",
        "--at",
        "2999-01-01T00:00:00Z",
        "--unique-key",
        "k",
        "--unique-for",
        "60",
    ]
    first = shell.json(*asked, "--expires-after", "5")
    kept, replaced = shell.run(*asked), shell.run(*asked, "--unique-policy", "replace")

    assert (first["status"], first["unique_for_seconds"], first["expires_after_seconds"]) == (
        "created",
        60,
        5,
    )
    assert f"the job {first['job_id']} holds this unique key; nothing was created" in kept.stderr
    assert f"the job {first['job_id']} held this unique key and has been replaced" in replaced.stderr


def test_a_job_lives_its_life(shell: Shell) -> None:
    job = shell.json(
        "job", "create", "echo", "--cron", "0 2 * * TUE", "--timezone", "Europe/Berlin", "-p", "n=1"
    )
    job_id = job["job_id"]
    edited = shell.json("job", "edit", job_id, "--set", "priority=0", "--if-version", str(job["version"]))
    paused = shell.json("job", "pause", job_id, "--reason", "holiday")
    resumed = shell.json("job", "resume", job_id)
    upcoming = shell.json("job", "next", job_id)["items"]
    ran = shell.json("job", "run", job_id, "--wait", "--timeout", "30")
    history = shell.json("job", "history", job_id, "--status", "completed")["items"]
    past = ("--from", "2026-01-01T00:00:00Z", "--to", "2026-01-14T00:00:00Z")
    tried = shell.json("job", "backfill", job_id, *past, "--dry-run")["items"]
    made = shell.json("job", "backfill", job_id, *past)["items"]

    assert [each["scheduled_time"] for each in made] == [each["scheduled_time"] for each in tried]
    assert made
    assert (job["schedule"]["type"], job["parameters"]) == ("RECURRING", {"n": 1})
    assert edited["priority"] == 0
    assert (paused["is_active"], paused["pause_reason"]) == (False, "holiday")
    assert resumed["is_active"] is True
    assert [item["scheduled_time"] for item in upcoming] == resumed["next_occurrences"]
    assert (ran["status"], ran["result"], ran["trigger"]) == ("COMPLETED", {"n": 1}, "manual")
    assert [item["execution_id"] for item in history] == [ran["execution_id"]]
    assert shell.run("job", "delete", job_id, "--yes").exit_code == 0
    assert shell.run("job", "get", job_id).exit_code == 3


@pytest.mark.parametrize(
    ("task_id", "parameters", "exit_code"),
    [("nap", "seconds=0", 0), ("boom", "message=no", 1)],
)
def test_waiting_ends_as_the_execution_does(
    shell: Shell, task_id: str, parameters: str, exit_code: int
) -> None:
    created = shell.json("job", "create", task_id, "--now", "-p", parameters)
    waited = shell.run("exec", "wait", created["execution_id"], "--timeout", "30")

    assert waited.exit_code == exit_code, waited.output
    assert shell.run("job", "create", task_id, "--now", "-p", parameters, "--wait").exit_code == exit_code


def test_waiting_gives_up_in_time(shell: Shell) -> None:
    created = shell.json("job", "create", "nap", "--at", "2090-01-01T00:00:00Z")
    waited = shell.run("exec", "wait", created["execution_id"], "--timeout", "0.1")

    assert waited.exit_code == 6
    assert "PENDING after 0.1 s" in waited.stderr
    cancelled = shell.json("exec", "cancel", created["execution_id"], "--reason", "not needed")
    assert cancelled["status"] == "CANCELLED"
    assert shell.run("exec", "cancel", created["execution_id"]).exit_code == 5


def test_a_log_is_followed_to_its_end(shell: Shell) -> None:
    created = shell.json("job", "create", "boom", "--now", "-p", "message=the end")
    followed = shell.run("exec", "logs", "-f", created["execution_id"])
    attempts = shell.json("exec", "attempts", created["execution_id"])["items"]
    assert shell.json("exec", "explain", created["execution_id"])["reasons"] == []
    again = shell.json("exec", "retry", created["execution_id"])

    assert followed.exit_code == 0, followed.output
    assert followed.stdout == shell.run("exec", "logs", created["execution_id"]).stdout
    assert [(attempt["outcome"], attempt["error"]["message"]) for attempt in attempts] == [
        ("failed", "the end")
    ]
    assert again["retried_from"] == created["execution_id"]


def test_people_and_their_keys(shell: Shell, tmp_path: Path) -> None:
    shell.json("user", "create", "ada", "--role", "viewer", "--set", "job_quotas.max_concurrent_jobs=3")
    changed = shell.json("user", "edit", "ada", "--set", "name=Ada")
    key = shell.json("key", "create", "ada", "--name", "laptop")
    file = tmp_path / "ada.key"
    file.write_text(key["key"] + "\n")
    listed = shell.json("key", "list", "ada")["items"]

    assert (changed["name"], changed["job_quotas"]["max_concurrent_jobs"]) == ("Ada", 3)
    assert [(item["name"], item["prefix"]) for item in listed] == [("laptop", key["prefix"])]
    assert shell.run("task", "list", "--token-file", str(file)).exit_code == 0
    assert shell.run("task", "delete", "echo", "--yes", "--token-file", str(file)).exit_code == 4
    assert shell.json("user", "summary", "ada")["by_status"] == {}
    assert shell.json("user", "executions", "ada", "--priority", "0")["items"] == []
    assert shell.run("key", "delete", "ada", key["key_id"], "--yes").exit_code == 0
    assert shell.run("user", "delete", "ada", "--yes").exit_code == 0


def test_queues_and_workers(shell: Shell) -> None:
    shell.json("queue", "create", "etl", "--priority", "1")
    paused = shell.json(
        "queue", "pause", "etl", "--reason", "warehouse down", "--until", "2090-01-01T00:00:00Z"
    )
    resumed = shell.json("queue", "resume", "etl")
    edited = shell.json("queue", "edit", "etl", "--set", "max_delay_ms=500")
    [worker] = shell.json("worker", "list")["items"]

    assert (paused["paused"]["by"], paused["paused"]["reason"]) == ("admin", "warehouse down")
    assert resumed["paused"] is None
    assert edited["max_delay_ms"] == 500
    assert shell.json("worker", "get", worker["worker_id"])["state"] == "live"
    assert shell.run("worker", "drain", str(uuid4())).exit_code == 3


def test_status_is_one_screen(shell: Shell) -> None:
    result = shell.run("status")
    whole = shell.json("status")

    assert result.exit_code == 0
    assert result.stderr == f"{shell.url} is ready\n"
    assert [
        title for title in ("LAST MINUTE", "QUEUES", "WORKERS", "FAILED LAST") if title in result.stdout
    ] == [
        "LAST MINUTE",
        "QUEUES",
        "WORKERS",
        "FAILED LAST",
    ]
    assert set(whole) == {"stats", "queues", "workers", "failed"}


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (("task", "get", "nowhere"), 3, "try: `onthedot task list`"),
        (("task", "get", "../jobs"), 3, "not_found"),
        (("job", "create", "nowhere", "--now"), 2, "unknown_task"),
        (("job", "create", "echo", "--cron", "61 * * * *"), 2, "/schedule/expression"),
        (("job", "create", "echo"), 2, "say when"),
        (("job", "create", "echo", "--now", "--every", "60"), 2, "exclude each other"),
        (("task", "create", "echo", "--handler", "builtin:noop"), 5, "conflict"),
        (("task", "edit", "echo", "--set", "priority=1", "--if-version", "99"), 5, "precondition_failed"),
        (("task", "edit", "echo"), 2, "say what to change"),
        (("task", "edit", "echo", "--set", "priority"), 2, "is not NAME=VALUE"),
        (("task", "delete", "echo"), 2, "add --yes"),
        (("exec", "list", "--status", "SLEEPING"), 2, "Invalid value"),
        (("exec", "get", str(uuid4())), 3, "request id: "),
        (("user", "delete", "admin", "--yes"), 5, "last admin"),
    ],
)
def test_a_failure_says_why_and_what_next(
    shell: Shell, arguments: tuple[str, ...], exit_code: int, told: str
) -> None:
    result = shell.run(*arguments)

    assert result.exit_code == exit_code, result.output
    assert told in result.stderr
    assert result.stdout == ""


def test_without_a_key_nothing_is_served(shell: Shell, tmp_path: Path) -> None:
    elsewhere = {"ONTHEDOT_TOKEN_FILE": "", "ONTHEDOT_DATA_DIR": str(tmp_path)}
    refused = shell.run("task", "list", **elsewhere)
    assert refused.exit_code == 4
    assert "--token-file" in refused.stderr

    (tmp_path / "admin.key").write_text(KEY + "\n")
    assert shell.run("task", "list", **elsewhere).exit_code == 0
    assert shell.run("task", "list", ONTHEDOT_TOKEN_FILE=str(tmp_path / "none")).exit_code == 2
    (tmp_path / "admin.key").write_text("two words")
    assert shell.run("task", "list", **elsewhere).exit_code == 2


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Yield a port that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_a_server_that_is_not_there(shell: Shell, silent_port: int) -> None:
    result = shell.run("task", "list", "--url", f"http://127.0.0.1:{silent_port}")

    assert result.exit_code == 7
    assert "onthedot serve" in result.stderr
    assert shell.run("task", "list", "--url", "ftp://127.0.0.1").exit_code == 2


GREEN = "\x1b[32m"


@pytest.mark.parametrize(
    ("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_a_table_in_colour_unless_told_otherwise(
    shell: Shell, *, variables: dict[str, str], coloured: bool
) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
    environment |= {"TERM": "xterm"} | shell.environment | variables
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "app", "worker", "list"], env=environment, stdout=theirs):
        os.close(theirs)
        printed = _read_all(ours).decode()

    assert "● live" in printed
    assert "\t" not in printed
    assert (GREEN in printed) is coloured


def test_the_audit_log_knows_what_was_done_by_the_command_line(shell: Shell, module_dsn: str) -> None:
    shell.json("queue", "create", "audited")

    with psycopg.connect(module_dsn) as connection:
        query = (
            "SELECT actor, client FROM audit.changes WHERE action = 'queue.create' AND target_id = 'audited'"
        )
        assert connection.execute(query).fetchall() == [
            ("user:admin", f"onthedot-cli/{__version__} 127.0.0.1")
        ]


def _read_all(terminal: int) -> bytes:
    found = b""
    try:
        while piece := os.read(terminal, 65_536):
            found += piece
    except OSError:  # how Linux tells that the other end is closed
        pass
    os.close(terminal)
    return found


def test_saving_a_schedule_tells_what_to_know_about_it(shell: Shell) -> None:
    made = shell.run(
        "job", "create", "echo", "--cron", "30 2 * * *", "--timezone", "America/New_York", "-o", "json"
    )
    job_id = msgspec.json.decode(made.stdout)["job_id"]
    fast = """schedule={"type": "INTERVAL", "every": 5}"""
    edited = shell.run("job", "edit", job_id, "--set", fast)

    assert "does not exist in America/New_York" in made.stderr
    assert "! this is more often than once a minute" in edited.stderr


def test_an_expression_is_explained_before_anything_is_made_of_it(shell: Shell) -> None:
    asked = ("cron", "explain", "30 2 * * *", "--tz", "America/New_York", "--after", "2025-03-08T12:00:00Z")
    lines = shell.run(*asked, "--count", "2").stdout.splitlines()
    whole = shell.json(*asked, "--gap", "skip", "--count", "1")
    refused = shell.run("cron", "explain", "61 * * * *")

    assert lines[:3] == [
        "every day at 02:30 (America/New_York)",
        "2025-03-09T07:00:00Z",
        "2025-03-10T06:30:00Z",
    ]
    assert lines[3].startswith("! 02:30 on 2025-03-09 does not exist in America/New_York")
    assert whole["occurrences"] == ["2025-03-10T06:30:00Z"]
    assert refused.exit_code != 0
    assert "minute" in refused.stderr
