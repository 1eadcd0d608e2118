"""Limits by the command line: set by options, shown in lists, and explained."""

import pytest

from app.cli.cells import shown, text_of
from tests.cli.conftest import Shell
from tests.life.processes import eventually

KEY = "tenant:{{parameters.tenant}}"


@pytest.fixture(scope="module", autouse=True)
def nap(shell: Shell) -> None:
    shell.json("task", "create", "nap", "--handler", "builtin:sleep")


def test_a_tasks_limits_are_set_and_taken_away(shell: Shell) -> None:
    made = shell.json(
        "task", "create", "train", "--handler", "builtin:noop", "--label", "gpu=a100", "--label", "region=eu",
        "--concurrency", "3", "--concurrency-key", KEY, "--concurrency-limit", "2", "--rate-limit", "2.5",
        "--burst", "10", "--cpu-cores", "0.5", "--memory-mb", "256",
    )  # fmt: skip
    row = _row(shell, "task", "train")
    edited = shell.json("task", "edit", "train", "--concurrency", "4", "--set", "rate_limit=null")

    assert made["labels"] == {"gpu": "a100", "region": "eu"}
    assert [made[name] for name in ("concurrency", "concurrency_key", "concurrency_limit")] == [3, KEY, 2]
    assert made["rate_limit"] == {"per_second": 2.5, "burst": 10}
    assert [made["resource_requirements"][name] for name in ("cpu_cores", "memory_mb")] == [0.5, 256]
    assert row["LABELS"] == "gpu=a100,region=eu"
    assert [row[name] for name in ("CONCURRENCY", "KEY", "PER_SECOND")] == ["3", KEY, "2.5"]
    assert (edited["concurrency"], edited["rate_limit"], edited["labels"]) == (4, None, made["labels"])


def test_a_jobs_limits_are_set_and_changed(shell: Shell) -> None:
    made = shell.json(
        "job", "create", "nap", "--cron", "0 2 * * *", "--overlap", "skip", "--concurrency-key", KEY,
        "--concurrency-limit", "2", "--expires-after", "5",
    )  # fmt: skip
    row = _row(shell, "job", made["job_id"])
    edited = shell.json("job", "edit", made["job_id"], "--overlap", "queue", "--priority", "0")

    names = ("overlap", "concurrency_key", "concurrency_limit", "expires_after_seconds")
    assert [made[name] for name in names] == ["skip", KEY, 2, 5.0]
    assert (row["OVERLAP"], row["KEY"]) == ("skip", KEY)
    assert (edited["overlap"], edited["priority"], edited["concurrency_limit"]) == ("queue", 0, 2)


def test_the_limits_of_queues_and_users_are_set_and_changed(shell: Shell) -> None:
    queue = shell.json("queue", "create", "narrow", "--max-concurrency", "1")
    changed = shell.json("queue", "edit", "narrow", "--rate-limit", "100")
    user = shell.json(
        "user", "create", "ada", "--max-concurrent-jobs", "2", "--rate-limit", "5", "--burst", "9"
    )
    edited = shell.json("user", "edit", "ada", "--max-jobs-per-hour", "1000")

    assert (queue["max_concurrency"], queue["rate_limit"]) == (1, None)
    assert (changed["max_concurrency"], changed["rate_limit"]) == (1, {"per_second": 100.0, "burst": None})
    assert user["job_quotas"]["rate_limit"] == {"per_second": 5.0, "burst": 9}
    assert edited["job_quotas"] == user["job_quotas"] | {"max_jobs_per_hour": 1000}
    assert _row(shell, "queue", "narrow")["MAX_CONCURRENCY"] == "1"
    assert _row(shell, "user", "ada")["PER_SECOND"] == "5"


def test_workers_show_what_they_offer(shell: Shell) -> None:
    [worker] = shell.json("worker", "list")["items"]
    row = _row(shell, "worker", worker["worker_id"])

    assert row["LABELS"] == ""
    assert (row["CORES"], row["MEMORY_MB"]) == (text_of(worker["cpu_cores"]), str(worker["memory_mb"]))
    assert worker["memory_mb"] > 0


def test_labels_are_written_as_options_and_settings_have_them() -> None:
    assert text_of({"gpu": "a100", "region": "eu"}) == "gpu=a100,region=eu"
    assert text_of({"n": 1}) == '{"n":1}'
    assert shown({}) == "-"


def test_what_waits_is_explained_reason_by_reason(shell: Shell) -> None:
    shell.json("queue", "create", "single", "--max-concurrency", "1")
    first, second = (
        shell.json("job", "create", "nap", "--now", "--queue", "single", "-p", "seconds=600")["execution_id"]
        for _ in range(2)
    )
    eventually(lambda: "RUNNING" in _statuses(shell, first, second))
    holder, waits = sorted((first, second), key=lambda one: _statuses(shell, one) != ["RUNNING"])
    lines = dict(line.split("\t") for line in shell.run("exec", "explain", waits).stdout.splitlines())
    whole = shell.json("exec", "explain", waits)

    assert lines["reasons.queue_concurrency"] == f"The queue single has 1 of 1 under way: {holder}."
    assert (lines["status"], lines["runnable"]) == ("PENDING", "false")
    assert [(reason["code"], reason["holders"]) for reason in whole["reasons"]] == [
        ("queue_concurrency", [holder])
    ]
    assert "reasons.queue_concurrency" in shell.run("exec", "explain", waits, "-o", "table").stdout
    assert shell.run("exec", "explain", holder).stderr == "it runs\n"
    for execution_id in (waits, holder):
        shell.json("exec", "cancel", execution_id)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("task", "edit", "nap", "--label", "gpu"), "'gpu' is not NAME=VALUE"),
        (("task", "edit", "nap", "--concurrency", "0"), "/concurrency"),
        (("task", "edit", "nap", "--burst", "3"), "/rate_limit/per_second"),
        (("task", "edit", "nap", "--concurrency-key", "{{tenant}}"), "write {{parameters.NAME}}"),
        (("queue", "edit", "general", "--max-concurrency", "0"), "/max_concurrency"),
        (("job", "create", "nap", "--now", "--overlap", "never"), "'never' is not one of"),
        (("job", "edit", "00000000-0000-0000-0000-000000000000"), "by an option"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(shell: Shell, arguments: tuple[str, ...], told: str) -> None:
    result = shell.run(*arguments)

    assert result.exit_code == 2, result.output
    assert told in result.stderr


def _row(shell: Shell, noun: str, first: str) -> dict[str, str]:
    """Return a row of a list by its headings."""
    heading, *lines = (line.split("\t") for line in shell.run(noun, "list").stdout.splitlines())
    return dict(zip(heading, next(line for line in lines if line[0] == first), strict=True))


def _statuses(shell: Shell, *execution_ids: str) -> list[str]:
    return [shell.json("exec", "get", one)["status"] for one in execution_ids]
