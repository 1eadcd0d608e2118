"""The views for people say what is so, and cost little where one execution, job or queue is asked for."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.db.pools import Pool
from app.domain.ids import new_execution_id, new_job_id, shard_of
from tests.factories import (
    FAILURE,
    Row,
    execution_row,
    finished_row,
    insert,
    job_row,
    make_execution,
    make_finished,
    make_job,
    make_task,
    now_of,
)

ROWS = 20_000
"""Of each kind. With fewer, reading whole partitions is the cheapest plan and the right one."""
MOST_READ = 100
ATTEMPTS = "SELECT * FROM audit.attempts"
LAPSED = FAILURE.replace("RuntimeError", "LeaseLapsed")
TIMED_OUT = FAILURE.replace('"unknown"', '"timeout"')
ONCE = {"schedule_type": "IMMEDIATE", "every_seconds": None, "starts_at": None, "materialize_at": None}


def attempt_row(execution: Row, number: int, **columns: Any) -> Row:
    """Return an attempt that failed and was retried."""
    return {
        "shard": execution["shard"],
        "execution_id": execution["execution_id"],
        "attempt_number": number,
        "lease_epoch": number,
        "worker_id": uuid4(),
        "ended_at": execution["first_due_at"],
        "outcome": "failed",
        "error": FAILURE,
    } | columns


async def test_jobs_show_what_holds_for_them(pool: Pool) -> None:
    await make_task(pool, name="Report", queue="bulk", priority=1, timeout_seconds=60.0)
    plain, other = await make_job(pool), await make_job(pool, queue="critical", priority=0, max_retries=1)
    gone = await make_job(pool, task_id="gone")
    soon = await make_execution(pool, job_id=plain, due_in_seconds=60)
    await make_execution(pool, job_id=plain, due_in_seconds=120)
    await make_execution(pool, job_id=plain, due_in_seconds=-60, status="RUNNING")

    jobs = {row["job_id"]: row for row in await pool.fetch("SELECT * FROM audit.jobs")}
    what = ("task_name", "queue", "priority", "max_retries", "timeout_seconds")
    assert [jobs[plain][name] for name in what] == ["Report", "bulk", 1, 3, 60.0]
    assert [jobs[other][name] for name in what] == ["Report", "critical", 0, 1, 60.0]
    assert [jobs[gone][name] for name in what] == [None, None, None, None, None]
    instant = "SELECT scheduled_time FROM onthedot.executions WHERE execution_id = $1"
    assert jobs[plain]["next_time"] == await pool.fetchval(instant, soon)
    assert jobs[other]["next_time"] is None


@pytest.mark.parametrize(
    ("columns", "earlier", "outcomes"),
    [
        ({"status": "RUNNING"}, [], ["running"]),
        ({"status": "RUNNING", "attempt_number": 3}, [1, 2], ["failed", "failed", "running"]),
        ({"status": "RETRYING"}, [1], ["failed"]),
        ({"status": "SCHEDULED", "attempt_number": 1}, [1], ["failed"]),
        ({"status": "PENDING"}, [], []),
        ({"status": "COMPLETED"}, [], ["completed"]),
        ({"status": "COMPLETED", "attempt_number": 2}, [1], ["failed", "completed"]),
        ({"status": "FAILED", "attempt_number": 2}, [1], ["failed", "failed"]),
        ({"status": "FAILED", "error": TIMED_OUT}, [], ["timeout"]),
        ({"status": "FAILED", "error": LAPSED, "started_at": None}, [], ["lost"]),
        ({"status": "SKIPPED"}, [], []),
        ({"status": "CANCELLED"}, [], ["cancelled"]),
        # while it waited: for its first attempt, for its second one, or at a worker for its second one
        ({"status": "CANCELLED", "attempt_number": 0, "worker_id": None, "started_at": None}, [], []),
        ({"status": "CANCELLED", "worker_id": None}, [1], ["failed"]),
        ({"status": "CANCELLED", "started_at": None}, [1], ["failed"]),
        # never seen to begin, asked to stop, and lost with its worker
        ({"status": "CANCELLED", "started_at": None, "attempt_number": 2}, [1], ["failed", "cancelled"]),
    ],
)
async def test_attempts_are_complete_and_each_is_there_once(
    pool: Pool, columns: Mapping[str, Any], earlier: list[int], outcomes: list[str]
) -> None:
    now = await now_of(pool)
    live = columns["status"] in ("RUNNING", "RETRYING", "SCHEDULED", "PENDING")
    row = execution_row(now, **columns) if live else finished_row(now, **columns)
    await insert(pool, "executions" if live else "execution_history", [row])
    await insert(pool, "attempts", [attempt_row(row, number) for number in earlier])

    for where, value in (("execution_id", row["execution_id"]), ("job_id", row["job_id"])):
        found = await pool.fetch(f"{ATTEMPTS} WHERE {where} = $1 ORDER BY attempt_number", value)
        assert [each["outcome"] for each in found] == outcomes
        assert [each["attempt_number"] for each in found] == list(range(1, len(outcomes) + 1))
        assert {each["task_id"] for each in found} <= {"report"}


async def test_an_attempt_whose_execution_is_gone_is_shown_still(pool: Pool) -> None:
    row = execution_row(await now_of(pool))
    await insert(pool, "attempts", [attempt_row(row, 1)])

    [attempt] = await pool.fetch("SELECT * FROM audit.attempts")
    assert (attempt["execution_id"], attempt["outcome"], attempt["job_id"]) == (
        row["execution_id"],
        "failed",
        None,
    )
    assert attempt["error_details"] == "no"


@pytest.mark.parametrize(
    ("columns", "late"),
    [
        ({"lateness_ms": 2001.0}, 1),
        ({"lateness_ms": 2000.0}, 0),
        ({"lateness_ms": 101.0, "queue": "critical"}, 1),
        ({"lateness_ms": 99.0, "queue": "critical"}, 0),
        ({"lateness_ms": 2001.0, "queue": "gone"}, 1),
        ({"lateness_ms": None, "status": "SKIPPED"}, 0),
        ({"status": "RUNNING", "due_in_seconds": -5}, 1),
        ({"status": "RUNNING", "due_in_seconds": -1}, 0),
        ({"status": "RETRYING", "due_in_seconds": 60, "lateness_ms": 3000.0}, 1),
        ({"status": "PENDING", "due_in_seconds": -5}, 0),
    ],
)
async def test_late_is_what_started_later_than_its_queue_allows(
    pool: Pool, columns: Mapping[str, Any], late: int
) -> None:
    live = columns.get("status") in ("RUNNING", "RETRYING", "PENDING")
    execution_id = await (make_execution if live else make_finished)(pool, **columns)

    found = await pool.fetch("SELECT * FROM audit.late_executions")
    assert [row["execution_id"] for row in found] == [execution_id] * late
    for row in found:
        lateness = timedelta(milliseconds=row["lateness_ms"])
        assert abs(row["first_started_at"] - row["first_due_at"] - lateness) < timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"status": "RUNNING", "lease_ends_in_seconds": -11}, "lease_lapsed"),
        ({"status": "SCHEDULED", "lease_ends_in_seconds": -11}, "lease_lapsed"),
        ({"status": "RUNNING", "lease_ends_in_seconds": -9}, None),
        ({"status": "RUNNING", "due_in_seconds": -3600}, None),
        ({"due_in_seconds": -61}, "not_claimed"),
        ({"due_in_seconds": -61, "status": "RETRYING", "priority": 3}, "not_claimed"),
        ({"due_in_seconds": -61, "queue": "bulk"}, None),  # paused
        ({"due_in_seconds": -61, "queue": "maintenance"}, "not_claimed"),  # paused until a minute ago
        ({"due_in_seconds": -61, "held": True}, None),
        ({"due_in_seconds": -61, "status": "BLOCKED"}, None),
        ({"due_in_seconds": -59}, None),
        ({"due_in_seconds": 3600}, None),
    ],
)
async def test_stuck_is_what_somebody_should_have_taken(
    pool: Pool, columns: Mapping[str, Any], problem: str | None
) -> None:
    await pool.execute("UPDATE onthedot.queues SET paused_at = now() WHERE queue IN ('bulk', 'maintenance')")
    await pool.execute(
        "UPDATE onthedot.queues SET paused_until = now() - interval '1 minute' WHERE queue = 'maintenance'"
    )
    execution_id = await make_execution(pool, **columns)

    found = await pool.fetch("SELECT execution_id, problem, since FROM audit.stuck_executions")
    assert [(row[0], row[1]) for row in found] == ([(execution_id, problem)] if problem else [])
    now = await now_of(pool)
    assert all(row["since"] < now for row in found)


@pytest.mark.parametrize("by", ["user", "key", "job", "rate"])
async def test_what_a_limit_keeps_waiting_is_not_stuck(pool: Pool, by: str) -> None:
    """And it is, where a limit has room."""
    await make_task(pool, rate_per_second=0.01 if by == "rate" else None)
    await insert(
        pool, "users", [{"user_id": "ada", "name": "ada", "role": "viewer", "max_concurrent_jobs": 2}]
    )
    job_id = await make_job(pool)
    limits = {"key": {"concurrency_key": "k"}, "job": {"job_id": job_id, "overlap": "queue"}}
    await make_execution(pool, due_in_seconds=-90, limited=True, **limits.get(by, {}))
    stuck = "SELECT count(*) FROM audit.stuck_executions"

    assert await pool.fetchval(stuck) == 1
    if by == "rate":
        await pool.execute(
            "INSERT INTO onthedot.rate_buckets VALUES ('task:report', 0, now() - interval '90 s')"
        )
    for execution_id in (uuid4(), uuid4()):
        key = {"user": "user:ada", "key": "key:k", "job": f"job:{job_id}"}.get(by, "key:other")
        await insert(
            pool, "limit_holders", [{"key": key, "execution_id": execution_id, "shard": 0, "lease_epoch": 1}]
        )
    assert await pool.fetchval(stuck) == 0


async def test_what_runs_beside_limits_is_not_late_for_having_waited_for_them(pool: Pool) -> None:
    running = {"status": "RUNNING", "due_in_seconds": -90}
    late = await make_execution(pool, **running)
    await make_execution(pool, **running, limited=True)

    found = await pool.fetch("SELECT execution_id FROM audit.late_executions")
    assert [row[0] for row in found] == [late]


async def test_queue_depth_counts_what_waits_and_what_runs(pool: Pool) -> None:
    now = await now_of(pool)
    kinds: list[dict[str, Any]] = [
        {"due_in_seconds": -5},
        {"due_in_seconds": -1, "priority": 0},
        {"due_in_seconds": 30},
        {"due_in_seconds": 90},
        {"due_in_seconds": -5, "held": True},
        {"status": "RUNNING"},
        {"status": "RUNNING", "priority": 3},
        {"status": "SCHEDULED"},
    ]
    await insert(pool, "executions", [execution_row(now, **kind) for kind in kinds])

    queues = {row["queue"]: row for row in await pool.fetch("SELECT * FROM audit.queue_depth")}
    general, bulk = queues["general"], queues["bulk"]
    counts = ("depth", "due_within_minute", "scheduled", "running")
    assert [general[name] for name in counts] == [2, 1, 1, 2]
    assert general["oldest_due_at"] == now - timedelta(seconds=5)
    assert general["oldest_due_seconds"] >= 5
    assert [bulk[name] for name in counts] == [0, 0, 0, 0]
    assert bulk["oldest_due_seconds"] is None
    assert queues["critical"]["max_delay_ms"] == 100


@pytest.mark.parametrize(
    ("silent_seconds", "columns", "state"),
    [
        (1, {}, "live"),
        (1, {"draining": True}, "draining"),
        (16, {"draining": True}, "stale"),
        (61, {}, "lost"),
        (61, {"stopped_at": "now"}, "stopped"),
    ],
)
async def test_workers_are_shown_with_their_state_and_leases(
    pool: Pool, silent_seconds: int, columns: Mapping[str, Any], state: str
) -> None:
    now, worker_id = await now_of(pool), uuid4()
    row = {"worker_id": worker_id, "host": "ant", "pid": 7, "version": "1", "queues": [], "slots": 4}
    beat = {"heartbeat_at": now - timedelta(seconds=silent_seconds)}
    await insert(pool, "workers", [row | beat | {k: now if v == "now" else v for k, v in columns.items()}])
    await make_execution(pool, status="RUNNING", worker_id=worker_id)
    await make_execution(pool, status="SCHEDULED", worker_id=worker_id, lease_ends_in_seconds=7)
    await make_execution(pool, status="RUNNING")

    [worker] = await pool.fetch("SELECT * FROM audit.workers")
    assert (worker["state"], worker["leases"]) == (state, 2)
    assert worker["first_lease_expires_at"] - now < timedelta(seconds=20)


async def test_every_instant_of_a_schedule_is_an_occurrence(pool: Pool) -> None:
    now, job_id = await now_of(pool), new_job_id(1)
    passed_over = {
        "shard": shard_of(job_id),
        "job_id": job_id,
        "first_time": now - timedelta(hours=2),
        "last_time": now - timedelta(hours=1),
        "occurrences": 61,
        "disposition": "paused",
        "cause": "freeze",
    }
    await insert(pool, "ledger_ranges", [passed_over])
    ended = await make_finished(pool, job_id=job_id, status="FAILED", ended_seconds_ago=60)
    waits = await make_execution(pool, job_id=job_id, due_in_seconds=60)
    by_hand = new_execution_id(job_id, 2)
    await make_execution(
        pool, job_id=job_id, execution_id=by_hand, run_key=str(by_hand), trigger="manual", due_in_seconds=1
    )

    found = await pool.fetch("SELECT * FROM audit.occurrences WHERE job_id = $1 ORDER BY first_time", job_id)
    shown = [(row["occurrences"], row["disposition"], row["execution_id"], row["cause"]) for row in found]
    assert shown == [
        (61, "paused", None, "freeze"),
        (1, "failed", ended, "no"),
        (1, "pending", waits, "pending"),
    ]


async def test_asking_for_one_thing_does_not_read_the_others(pool: Pool, subtests: pytest.Subtests) -> None:
    row = await _fill(pool)
    execution_id, job_id, queue = row["execution_id"], row["job_id"], row["queue"]
    questions: list[tuple[str, object]] = [
        ("SELECT * FROM audit.attempts WHERE execution_id = $1", execution_id),
        ("SELECT * FROM audit.executions WHERE job_id = $1", job_id),
        ("SELECT * FROM audit.jobs WHERE job_id = $1", job_id),
        ("SELECT * FROM audit.occurrences WHERE job_id = $1", job_id),
        ("SELECT * FROM audit.late_executions WHERE execution_id = $1", execution_id),
        ("SELECT * FROM audit.late_executions WHERE job_id = $1", job_id),
        (
            "SELECT * FROM audit.late_executions WHERE scheduled_time BETWEEN now() - $1::interval AND now()",
            timedelta(minutes=5),
        ),
        ("SELECT * FROM audit.stuck_executions WHERE queue = $1", queue),
        ("SELECT * FROM audit.stuck_executions WHERE since < now() - $1::interval", timedelta(0)),
        ("SELECT * FROM audit.queue_depth WHERE queue = $1", queue),
        ("SELECT * FROM audit.workers WHERE host = $1", "ant"),
        ("SELECT * FROM audit.changes WHERE target_type = 'job' AND target_id = $1", str(job_id)),
        ("SELECT * FROM audit.changes WHERE actor = $1 AND audit_id < 10", "sql:onthedot"),
    ]
    for question, value in questions:
        with subtests.test(question):
            read = await _rows_read(pool, question, value)
            assert read <= MOST_READ


async def _fill(pool: Pool) -> Row:
    """Fill everything with other people's rows; return a live execution, whose job there is."""
    await make_task(pool)
    now = await now_of(pool)
    live = [execution_row(now, due_in_seconds=3600 + i) for i in range(ROWS)]
    # As many on each day, whatever the time is: a partition of a hundred rows would rightly be read whole.
    ended = [finished_row(now, ended_seconds_ago=-(600 + i % 1000 + 86_400 * (i % 13))) for i in range(ROWS)]
    jobs = [job_row(now, job_id=row["job_id"]) for row in live]
    ledger = [
        {"shard": row["shard"], "job_id": row["job_id"], "occurrences": 1, "disposition": "paused"}
        | dict.fromkeys(("first_time", "last_time"), now)
        for row in live
    ]
    await insert(pool, "jobs", jobs)
    await insert(pool, "executions", live)
    await insert(pool, "execution_history", ended)
    await insert(pool, "ledger_ranges", ledger)
    await insert(pool, "attempts", [attempt_row(row, 1) for row in live + ended])
    await pool.execute("ANALYZE")
    return live[0]


async def _rows_read(pool: Pool, question: str, value: object) -> int:
    """Return how many rows of tables a question reads, those included that it then drops."""
    explained = await pool.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {question}", value)
    scans = [node for node in _nodes(json.loads(explained)[0]["Plan"]) if "Relation Name" in node]
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    return sum(
        int((n["Actual Rows"] + sum(n.get(name, 0) for name in removed)) * n["Actual Loops"]) for n in scans
    )


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
