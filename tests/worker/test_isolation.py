"""Functions in processes of their own: what they get, what they leave, and that they end."""

import os
import signal
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest

from app.domain.statuses import Status
from app.worker.attempt import STOP_GRACE_SECONDS
from app.worker.isolation.launcher import KILL_AFTER_SECONDS, LAST_OUTPUT_SECONDS
from tests.polling import eventually
from tests.worker.conftest import Bench
from tests.worker.test_worker import TAKE_AWAY, cancel

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks at processes as Linux shows them"
)


async def start(bench: Bench, **settings: str) -> None:
    """Start a worker that knows the functions of `isolated_tasks`."""
    await bench.start_worker(task_modules="tests.worker.isolated_tasks", **settings)


async def run(bench: Bench, name: str, *, max_retries: int = 0, **request: Any) -> UUID:
    """Run a function once."""
    task = await bench.task(f"python:{name}", max_retries=max_retries, retry_delay_seconds=0.01)
    return await bench.job(task, **request)


async def said_pids(bench: Bench, execution_id: UUID) -> list[int]:
    """Wait for the line in which a function says its process and those that it has started."""

    async def probe() -> list[int] | None:
        lines = [line.message for line in await bench.log(execution_id) if line.message.startswith("pids")]
        return [int(word) for word in lines[0].split()[1:]] if lines else None

    return await eventually(probe)


async def gone(*pids: int) -> bool:
    """Wait until processes are gone."""

    async def probe() -> bool:
        return not any(psutil.pid_exists(pid) for pid in pids)

    return await eventually(probe)


async def test_what_yields_its_slot_is_killed_before_that_is_taken(bench: Bench) -> None:
    await start(bench, concurrency="1", grace_seconds="0")
    upkeep = await bench.task("python:deaf", queue="maintenance", priority=3, max_retries=0)
    yielding = await bench.job(upkeep)
    pids = await said_pids(bench, yielding)

    assert (await bench.ended(await bench.job(await bench.task("builtin:noop")))).status is Status.COMPLETED

    assert await gone(*pids)
    assert (await bench.attempts(yielding))[0].outcome == "interrupted"


