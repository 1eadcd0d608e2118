"""What a worker does with an execution, from the claim to the record of how it ended."""

import asyncio
import threading
import time
from typing import Any
from uuid import UUID

import msgspec
import psycopg
import pytest

from app.db.stores.execution_control import Cancelling, ExecutionControl
from app.db.stores.executions import ExecutionStore
from app.domain.access import Actor
from app.domain.failures import Category, Failure
from app.domain.ids import SHARDS
from app.domain.statuses import Status
from app.tasks import Context, Handler
from app.worker import claimer
from tests.polling import eventually
from tests.worker.conftest import Bench

Register = dict[str, Handler]
CANCELLED = msgspec.json.encode(Failure.build("Cancelled", "cancelled by ada", Category.UNKNOWN)).decode()


async def cancel(bench: Bench, execution_id: UUID) -> Cancelling:
    """Cancel an execution as ada."""
    control, now = ExecutionControl(bench.pool), bench.clock.now()
    return await control.cancel(execution_id, error=CANCELLED, now=now, actor=Actor("user:ada"), reason=None)


async def test_runs_a_job_and_records_everything(bench: Bench) -> None:
    await bench.start_worker()
    execution_id = await bench.job(await bench.task("builtin:echo"), parameters={"n": 1})

    execution = await bench.ended(execution_id)

    assert execution.status is Status.COMPLETED
    assert execution.disposition == "ran"
    assert execution.result == {"n": 1}
    assert execution.attempt_number == 1
    assert execution.worker_id is not None
    assert execution.started_at is not None
    assert execution.completed_at is not None
    assert execution.due_at <= execution.started_at <= execution.completed_at
    assert execution.lateness_ms == pytest.approx(
        (execution.started_at - execution.due_at).total_seconds() * 1000, abs=0.01
    )


async def test_leases_ahead_and_never_starts_early(bench: Bench) -> None:
    await bench.start_worker()
    execution_id = await bench.job(await bench.task("builtin:noop"), in_seconds=1.5)

    leased = await bench.in_status(execution_id, "SCHEDULED")
    execution = await bench.ended(execution_id)

    assert leased.attempt_number == 0
    assert execution.claimed_at is not None
    assert execution.claimed_at < execution.due_at
    assert execution.started_at is not None
    assert execution.started_at >= execution.due_at
    assert execution.attempt_number == 1


async def test_retries_until_it_succeeds_and_keeps_the_failed_attempts(bench: Bench) -> None:
    await bench.start_worker()
    task = await bench.task("builtin:fail", retry_delay_seconds=0.01, max_retries=2)
    execution_id = await bench.job(task, parameters={"times": 2, "message": "no", "type": "Flaky"})

    execution = await bench.ended(execution_id)
    attempts = await bench.attempts(execution_id)

    assert execution.status is Status.COMPLETED
    assert [a.outcome for a in attempts] == ["failed", "failed", "completed"]
    assert [a.attempt_number for a in attempts] == [1, 2, 3]
    assert [a.error.type for a in attempts if a.error] == ["Flaky", "Flaky"]
    assert attempts[0].started_at is not None
    assert attempts[1].started_at is not None
    assert attempts[0].started_at < attempts[1].started_at


async def test_fails_after_the_last_attempt(bench: Bench) -> None:
    await bench.start_worker()
    task = await bench.task("builtin:fail", retry_delay_seconds=0.01, max_retries=1)
    execution_id = await bench.job(task, parameters={"message": "always"})

    execution = await bench.ended(execution_id)

    assert execution.status is Status.FAILED
    assert execution.disposition == "failed"
    assert execution.attempt_number == execution.max_attempts == 2
    assert execution.error is not None
    assert (execution.error.type, execution.error.category) == ("RuntimeError", "unknown")
    assert execution.error_details == "always"
    assert [a.outcome for a in await bench.attempts(execution_id)] == ["failed", "failed"]


async def test_a_handler_nobody_has_is_a_configuration_error_and_not_retried(bench: Bench) -> None:
    await bench.start_worker()
    execution_id = await bench.job(await bench.task("python:nobody", max_retries=5))

    execution = await bench.ended(execution_id)

    assert execution.status is Status.FAILED
    assert execution.attempt_number == 1
    assert execution.error is not None
    assert execution.error.category == "configuration_error"
    assert "ONTHEDOT_TASK_MODULES" in execution.error.message


