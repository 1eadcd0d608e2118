"""What the audit log is told of a request: who made it, under which id, and by what program."""

from typing import Any
from uuid import uuid4

import pytest

from tests.api.conftest import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOURLY = {"type": "RECURRING", "expression": "0 * * * *"}


async def noted(site: Site, request_id: str) -> list[tuple[str, str, str]]:
    """Return action, actor and client of what a request changed."""
    rows = await site.pool.fetch(
        "SELECT action, actor, client FROM audit.changes WHERE request_id = $1 ORDER BY audit_id", request_id
    )
    return [tuple(row) for row in rows]


async def test_every_kind_of_change_names_its_request(site: Site) -> None:
    job = await site.job("noted", schedule=HOURLY)
    task = {"task_id": "another", "execution_handler": "builtin:noop"}
    requests: list[tuple[str, str, Any, str]] = [
        ("POST", "/tasks", task, "task.create"),
        ("PATCH", "/tasks/another", {"priority": 1}, "task.update"),
        ("DELETE", "/tasks/another", None, "task.delete"),
        ("POST", "/jobs", {"task_id": "noted", "schedule": HOURLY}, "job.create"),
        ("POST", "/jobs/batch", {"jobs": [{"task_id": "noted", "schedule": HOURLY}]}, "job.create"),
        ("PATCH", f"/jobs/{job['job_id']}", {"name": "other"}, "job.update"),
        ("POST", f"/jobs/{job['job_id']}/actions/run", None, "job.run"),
        ("DELETE", f"/jobs/{job['job_id']}", None, "job.delete"),
        ("POST", "/users", {"user_id": "carl"}, "user.create"),
        ("POST", "/users/carl/keys", {}, "key.create"),
        ("DELETE", "/users/carl", None, "user.delete"),
    ]
    for method, path, body, action in requests:
        answer = await site.request(
            method, path, json=body, user="ada", headers={"User-Agent": "curl/8.14.1"}
        )
        assert answer.is_success, answer.text
        found = await noted(site, answer.headers["X-Request-Id"])
        assert found[:1] == [(action, "user:ada", "curl/8.14.1 127.0.0.1")], (method, path)


@pytest.mark.parametrize(
    ("program", "client"),
    [
        (b"", "api 127.0.0.1"),
        (b"curl", "curl 127.0.0.1"),
        ("Prüf/1".encode("latin-1"), "Prüf/1 127.0.0.1"),
        (b"a\x00b\tc\x1b[31m", "abc[31m 127.0.0.1"),
        (b"x" * 5000, "x" * 200 + " 127.0.0.1"),
    ],
)
async def test_a_program_may_call_itself_anything(site: Site, program: bytes, client: str) -> None:
    answer = await site.post("/queues", {"queue": f"q{uuid4()}"}, headers={"User-Agent": program})

    assert answer.status_code == 201, answer.text
    assert await noted(site, answer.headers["X-Request-Id"]) == [("queue.create", "user:oscar", client)]
