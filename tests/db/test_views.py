"""`SELECT * FROM audit.executions WHERE execution_id = …` tells an execution's whole story in one row."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID, uuid4

from app.db.pools import Pool
from tests.factories import (
    FAILURE,
    Row,
    execution_row,
    finished_row,
    insert,
    make_execution,
    make_finished,
    make_job,
    now_of,
)

STORY = "SELECT * FROM audit.executions WHERE execution_id = $1"
ROWS = 5000


async def test_a_retried_executions_story_is_one_row(pool: Pool) -> None:
    worker_id, dead_worker = uuid4(), uuid4()
    job_id = await make_job(pool, name="nightly")
    live = await make_execution(pool, job_id=job_id, status="RUNNING", worker_id=worker_id, attempt_number=3)
    ended = await make_finished(pool, job_id=job_id, worker_id=worker_id, attempt_number=3, status="FAILED")
    await insert(
        pool,
        "workers",
        [{"worker_id": worker_id, "host": "ant", "pid": 7, "version": "1", "queues": [], "slots": 4}],
    )
    for execution_id in (live, ended):
        shard = await pool.fetchval("SELECT onthedot.shard_of($1)", execution_id)
        now = await now_of(pool)
        attempt = {"shard": shard, "execution_id": execution_id, "ended_at": now, "error": FAILURE}
        await insert(
            pool,
            "attempts",
            [
                attempt
                | {"attempt_number": 2, "lease_epoch": 5, "worker_id": worker_id, "outcome": "timeout"},
                attempt
                | {"attempt_number": 1, "lease_epoch": 1, "worker_id": dead_worker, "outcome": "lost"},
            ],
        )
        line = {"shard": shard, "execution_id": execution_id, "time": now, "stream": "log"}
        await insert(
            pool,
            "execution_logs",
            [
                line | {"attempt_number": 3, "sequence": 1, "level": "ERROR", "message": "no space"},
                line | {"attempt_number": 1, "sequence": 2, "level": "INFO", "message": "second"},
                line | {"attempt_number": 1, "sequence": 1, "level": "INFO", "message": "first"},
            ],
        )

    for execution_id, status, error in ((live, "RUNNING", None), (ended, "FAILED", "RuntimeError")):
        (story,) = await pool.fetch(STORY, execution_id)
        assert (story["job_name"], story["status"], story["worker_host"]) == ("nightly", status, "ant")
        assert (story["attempt_number"], story["max_attempts"], story["error_type"]) == (3, 4, error)
        assert story["log"] == "#1 INFO first\n#1 INFO second\n#3 ERROR no space"
        earlier = json.loads(story["earlier_attempts"])
        assert [(each["attempt_number"], each["outcome"], each["error"]) for each in earlier] == [
            (1, "lost", "no"),
            (2, "timeout", "no"),
        ]
        assert [UUID(each["worker_id"]) for each in earlier] == [dead_worker, worker_id]


async def test_one_story_does_not_read_the_others(pool: Pool) -> None:
    now = await now_of(pool)
    live = [execution_row(now) for _ in range(ROWS)]
    ended = [finished_row(now, ended_seconds_ago=-120 * i) for i in range(ROWS)]
    await insert(pool, "executions", live)
    await insert(pool, "execution_history", ended)
    await insert(pool, "attempts", (_attempt(row) for row in live + ended))
    await pool.execute("ANALYZE")

    for execution_id in (live[0]["execution_id"], ended[0]["execution_id"], uuid4()):
        explained = await pool.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {STORY}", execution_id)
        scans = [node for node in _nodes(json.loads(explained)[0]["Plan"]) if "Relation Name" in node]
        read = sum((n["Actual Rows"] + n.get("Rows Removed by Filter", 0)) * n["Actual Loops"] for n in scans)
        assert read < ROWS / 10  # a partition of a few pages is read whole


def _attempt(row: Row) -> Row:
    return {
        "shard": row["shard"],
        "execution_id": row["execution_id"],
        "attempt_number": 1,
        "lease_epoch": 1,
        "worker_id": uuid4(),
        "ended_at": row["first_due_at"],
        "outcome": "failed",
        "error": FAILURE,
    }


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