async def test_a_function_gets_its_context_and_nothing_of_ours(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONTHEDOT_ADMIN_API_KEY", "k" * 40)
    monkeypatch.setenv("OWN_VARIABLE", "kept")
    await start(bench)
    ids = [await run(bench, "about", parameters={"n": [1, "ü"]})]
    ids.append(await bench.job("python-about", parameters={}))

    execution, second = [await bench.ended(execution_id) for execution_id in ids]

    seen = execution.result
    assert execution.status is Status.COMPLETED
    assert seen["execution_id"] == str(execution.execution_id)
    assert seen["job_id"] == str(execution.job_id)
    assert seen["attempt_number"] == 1
    assert seen["parameters"] == {"n": [1, "ü"]}
    assert seen["fencing_token"] > 2**40
    assert seen["timeout_seconds"] == 3600
    assert seen["main_thread"] is True
    assert seen["pid"] not in {os.getpid(), second.result["pid"]}
    assert seen["environment"]["OWN_VARIABLE"] == "kept"
    assert [name for name in seen["environment"] if name.startswith("ONTHEDOT_")] == []
    kinds = sorted(target.partition(":")[0] for target in seen["descriptors"].values() if target)
    assert kinds == ["/dev/null", "pipe", "pipe", "socket"]  # of which the socket is its line to the worker
    await gone(seen["pid"], second.result["pid"])


async def test_an_async_function_runs_in_a_process_too(bench: Bench) -> None:
    await start(bench)

    execution = await bench.ended(await run(bench, "about.async"))

    assert execution.status is Status.COMPLETED
    assert execution.result != os.getpid()


async def test_whatever_it_says_is_in_the_log_in_its_order(bench: Bench) -> None:
    await start(bench)
    execution_id = await run(bench, "talk")
    await bench.ended(execution_id)

    lines = [(line.stream, line.level, line.message) for line in await bench.log(execution_id)]

    assert lines == [
        ("stdout", "INFO", "printed"),
        ("log", "WARNING", "logged so"),
        ("stderr", "INFO", "to stderr"),
        ("log", "INFO", "by a logger"),
        ("stdout", "INFO", "from a thread"),
        ("stdout", "INFO", "half a line"),
    ]


async def test_what_is_written_past_python_is_in_the_log(bench: Bench) -> None:
    await start(bench)
    execution_id = await run(bench, "whisper")
    await bench.ended(execution_id)

    lines = {(line.stream, line.message) for line in await bench.log(execution_id)}

    assert lines == {("stdout", "raw"), ("stdout", "of a process"), ("stderr", "complaint")}


async def test_what_it_raises_is_the_failure_with_all_that_rules_ask_for(bench: Bench) -> None:
    await start(bench)
    rules = '[{"match": {"type": "Unlucky"}, "category": "configuration_error"}]'
    await bench.task("python:fail", max_retries=1, retry_delay_seconds=0.01, failure_rules=rules)
    unlucky = await bench.ended(await bench.job("python-fail", parameters={"how": "unlucky"}))
    exits = await bench.ended(await bench.job("python-fail", parameters={"how": "exits"}, max_retries=0))

    assert unlucky.error is not None
    assert (unlucky.error.type, unlucky.error.message) == ("Unlucky", "bad luck")
    assert unlucky.error.category == "configuration_error"
    assert unlucky.attempt_number == 1
    assert 'raise Unlucky("bad luck")' in (unlucky.error.traceback or "")
    assert exits.error is not None
    assert (exits.error.type, exits.error.message) == ("SystemExit", "3")


async def test_rules_know_its_base_classes_and_status(bench: Bench) -> None:
    await start(bench)
    rules = (
        '[{"match": {"type": "ConnectionError", "http_status": 429}, "category": "timeout", "retry": false}]'
    )
    await bench.task("python:fail", failure_rules=rules)

    execution = await bench.ended(await bench.job("python-fail", parameters={"how": "refused"}))

    assert execution.error is not None
    assert (execution.error.type, execution.error.category) == ("Refused", "timeout")


DIES: list[tuple[dict[str, int], str, str, str]] = [
    ({"status": 3}, "ExitStatus", "ended with exit status 3", "unknown"),
    ({"status": 0}, "ExitStatus", "ended with exit status 0", "unknown"),
    ({"signal": signal.SIGSEGV}, "KilledBySignal", "was killed by SIGSEGV", "unknown"),
    (
        {"signal": signal.SIGKILL},
        "KilledBySignal",
        "was killed by SIGKILL (out of memory, probably)",
        "resource_exhaustion",
    ),
]


async def test_a_process_that_dies_is_a_failure_and_the_worker_lives_on(bench: Bench) -> None:
    await start(bench)
    task = await bench.task("python:die", max_retries=0)
    ids = [await bench.job(task, parameters=parameters) for parameters, *_ in DIES]

    for execution_id, (_, type_, message, category) in zip(ids, DIES, strict=True):
        error = (await bench.ended(execution_id)).error
        assert error is not None
        assert (error.type, error.message) == (type_, f"the process of die {message}")
        assert error.category == category
    assert (await bench.ended(await run(bench, "about.async"))).status is Status.COMPLETED


async def test_its_memory_is_limited(bench: Bench) -> None:
    await start(bench)
    task = await bench.task("python:hoard", max_retries=0)
    ids = [await bench.job(task, parameters={"how": how, "mb": 500}) for how in ("bits", "at once")]

    for execution_id in ids:
        error = (await bench.ended(execution_id)).error
        assert error is not None
        assert (error.type, error.category) == ("MemoryError", "resource_exhaustion")
        assert error.message == "the process has reached its limit of 128 MB"
    fits = await bench.ended(await bench.job(task, parameters={"mb": 40}))
    assert fits.result == 40


async def test_a_task_that_names_memory_is_given_that_much(bench: Bench) -> None:
    await start(bench)
    await bench.task("python:hoard", memory_mb=700, max_retries=0)
    await bench.task("python:map_memory", memory_mb=200, max_retries=0)

    more = await bench.ended(await bench.job("python-hoard", parameters={"mb": 500}))
    less = await bench.ended(await bench.job("python-map_memory"))

    assert more.result == 500
    assert less.error is not None
    assert (less.error.type, less.error.category) == ("OSError", "resource_exhaustion")


async def test_at_its_timeout_it_is_killed_with_all_that_it_has_started(bench: Bench) -> None:
    await start(bench)
    execution_id = await run(bench, "deaf", timeout_seconds=0.5)

    execution = await bench.ended(execution_id)

    assert execution.error is not None
    assert execution.error.category == "timeout"
    assert await gone(*await said_pids(bench, execution_id))


@pytest.mark.parametrize("name", ["heeds", "heeds.async"])
async def test_it_is_asked_to_stop_before_it_is_killed(bench: Bench, name: str) -> None:
    await start(bench)
    execution_id = await run(bench, name)
    pids = await said_pids(bench, execution_id)

    await cancel(bench, execution_id)
    execution = await bench.ended(execution_id)

    assert execution.status is Status.CANCELLED
    assert "tidied up" in [line.message for line in await bench.log(execution_id)]
    assert await gone(*pids)


def test_a_process_is_dead_before_its_attempt_is_given_up() -> None:
    assert KILL_AFTER_SECONDS + LAST_OUTPUT_SECONDS < STOP_GRACE_SECONDS


async def test_an_effect_is_done_once_over_attempts(bench: Bench) -> None:
    await start(bench)
    execution_id = await run(bench, "once", max_retries=1)

    execution = await bench.ended(execution_id)

    assert execution.attempt_number == 2
    assert execution.result == {"in_attempt": 1}
    assert [line.message for line in await bench.log(execution_id)].count("done") == 1
    assert (await bench.ended(await run(bench, "once.async"))).result == [7, 7]


async def test_an_effect_that_cannot_be_recorded_raises_in_the_function(bench: Bench, tmp_path: Path) -> None:
    await start(bench)
    bad = await bench.ended(await run(bench, "once.badly"))
    go, told = tmp_path / "go", tmp_path / "told"
    late = await run(bench, "once.late", parameters={"go": str(go), "told": str(told)})
    await bench.in_status(late, "RUNNING")

    await bench.pool.execute(TAKE_AWAY, late)
    go.touch()

    async def probe() -> str | None:
        return told.read_text() if told.exists() else None

    assert bad.error is not None
    assert (bad.error.type, bad.error.message[:20]) == ("ValueError", "ctx.once takes a key")
    assert "another worker has the execution" in await eventually(probe)


async def test_a_transaction_is_refused_with_the_remedy(bench: Bench) -> None:
    await start(bench)

    execution = await bench.ended(await run(bench, "transact"))

    assert execution.error is not None
    assert "use ctx.once" in execution.error.message
    assert execution.error.category == "configuration_error"


@pytest.mark.parametrize("own_session", [False, True])
async def test_what_it_leaves_behind_keeps_no_attempt_waiting(bench: Bench, own_session: bool) -> None:  # noqa: FBT001
    """What is in its group is killed; what has left the group and holds its output is let go."""
    await start(bench)
    execution_id = await run(
        bench, "leave_behind", parameters={"own_session": own_session}, timeout_seconds=30
    )

    execution = await bench.ended(execution_id)

    [pid] = await said_pids(bench, execution_id)
    assert execution.status is Status.COMPLETED
    if own_session:
        psutil.Process(pid).kill()
    await gone(pid)


async def test_a_fork_server_that_dies_fails_its_attempts_and_is_started_again(
    bench: Bench, tmp_path: Path
) -> None:
    await start(bench)
    path = tmp_path / "pids"
    execution_id = await run(bench, "wait_forever", parameters={"path": str(path)})

    async def probe() -> list[int] | None:
        return [int(word) for word in path.read_text().split()] if path.exists() else None

    pid, server_pid, _ = await eventually(probe)
    os.kill(server_pid, signal.SIGKILL)
    execution = await bench.ended(execution_id)

    assert execution.error is not None
    assert (execution.error.type, execution.error.category) == ("ForkServerFailed", "resource_exhaustion")
    await gone(pid)
    assert (await bench.ended(await run(bench, "about.async"))).status is Status.COMPLETED