async def test_a_tasks_rules_say_what_its_failures_mean(bench: Bench) -> None:
    await bench.start_worker()
    never = '[{"match": {"type": "Flaky", "message": "gone"}, "category": "configuration_error"}]'
    task = await bench.task("builtin:fail", max_retries=5, retry_delay_seconds=0.01, failure_rules=never)
    gone = await bench.job(task, parameters={"message": "the team is gone", "type": "Flaky"})
    back = await bench.job(task, parameters={"message": "in a moment", "type": "Flaky", "times": 1})

    ended, again = await bench.ended(gone), await bench.ended(back)

    assert (ended.status, ended.attempt_number) == (Status.FAILED, 1)
    assert ended.error is not None
    assert (ended.error.category, ended.error.severity) == (Category.CONFIGURATION_ERROR, "high")
    assert (again.status, again.attempt_number) == (Status.COMPLETED, 2)


class Busy(Exception):
    """The other side is busy."""

    category = "rate_limiting"
    retry_after_seconds = 0.01


async def test_who_is_told_to_wait_loses_no_attempt(bench: Bench, register: Register) -> None:
    calls: list[int] = []

    async def busy(context: Context) -> int:
        calls.append(context.attempt_number)
        if len(calls) <= 3:
            raise Busy
        raise ValueError("now it is tried, and fails")

    register["busy"] = busy
    await bench.start_worker()
    task = await bench.task("python:busy", max_retries=1, retry_delay_seconds=0.01)

    execution = await bench.ended(await bench.job(task))

    assert calls == [1, 2, 3, 4, 5]
    assert (execution.status, execution.attempt_number, execution.max_attempts) == (Status.FAILED, 5, 5)


async def test_async_and_plain_functions_log_and_return(bench: Bench, register: Register) -> None:
    async def in_loop(ctx: Context) -> object:
        ctx.logger.info("logged by %s", ctx.parameters["who"])
        print("printed")
        return {"attempt": ctx.attempt_number}

    def in_thread(ctx: Context) -> object:
        print(f"thread {ctx.parameters['who']}")
        return threading.current_thread().name.startswith("task")

    register.update(in_loop=in_loop, in_thread=in_thread)
    await bench.start_worker()
    first = await bench.job(await bench.task("python:in_loop"), parameters={"who": "a"})
    second = await bench.job(await bench.task("python:in_thread"), parameters={"who": "b"})

    assert (await bench.ended(first)).result == {"attempt": 1}
    assert (await bench.ended(second)).result is True
    assert [(x.message, x.stream) for x in await bench.log(first)] == [
        ("logged by a", "log"),
        ("printed", "stdout"),
    ]
    assert [x.message for x in await bench.log(second)] == ["thread b"]


class Hostile:
    def __repr__(self) -> str:
        raise ValueError("no")


def _raise(error: BaseException) -> Handler:
    def handler(_ctx: Context) -> object:
        raise error

    return handler


GARBAGE: dict[str, Any] = {
    "nul": lambda _ctx: "a\0b",
    "nan": lambda _ctx: {"x": float("nan")},
    "surrogate": lambda _ctx: "\ud800",
    "huge": lambda _ctx: "x" * 100_000_000,
    "object": lambda _ctx: Hostile(),
    "bytes": lambda _ctx: b"\xff\x00",
    "prints_100_mb": lambda _ctx: print("y" * 100_000_000),
    "prints_bytes": lambda _ctx: __import__("sys").stdout.buffer.write(b"\x00\xff\n"),
}


async def test_whatever_a_handler_returns_or_prints_is_recorded(bench: Bench, register: Register) -> None:
    register.update(GARBAGE)
    await bench.start_worker()
    ids = {name: await bench.job(await bench.task(f"python:{name}")) for name in GARBAGE}

    for name, execution_id in ids.items():
        assert (await bench.ended(execution_id)).status is Status.COMPLETED, name
    huge = await bench.ended(ids["huge"])
    assert huge.result_truncated
    assert huge.result["truncated"] is True
    assert (await bench.ended(ids["nul"])).result == "a␀b"
    [line] = await bench.log(ids["prints_100_mb"])
    assert "cut" in line.message
    assert len(line.message) < 10_000
    assert [x.message for x in await bench.log(ids["prints_bytes"])] == ["␀\ufffd"]


