"""`/executions` and `/jobs/{job_id}/executions`: what is listed when, attempts, and logs."""

import json
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.domain.ids import shard_of
from tests.api.conftest import Site, pointers, problem
from tests.factories import FAILURE, insert, make_executions, make_finished, now_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

STATUSES = (
    "BLOCKED",
    "PENDING",
    "SCHEDULED",
    "RUNNING",
    "RETRYING",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "SKIPPED",
)
WORKER = uuid4()


async def job_with_every_status(site: Site) -> tuple[str, dict[str, str], str]:
    """Make a job with an execution in each status, and one that is due tomorrow.

    Return the job's id, status -> execution, and tomorrow's execution.
    """
    schedule = {"type": "RECURRING", "expression": "0 0 1 1 *"}
    job_id = (await site.job("every_status", schedule=schedule))["job_id"]
    common = {"job_id": UUID(job_id), "task_id": "every_status", "user_id": "oscar"}
    live: list[dict[str, Any]] = [
        {"status": status, "due_in_seconds": -n} for n, status in enumerate(STATUSES[:5])
    ]
    made = await make_executions(site.pool, [row | common for row in [*live, {"due_in_seconds": 86_400}]])
    ended = [
        await make_finished(site.pool, status=status, ended_seconds_ago=n, **common)
        for n, status in enumerate(STATUSES[5:], start=10)
    ]
    by_status = dict(zip(STATUSES, map(str, [*made[:5], *ended]), strict=True))
    return job_id, by_status, str(made[5])


async def test_without_a_status_a_list_shows_what_has_come_and_with_one_all_of_it(site: Site) -> None:
    job_id, by_status, tomorrow = await job_with_every_status(site)

    for path in (f"/jobs/{job_id}/executions", "/executions?task_id=every_status"):

        async def listed(query: str, path: str = path) -> list[str]:
            answer = await site.get(path + ("&" if "?" in path else "?") + query, user="vera")
            assert answer.status_code == 200
            return [execution["execution_id"] for execution in answer.json()["items"]]

        everything = list(by_status.values())  # made in the order of falling instants
        assert await listed("limit=100") == everything
        assert await listed("include=future") == [tomorrow, *everything]
        for status, execution_id in by_status.items():
            expected = [tomorrow, execution_id] if status == "PENDING" else [execution_id]
            assert await listed(f"status={status}") == expected
            assert await listed(f"status={status}&include=future") == expected


async def test_executions_are_listed_by_user_task_queue_and_status(site: Site) -> None:
    await make_executions(
        site.pool,
        [
            {"user_id": user_id, "task_id": task_id, "queue": queue, "status": "RUNNING"}
            for user_id in ("u1", "u2") for task_id in ("t1", "t2") for queue in ("general", "bulk")
        ],
    )  # fmt: skip
    for user_id in ("u1", "u2"):
        await make_finished(site.pool, user_id=user_id, task_id="t1", queue="bulk")

    async def count(**query: str) -> int:
        items = (await site.get("/executions", params=query)).json()["items"]
        for execution in items:
            assert query.items() <= execution.items()
        return len(items)

    assert await count(user_id="u1") == 5
    assert await count(user_id="u1", task_id="t1") == 3
    assert await count(user_id="u1", task_id="t1", queue="bulk") == 2
    assert await count(user_id="u1", task_id="t1", queue="bulk", status="COMPLETED") == 1
    assert await count(task_id="t2", queue="general") == 2
    assert await count(queue="bulk", user_id="nobody") == 0


