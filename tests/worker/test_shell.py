"""Commands: what they get, what they come to, and that they end."""

import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest

from app.db.reads.executions import ExecutionView
from app.domain.statuses import Status
from app.worker.isolation.launcher import KILL_AFTER_SECONDS
from tests.life.processes import has_ended
from tests.worker.conftest import Bench
from tests.worker.test_isolation import gone, said_pids
from tests.worker.test_worker import cancel

PYTHON = shlex.quote(sys.executable)
ECHO = "import json, os, sys; print(json.dumps({**os.environ, 'stdin': json.load(sys.stdin)}))"


async def run(bench: Bench, command: str, *, columns: dict[str, Any] | None = None, **request: Any) -> UUID:
    """Run a command once."""
    values = {"task_id": "command", "max_retries": 0, "retry_delay_seconds": 0.01} | (columns or {})
    return await bench.job(await bench.task(f"shell:{command}", **values), **request)


async def end_of(bench: Bench, command: str, **request: Any) -> ExecutionView:
    """Run a command with a worker that may run commands, and return what it came to."""
    await bench.start_worker(allow_shell="true")
    return await bench.ended(await run(bench, command, **request))


async def test_a_command_gets_its_execution_and_nothing_of_ours(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ONTHEDOT_ADMIN_API_KEY", "AWS_SECRET_ACCESS_KEY", "LD_PRELOADED", "PYTHONWARNINGS"):
        monkeypatch.setenv(name, "k" * 40)
    parameters = {"name": "a b", "deep-er": {"n": [1, None]}, "on": True, "path": "/x", "long": "x" * 200_000}

    execution = await end_of(bench, f'{PYTHON} -c "{ECHO}"', parameters=parameters)

    seen = execution.result
    assert execution.status is Status.COMPLETED
    assert seen.pop("stdin") == parameters
    assert seen.pop("ONTHEDOT_EXECUTION_ID") == str(execution.execution_id)
    assert seen.pop("ONTHEDOT_JOB_ID") == str(execution.job_id)
    assert seen.pop("ONTHEDOT_ATTEMPT_NUMBER") == "1"
    assert int(seen.pop("ONTHEDOT_FENCING_TOKEN")) > 2**40
    assert seen.pop("ONTHEDOT_SCHEDULED_TIME").endswith("Z")
    ours = {name: text for name, text in seen.items() if name.startswith("ONTHEDOT_")}
    assert ours == {
        "ONTHEDOT_PARAM_NAME": "a b",
        "ONTHEDOT_PARAM_DEEP_ER": '{"n":[1,null]}',
        "ONTHEDOT_PARAM_ON": "true",
        "ONTHEDOT_PARAM_PATH": "/x",
    }
    rest = set(seen) - set(ours)
    assert "PATH" in rest
    assert rest <= {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}


RESULTS: dict[str, object] = {
    "echo hello": "hello",
    "echo '$HOME *'": "$HOME *",
    "printf 'first\\nlast\\n\\n'": "last",
    "printf 'working\\n{\"rows\": 3}'": {"rows": 3},
    "printf 42": 42,
    "true": None,
}


async def test_the_last_line_of_its_output_is_the_result(bench: Bench) -> None:
    await bench.start_worker(allow_shell="true")
    ids = [
        await run(bench, command, columns={"task_id": f"n{number}"}) for number, command in enumerate(RESULTS)
    ]

    ends = [await bench.ended(execution_id) for execution_id in ids]

    assert [end.result for end in ends] == list(RESULTS.values())
    assert {end.status for end in ends} == {Status.COMPLETED}


async def test_its_output_is_the_log_line_by_line(bench: Bench) -> None:
    execution = await end_of(bench, "sh -c 'echo one; echo two; echo oh >&2; printf three'")

    lines = [(line.stream, line.message) for line in await bench.log(execution.execution_id)]

    assert [message for stream, message in lines if stream == "stdout"] == ["one", "two", "three"]
    assert [message for stream, message in lines if stream == "stderr"] == ["oh"]


async def test_an_endless_output_is_bounded(bench: Bench) -> None:
    execution = await end_of(bench, "sh -c 'yes | head -n 200000; echo end'")

    lines = await bench.log(execution.execution_id)

    assert execution.result == "end"
    assert "lines were dropped" in lines[-1].message if len(lines) < 1000 else len(lines) == 1000


async def test_an_exit_status_fails_with_it_and_its_last_words(bench: Bench) -> None:
    execution = await end_of(bench, "sh -c 'echo first >&2; echo no such table >&2; exit 9'")

    assert execution.error is not None
    assert execution.error.type == "ExitStatus"
    assert execution.error.message == "sh ended with exit status 9: no such table"
    assert execution.error.category == "unknown"


async def test_rules_know_the_exit_status(bench: Bench) -> None:
    rules = '[{"match": {"exit_code": 9}, "category": "configuration_error"}]'

    execution = await end_of(bench, "sh -c 'exit 9'", columns={"failure_rules": rules, "max_retries": 3})

    assert execution.error is not None
    assert (execution.error.category, execution.attempt_number) == ("configuration_error", 1)


async def test_a_failed_command_is_tried_again_under_the_same_execution(bench: Bench, tmp_path: Path) -> None:
    command = f"sh -c 'echo $ONTHEDOT_EXECUTION_ID >> {tmp_path}/ids; test $ONTHEDOT_ATTEMPT_NUMBER = 2'"

    execution = await end_of(bench, command, columns={"max_retries": 1})

    assert (execution.status, execution.attempt_number) == (Status.COMPLETED, 2)
    assert (tmp_path / "ids").read_text().split() == [str(execution.execution_id)] * 2


async def test_a_signal_that_kills_it_is_named(bench: Bench) -> None:
    await bench.start_worker(allow_shell="true")
    task = await bench.task("shell:sh -c 'kill -$ONTHEDOT_PARAM_SIGNAL $$'", task_id="killed", max_retries=0)
    ids = [await bench.job(task, parameters={"signal": name}) for name in ("SEGV", "KILL")]

    segv, kill = [(await bench.ended(execution_id)).error for execution_id in ids]

    assert segv is not None
    assert (segv.type, segv.message, segv.category) == (
        "KilledBySignal",
        "sh was killed by SIGSEGV",
        "unknown",
    )
    assert kill is not None
    assert "SIGKILL (out of memory, probably)" in kill.message
    assert kill.category == "resource_exhaustion"


async def test_it_ignores_no_signals(bench: Bench) -> None:
    """A program inherits what is ignored: it would run on after its reader has gone, or not heed SIGTERM."""
    execution = await end_of(bench, "grep SigIgn /proc/self/status")

    assert isinstance(execution.result, str)
    ignored = int(execution.result.split()[1], 16)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        assert not ignored >> (number - 1) & 1


async def test_what_cannot_be_started_is_never_retried(bench: Bench, tmp_path: Path) -> None:
    data, script = tmp_path / "data", tmp_path / "script"
    data.write_text("true\n")
    script.write_text("true\n")
    script.chmod(0o755)
    why = {
        "no-such-command --x": "No such file or directory",
        str(data): "Permission denied",
        str(script): "Exec format error; a script begins with a line such as #!/bin/sh",
    }
    await bench.start_worker(allow_shell="true")
    ids = [
        await run(bench, command, columns={"task_id": f"n{number}", "max_retries": 3})
        for number, command in enumerate(why)
    ]

    ends = [await bench.ended(execution_id) for execution_id in ids]

    assert [end.error and end.error.message for end in ends] == [
        f"{command.partition(' ')[0]} cannot be started: {reason}" for command, reason in why.items()
    ]
    assert {end.error and end.error.category for end in ends} == {"configuration_error"}
    assert {end.attempt_number for end in ends} == {1}


async def test_a_worker_that_runs_no_commands_says_so_and_never_retries(bench: Bench) -> None:
    await bench.start_worker()

    execution = await bench.ended(await run(bench, "true", columns={"max_retries": 3}))

    assert execution.error is not None
    assert "ONTHEDOT_ALLOW_SHELL" in execution.error.message
    assert (execution.error.category, execution.attempt_number) == ("configuration_error", 1)


async def test_at_its_timeout_it_gets_sigterm(bench: Bench) -> None:
    began = time.monotonic()
    command = "sh -c 'trap \"echo tidied up; exit 0\" TERM; sleep 600 & echo pids $! $$; wait'"

    execution = await end_of(bench, command, timeout_seconds=0.3)

    assert execution.error is not None
    assert execution.error.category == "timeout"
    assert time.monotonic() - began < 60
    assert "tidied up" in [line.message for line in await bench.log(execution.execution_id)]
    assert await gone(*await said_pids(bench, execution.execution_id))


async def test_one_that_ignores_sigterm_is_killed_with_its_group(bench: Bench) -> None:
    await bench.start_worker(allow_shell="true")
    execution_id = await run(bench, "sh -c 'trap \"\" TERM; sleep 600 & echo pids $! $$; wait; sleep 600'")
    pids = await said_pids(bench, execution_id)

    await cancel(bench, execution_id)
    execution = await bench.ended(execution_id)

    assert execution.status is Status.CANCELLED
    assert await gone(*pids)
    assert execution.started_at is not None
    assert execution.completed_at is not None
    assert (execution.completed_at - execution.started_at).total_seconds() >= KILL_AFTER_SECONDS


async def test_a_daemon_that_holds_the_output_keeps_no_attempt_waiting(bench: Bench, tmp_path: Path) -> None:
    there = tmp_path / "there"
    daemon = f'setsid sh -c "echo pids \\$\\$; echo > {there}; exec sleep 600"'
    command = f"sh -c '{daemon} & until test -e {there}; do sleep 0.01; done'"

    execution = await end_of(bench, command, timeout_seconds=30)

    [pid] = await said_pids(bench, execution.execution_id)
    assert execution.status is Status.COMPLETED
    assert not has_ended(pid)
    psutil.Process(pid).send_signal(signal.SIGKILL)
    await gone(pid)


async def test_a_command_has_no_file_descriptors_but_the_three(bench: Bench) -> None:
    execution = await end_of(bench, "ls /proc/self/fd")

    open_ones = [line.message for line in await bench.log(execution.execution_id)]
    assert open_ones == ["0", "1", "2", "3"]  # the last one is that of the folder


async def test_what_it_leaves_in_its_group_ends_with_it(bench: Bench) -> None:
    execution = await end_of(bench, "sh -c 'sleep 600 & echo pids $!; exit 0'")

    assert execution.status is Status.COMPLETED
    assert await gone(*await said_pids(bench, execution.execution_id))


async def test_its_memory_is_limited_where_the_task_says_so(bench: Bench) -> None:
    command = f'{PYTHON} -c "bytearray(500 * 2**20)"'

    execution = await end_of(bench, command, columns={"memory_mb": 100})

    assert execution.error is not None
    assert execution.error.message.endswith("ended with exit status 1: MemoryError")


async def test_nothing_is_left_of_many(bench: Bench) -> None:
    """Neither processes nor file descriptors."""
    await bench.start_worker(allow_shell="true")
    await bench.ended(
        await run(bench, "sh -c 'echo oh >&2; exit $ONTHEDOT_PARAM_STATUS'", parameters={"status": 0})
    )
    before = psutil.Process().num_fds()

    ids = [await bench.job("command", parameters={"status": n % 2}) for n in range(50)]
    ends = [await bench.ended(execution_id) for execution_id in ids]

    assert [end.status for end in ends] == [Status.COMPLETED, Status.FAILED] * 25
    assert psutil.Process().num_fds() <= before + 5
    [server] = [child for child in psutil.Process().children() if "fork_server" in " ".join(child.cmdline())]
    assert server.children() == []