RAISES = {
    "system_exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "stop_iteration": StopIteration(),
    "nul_text": ValueError("a\0\ud800"),
    "recursion": RecursionError("deep"),
}
RAISED_AS = {"stop_iteration": "RuntimeError"}
"""PEP 479: it cannot leave a coroutine as itself."""


async def test_whatever_a_handler_raises_fails_its_execution_only(bench: Bench, register: Register) -> None:
    register.update({name: _raise(error) for name, error in RAISES.items()})
    await bench.start_worker()
    ids = {
        name: await bench.job(await bench.task(f"python:{name}", max_retries=0, queue="general"))
        for name in RAISES
    }

    for name, execution_id in ids.items():
        execution = await bench.ended(execution_id)
        assert execution.status is Status.FAILED, name
        assert execution.error is not None
        assert execution.error.type == RAISED_AS.get(name, type(RAISES[name]).__name__)
    after = await bench.job(await bench.task("builtin:noop"))
    assert (await bench.ended(after)).status is Status.COMPLETED


async def test_a_timeout_ends_the_attempt_whatever_the_handler_does(bench: Bench, register: Register) -> None:
    release = threading.Event()

    def deaf(_ctx: Context) -> None:
        release.wait(30)

    register["deaf"] = deaf
    await bench.start_worker()
    polite = await bench.job(
        await bench.task("builtin:sleep", max_retries=0), parameters={"seconds": 60}, timeout_seconds=0.1
    )
    stubborn = await bench.job(await bench.task("python:deaf", max_retries=0), timeout_seconds=0.1)

    for execution_id in (polite, stubborn):
        execution = await bench.ended(execution_id)
        assert execution.status is Status.FAILED
        assert execution.error is not None
        assert execution.error.category == "timeout"
        assert "0.1 s" in execution.error.message
    release.set()


async def test_leases_live_on_while_a_handler_blocks_the_event_loop(
    bench: Bench, register: Register, database: "psycopg.Connection[tuple[Any, ...]]"
) -> None:
    seen: list[bool] = []

    def watch() -> None:
        while not seen or len(seen) < 20:
            row = database.execute(
                "SELECT lease_expires_at > now(), started_at IS NOT NULL FROM onthedot.executions"
            ).fetchone()
            database.rollback()
            seen.append(bool(row and row[0]))
            time.sleep(0.1)

    async def blocks(_ctx: Context) -> None:
        watcher = threading.Thread(target=watch)
        watcher.start()
        watcher.join()  # the loop stands still for two leases

    register["blocks"] = blocks
    await bench.start_worker(lease_seconds="1")
    execution_id = await bench.job(await bench.task("python:blocks"))

    execution = await bench.ended(execution_id)

    assert all(seen)
    assert execution.attempt_number == 1


async def test_an_outcome_that_comes_after_the_lease_was_lost_changes_nothing(
    bench: Bench, register: Register
) -> None:
    go_on = threading.Event()
    register["slow"] = lambda _ctx: go_on.wait(30)
    await bench.start_worker()
    execution_id = await bench.job(await bench.task("python:slow"))
    await bench.in_status(execution_id, "RUNNING")

    await bench.pool.execute("UPDATE onthedot.executions SET lease_epoch = lease_epoch + 1")
    go_on.set()
    other = await bench.job(await bench.task("builtin:noop"))
    await bench.ended(other)  # settled after the lost one

    assert (await bench.in_status(execution_id, "RUNNING")).completed_at is None


TAKE_AWAY = """
UPDATE onthedot.executions
   SET lease_epoch = lease_epoch + 1, status = 'RETRYING', worker_id = NULL, lease_expires_at = NULL,
       claimed_at = NULL
 WHERE execution_id = $1
"""
"""What a reaper does to an execution whose worker it takes for dead."""


async def test_a_worker_that_claims_again_what_it_had_lost_keeps_the_new_lease(
    bench: Bench, register: Register
) -> None:
    """The late outcome of its old attempt belongs to the old lease: it must not end the new one."""
    second_began = asyncio.Event()
    left_seconds: list[float] = []

    async def slow(context: Context) -> int:
        if context.attempt_number == 1:
            await bench.pool.execute(TAKE_AWAY, context.execution_id)
            await second_began.wait()
            return 1
        second_began.set()
        for _ in range(12):  # three leases long
            await asyncio.sleep(0.25)
            left_seconds.append(
                await bench.pool.fetchval(
                    "SELECT extract(epoch FROM lease_expires_at - now())::float8 FROM onthedot.executions"
                )
            )
        return 2

    register["slow"] = slow
    await bench.start_worker(lease_seconds="1")

    execution = await bench.ended(await bench.job(await bench.task("python:slow")))

    assert (execution.status, execution.result, execution.attempt_number) == (Status.COMPLETED, 2, 2)
    assert min(left_seconds) > 0