async def test_a_finished_execution_tells_how_it_went(site: Site) -> None:
    job = await site.job("told", name="Told", tags=["x"])
    error = {"type": "Boom", "message": "it went wrong", "category": "network", "severity": "high",
             "fingerprint": "f00", "traceback": "Traceback …", "retry_after_seconds": None}  # fmt: skip
    failed = await make_finished(
        site.pool,
        job_id=UUID(job["job_id"]),
        task_id="told",
        status="FAILED",
        attempt_number=3,
        worker_id=WORKER,
        lateness_ms=1.25,
        result=json.dumps({"partial": True}),
        result_truncated=True,
        error=json.dumps(error),
        parameters=json.dumps({"n": 1}),
    )

    execution = (await site.get(f"/executions/{failed}")).json()

    shown = {
        "status": "FAILED",
        "disposition": "failed",
        "task_name": "told",
        "job_name": "Told",
        "tags": ["x"],
        "attempt_number": 3,
        "worker_id": str(WORKER),
        "lateness_ms": 1.25,
        "result": {"partial": True},
        "result_truncated": True,
        "error": {name: error[name] for name in error if name != "retry_after_seconds"},
        "error_details": "it went wrong",
        "parameters": {"n": 1},
        "lease_expires_at": None,
    }
    assert shown.items() <= execution.items()
    assert execution["started_at"] < execution["completed_at"]


async def test_an_execution_outlives_its_job_and_its_task(site: Site) -> None:
    orphan = await make_finished(site.pool, task_id="gone")
    execution = (await site.get(f"/executions/{orphan}")).json()
    assert (execution["job_name"], execution["task_name"], execution["tags"]) == (None, None, [])
    assert execution["task_id"] == "gone"


async def test_attempts_are_those_that_were_retried_and_the_last(site: Site) -> None:
    job_id = UUID((await site.job("tried"))["job_id"])
    execution_id = await make_finished(
        site.pool, job_id=job_id, attempt_number=3, worker_id=WORKER, status="FAILED", lease_epoch=7
    )
    now = await now_of(site.pool)
    await insert(
        site.pool,
        "attempts",
        [
            {
                "shard": shard_of(execution_id),
                "execution_id": execution_id,
                "attempt_number": number,
                "lease_epoch": epoch,
                "worker_id": WORKER,
                "started_at": now - timedelta(seconds=20 - number),
                "ended_at": now - timedelta(seconds=19 - number),
                "outcome": outcome,
                "error": FAILURE,
            }
            for number, epoch, outcome in ((2, 5, "lost"), (1, 3, "failed"))
        ],
    )

    answer = await site.get(f"/executions/{execution_id}/attempts")

    assert answer.status_code == 200
    attempts = answer.json()["items"]
    assert [(a["attempt_number"], a["outcome"], a["lease_epoch"]) for a in attempts[:2]] == [
        (1, "failed", 3),
        (2, "lost", 5),
    ]
    assert attempts[0].keys() == {
        "attempt_number", "worker_id", "started_at", "ended_at", "outcome", "error", "lease_epoch",
    }  # fmt: skip
    last = attempts[2]
    assert (last["attempt_number"], last["outcome"], last["lease_epoch"]) == (3, "failed", 7)
    assert attempts[0]["error"]["type"] == "RuntimeError"
    assert attempts[0]["worker_id"] == str(WORKER)


@pytest.mark.parametrize(
    ("status", "outcomes"),
    [("PENDING", []), ("SCHEDULED", []), ("RUNNING", [None])],
)
async def test_attempts_of_a_live_execution(site: Site, status: str, outcomes: list[None]) -> None:
    [execution_id] = await make_executions(site.pool, [{"status": status}])
    attempts = (await site.get(f"/executions/{execution_id}/attempts")).json()["items"]
    assert [attempt["outcome"] for attempt in attempts] == outcomes
    assert all(attempt["started_at"] and attempt["ended_at"] is None for attempt in attempts)


async def execution_with_log(site: Site, lines: int) -> UUID:
    """Make an execution whose second attempt wrote so many lines, and its first one a single line."""
    [execution_id] = await make_executions(site.pool, [{"status": "RUNNING"}])
    now = await now_of(site.pool)
    numbers = [(1, 1), *((2, sequence) for sequence in range(1, lines))]
    await insert(
        site.pool,
        "execution_logs",
        [
            {
                "shard": shard_of(execution_id),
                "execution_id": execution_id,
                "attempt_number": attempt,
                "sequence": sequence,
                "time": now,
                "level": "INFO",
                "stream": "stdout",
                "message": f"line {attempt}.{sequence} ü",
            }
            for attempt, sequence in numbers
        ],
    )
    return execution_id