async def test_stopping_gives_back_what_has_not_begun_and_finishes_what_has(bench: Bench) -> None:
    worker = await bench.make_worker(concurrency="1", grace_seconds="10")
    worker.start()
    sleeper = await bench.task("builtin:sleep")
    running = await bench.job(sleeper, parameters={"seconds": 0.5})
    await bench.in_status(running, "RUNNING")
    ahead = await bench.job(sleeper, in_seconds=1.9, parameters={"seconds": 0})
    worker.wake()
    await bench.in_status(ahead, "SCHEDULED")

    await worker.stop()

    assert (await bench.ended(running)).status is Status.COMPLETED
    returned = await bench.in_status(ahead, "PENDING")
    assert returned.attempt_number == 0
    assert returned.worker_id is None


async def test_a_drain_that_outlasts_the_lease_keeps_it(bench: Bench) -> None:
    """A reaper that looks all the while finds nothing to free."""
    worker = await bench.make_worker(grace_seconds="10", lease_seconds="1")
    worker.start()
    execution_id = await bench.job(await bench.task("builtin:sleep"), parameters={"seconds": 2.5})
    await bench.in_status(execution_id, "RUNNING")
    stopping = asyncio.ensure_future(worker.stop())

    async def stopped() -> bool:
        for shard in SHARDS:
            assert (await ExecutionStore(bench.pool).reap(shard, limit=10)).transitions == 0
        return stopping.done()

    await eventually(stopped)
    execution = await bench.ended(execution_id)
    assert (execution.status, execution.attempt_number) == (Status.COMPLETED, 1)


async def test_stopping_ends_what_outlasts_the_grace_and_gives_it_back(bench: Bench) -> None:
    worker = await bench.make_worker(grace_seconds="0")
    worker.start()
    execution_id = await bench.job(await bench.task("builtin:sleep"), parameters={"seconds": 60})
    await bench.in_status(execution_id, "RUNNING")

    await worker.stop()

    assert (await bench.in_status(execution_id, "PENDING")).attempt_number == 0


async def test_uses_the_newest_definition_of_a_task(bench: Bench) -> None:
    await bench.start_worker()
    task = await bench.task("builtin:fail", max_retries=0)
    await bench.ended(await bench.job(task))
    waiting = await bench.job(task, in_seconds=0.5)
    await bench.pool.execute(
        "UPDATE onthedot.tasks SET execution_handler = 'builtin:noop', version = version + 1"
    )

    assert (await bench.ended(waiting)).status is Status.COMPLETED


async def test_settles_into_a_day_that_has_no_partition_yet(bench: Bench) -> None:
    names = await bench.pool.fetch(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = ANY ($1::regclass[])",
        ["onthedot.execution_history", "onthedot.attempts", "onthedot.execution_logs"],
    )
    for row in names:
        await bench.pool.execute(f"DROP TABLE {row['name']}")
    await bench.start_worker()
    task = await bench.task("builtin:fail", retry_delay_seconds=0.01)
    execution_id = await bench.job(task, parameters={"times": 1})

    assert (await bench.ended(execution_id)).status is Status.COMPLETED
    assert [a.outcome for a in await bench.attempts(execution_id)] == ["failed", "completed"]


async def test_a_retry_is_taken_up_as_soon_as_it_is_due(bench: Bench) -> None:
    await bench.start_worker()
    task = await bench.task("builtin:fail", retry_delay_seconds=0.05, max_retries=9, retry_policy="fixed")
    execution_id = await bench.job(task, parameters={"times": 9})

    execution = await bench.ended(execution_id, seconds=5)

    assert execution.attempt_number == 10


async def test_a_paused_queue_starts_nothing_until_it_is_resumed(bench: Bench) -> None:
    pause = "UPDATE onthedot.queues SET paused_at = now() WHERE queue = 'general'"
    await bench.pool.execute(pause)
    await bench.start_worker()
    task = await bench.task("builtin:noop")
    waiting, ahead = await bench.job(task), await bench.job(task, in_seconds=0.5)
    elsewhere = await bench.job(task, queue="critical")

    await bench.ended(elsewhere)
    assert (await bench.in_status(waiting, "PENDING")).attempt_number == 0
    assert (await bench.in_status(ahead, "PENDING")).attempt_number == 0
    await bench.pool.execute("UPDATE onthedot.queues SET paused_at = NULL")

    assert (await bench.ended(waiting)).status is Status.COMPLETED
    assert (await bench.ended(ahead)).status is Status.COMPLETED


async def test_cancelling_a_running_execution_stops_it(bench: Bench, register: Register) -> None:
    stopped = threading.Event()

    def listens(ctx: Context) -> None:
        while not ctx.cancelled:
            time.sleep(0.01)
        stopped.set()

    register["listens"] = listens
    await bench.start_worker()
    sleeping = await bench.job(await bench.task("builtin:sleep"), parameters={"seconds": 60})
    listening = await bench.job(await bench.task("python:listens"))
    for execution_id in (sleeping, listening):
        await bench.in_status(execution_id, "RUNNING")

        outcome = await cancel(bench, execution_id)

        assert outcome is Cancelling.REQUESTED
        execution = await bench.ended(execution_id)
        assert (execution.status, execution.disposition) == (Status.CANCELLED, "cancelled")
        assert execution.error_details == "cancelled by ada"
        assert [a.outcome for a in await bench.attempts(execution_id)] == ["cancelled"]
        assert await cancel(bench, execution_id) is Cancelling.ENDED
    assert stopped.wait(5)


async def test_what_is_cancelled_before_its_instant_never_runs(bench: Bench) -> None:
    worker = await bench.start_worker()
    execution_id = await bench.job(await bench.task("builtin:noop"), in_seconds=1.9)
    worker.wake()
    await bench.in_status(execution_id, "SCHEDULED")

    assert await cancel(bench, execution_id) is Cancelling.CANCELLED

    after = await bench.job("builtin-noop", in_seconds=1.9)
    await bench.ended(after)
    execution = await bench.ended(execution_id)
    assert (execution.status, execution.attempt_number, execution.started_at) == (Status.CANCELLED, 0, None)


async def test_a_relaxed_queue_settles_too(bench: Bench) -> None:
    await bench.start_worker()
    execution_id = await bench.job(await bench.task("builtin:echo", queue="bulk"), parameters={"n": 1})

    assert (await bench.ended(execution_id)).result == {"n": 1}


async def test_parameters_that_came_by_sql_meet_the_schema_before_they_run(bench: Bench) -> None:
    await bench.start_worker()
    schema = '{"type": "object", "required": ["n"]}'
    await bench.task("builtin:echo", parameter_schema=schema, max_retries=5)
    enqueue = "SELECT onthedot.enqueue('builtin-echo', $1::text::jsonb)"
    good, bad = [await bench.pool.fetchval(enqueue, text) for text in ('{"n": 1}', "{}")]

    found = "SELECT execution_id FROM audit.executions WHERE job_id = $1"
    done = [await bench.ended(await bench.pool.fetchval(found, job_id)) for job_id in (good, bad)]

    assert [e.status for e in done] == [Status.COMPLETED, Status.FAILED]
    assert done[0].result == {"n": 1}
    assert done[1].error is not None
    assert (done[1].error.category, done[1].attempt_number) == ("configuration_error", 1)


async def test_who_was_idle_reads_the_queues_again_before_it_claims_what_it_finds(
    bench: Bench, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claimer, "QUEUES_EVERY_SECONDS", 0.0)
    release = asyncio.Event()

    async def wait(ctx: Context) -> None:  # noqa: ARG001 - as handlers are called
        await release.wait()

    register["wait"] = wait
    await bench.start_worker()
    await bench.ended(await bench.job(await bench.task("builtin:noop")))
    await bench.pool.execute("UPDATE onthedot.queues SET lease_seconds = 7 WHERE queue = 'general'")
    execution_id = await bench.job(await bench.task("python:wait"))
    await bench.in_status(execution_id, "RUNNING")

    leased = await bench.pool.fetchval(
        "SELECT extract(epoch FROM lease_expires_at - claimed_at)::float8 FROM onthedot.executions"
    )
    release.set()
    assert leased == 7