async def test_a_log_reads_as_json_page_by_page(site: Site) -> None:
    execution_id = await execution_with_log(site, 10)
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(4):
        query = {"limit": "3"} | ({"cursor": cursor} if cursor else {})
        page = (await site.get(f"/executions/{execution_id}/logs", params=query)).json()
        found += page["items"]
        cursor = page["next_cursor"]
    assert cursor is None
    assert [(line["attempt_number"], line["sequence"]) for line in found] == [
        (1, 1), *((2, sequence) for sequence in range(1, 10))
    ]  # fmt: skip
    assert found[0] == {
        "sequence": 1,
        "time": found[0]["time"],
        "level": "INFO",
        "stream": "stdout",
        "attempt_number": 1,
        "message": "line 1.1 ü",
    }
    assert datetime.fromisoformat(found[0]["time"]).tzinfo is not None


async def test_a_log_reads_as_text_with_a_link_to_the_next_page(site: Site) -> None:
    execution_id = await execution_with_log(site, 5)
    path = f"/executions/{execution_id}/logs"
    text = {"headers": {"Accept": "text/plain"}}

    whole = await site.get(path, **text)
    assert whole.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert whole.text == "".join(f"line {n} ü\n" for n in ("1.1", "2.1", "2.2", "2.3", "2.4"))
    assert "Link" not in whole.headers

    first = await site.get(f"{path}?limit=2", **text)
    assert first.text == "line 1.1 ü\nline 2.1 ü\n"
    assert first.links["next"]["url"].startswith(f"/api/v1{path}?")
    rest = await site.get(first.links["next"]["url"].removeprefix("/api/v1"), **text)
    assert first.text + rest.text == whole.text


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("*/*", "application/json"),
        ("text/html", "application/json"),
        ("text/plain;q=0.5, application/json", "application/json"),
        ("text/*", "text/plain; charset=utf-8"),
        ("", "application/json"),
        (";;,,q=", "application/json"),
    ],
)
async def test_a_log_is_json_unless_text_is_asked_for(site: Site, accept: str, content_type: str) -> None:
    execution_id = await execution_with_log(site, 1)
    answer = await site.get(f"/executions/{execution_id}/logs", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, content_type)


async def test_an_execution_that_does_not_exist_is_not_found(site: Site) -> None:
    for suffix in ("", "/attempts", "/logs"):
        document = problem(await site.get(f"/executions/{uuid4()}{suffix}"), status=404, code="not_found")
        assert "there is no execution" in document["detail"]


@pytest.mark.parametrize(
    "cursor", ["", "!!!!", "AAAA", "MS4x" * 50, "MS4t", "MS4", "LjE", "MQ", "MTIzNDU2Nzg5MDEuMQ"]
)
async def test_a_cursor_that_no_log_gave_is_refused(site: Site, cursor: str) -> None:
    execution_id = await execution_with_log(site, 1)
    answer = await site.get(f"/executions/{execution_id}/logs", params={"cursor": cursor})
    assert pointers(problem(answer, status=400, code="invalid_cursor")) == ["/cursor"]


async def test_an_execution_is_explained(site: Site) -> None:
    job = await site.job("explained", schedule={"type": "ONCE", "scheduled_time": "2099-01-01T00:00:00Z"})
    answer = await site.get(f"/executions/{job['execution_id']}/explain", user="vera")

    assert answer.status_code == 200
    codes = [reason["code"] for reason in answer.json()["reasons"]]
    assert codes == ["not_due", "no_worker_for_queue"]
    assert answer.json() | {"reasons": []} == {
        "status": "PENDING", "runnable": False, "reasons": [], "position": None, "estimated_start": None,
    }  # fmt: skip
    assert answer.json()["reasons"][0]["detail"] == "It is due at 2099-01-01T00:00:00.000Z."
    problem(await site.get(f"/executions/{uuid4()}/explain"), status=404, code="not_found")
