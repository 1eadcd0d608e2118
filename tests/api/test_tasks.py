"""`/tasks`: create, read, replace, change, delete, list; versions and who may overwrite what."""

import base64
from typing import Any

import httpx
import pytest

from tests.api.conftest import IMMEDIATE, Site, pointers, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

RESOURCES = {
    "cpu_cores": 0.5,
    "memory_mb": 256,
    "timeout_seconds": 60.0,
    "retry_policy": "linear",
    "max_retries": 7,
    "retry_delay_seconds": 0.25,
    "retry_max_delay_seconds": 90.0,
}
NO_LIMITS = {
    "labels": {},
    "concurrency": None,
    "concurrency_key": None,
    "concurrency_limit": None,
    "rate_limit": None,
}
DEFAULT_RESOURCES = {
    "cpu_cores": 0.0,
    "memory_mb": 0,
    "timeout_seconds": 3600.0,
    "retry_policy": "exponential",
    "max_retries": None,
    "retry_delay_seconds": 1.0,
    "retry_max_delay_seconds": 3600.0,
}


def without_times(task: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in task.items() if name not in {"created_at", "updated_at"}}


async def test_the_least_that_makes_a_task_and_what_it_gets_by_default(site: Site) -> None:
    answer = await site.post("/tasks", {"task_id": "least", "execution_handler": "builtin:noop"})

    assert answer.status_code == 201
    assert answer.headers["Location"] == "/api/v1/tasks/least"
    assert answer.headers["ETag"] == '"1"'
    task = answer.json()
    assert without_times(task) == {
        "task_id": "least",
        "name": "least",
        "description": "",
        "execution_handler": "builtin:noop",
        "parameter_schema": {},
        "resource_requirements": DEFAULT_RESOURCES,
        "failure_rules": [],
        "queue": "general",
        "priority": 2,
        **NO_LIMITS,
        "created_by": "oscar",
        "version": 1,
    }
    assert task["created_at"] == task["updated_at"]
    assert task["created_at"].endswith("Z")
    read = await site.get("/tasks/least", user="vera")
    assert read.json() == task
    assert read.headers["ETag"] == '"1"'


async def test_a_task_with_everything_reads_back_as_it_was_sent(site: Site) -> None:
    body = {
        "task_id": "deploy.ios-update_2",
        "name": "Ausrollen auf Geräte 📱",
        "description": "Line one\nline two",
        "execution_handler": "http:POST https://deploy.example.com/run?a=b",
        "parameter_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "resource_requirements": RESOURCES,
        "failure_rules": [
            {"match": {"type": "Busy", "http_status": 409}, "category": "rate_limiting", "retry": True},
            {"match": {"message": "no such team", "exit_code": 3}, "retry": False},
        ],
        "queue": "critical",
        "priority": 1,
        "labels": {"gpu": "a100"},
        "concurrency": 4,
        "concurrency_key": "tenant:{{parameters.n}}",
        "concurrency_limit": 2,
        "rate_limit": {"per_second": 2.5, "burst": 10},
    }

    answer = await site.post("/tasks", body)

    assert answer.status_code == 201
    assert without_times(answer.json()) == body | {"created_by": "oscar", "version": 1}


async def test_a_task_takes_the_priority_of_its_queue(site: Site) -> None:
    assert (await site.task("urgent", queue="critical"))["priority"] == 0
    assert (await site.task("leisurely", queue="bulk"))["priority"] == 3


async def test_put_replaces_all_and_patch_only_what_it_names(site: Site) -> None:
    created = await site.task("changing", description="old", resource_requirements=RESOURCES, priority=0)

    patched = await site.request(
        "PATCH",
        "/tasks/changing",
        json={"name": "New", "resource_requirements": {"max_retries": None, "retry_delay_seconds": 5}},
    )
    assert patched.status_code == 200
    assert patched.headers["ETag"] == '"2"'
    expected = without_times(created) | {
        "name": "New",
        "version": 2,
        "resource_requirements": RESOURCES | {"max_retries": None, "retry_delay_seconds": 5.0},
    }
    assert without_times(patched.json()) == expected
    assert patched.json()["created_at"] == created["created_at"]
    assert patched.json()["updated_at"] > created["updated_at"]

    replaced = await site.request("PUT", "/tasks/changing", json={"execution_handler": "builtin:noop"})
    assert replaced.status_code == 200
    assert replaced.headers["ETag"] == '"3"'
    assert without_times(replaced.json()) == {
        "task_id": "changing",
        "name": "changing",
        "description": "",
        "execution_handler": "builtin:noop",
        "parameter_schema": {},
        "resource_requirements": DEFAULT_RESOURCES,
        "failure_rules": [],
        "queue": "general",
        "priority": 2,
        **NO_LIMITS,
        "created_by": "oscar",
        "version": 3,
    }
    assert (await site.get("/tasks/changing")).json() == replaced.json()


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_if_match_keeps_from_overwriting_what_was_not_seen(site: Site, method: str) -> None:
    task_id = f"guarded-{method.lower()}"
    await site.task(task_id)
    body = {"execution_handler": "builtin:noop"}

    async def change(if_match: str) -> httpx.Response:
        headers = {"If-Match": if_match.encode("utf-8")}
        return await site.request(method, f"/tasks/{task_id}", json=body, headers=headers)

    for if_match, etag in (('"1"', '"2"'), ("2", '"3"'), ('W/"3"', '"4"'), ("*", '"5"')):
        answer = await change(if_match)
        assert (answer.status_code, answer.headers["ETag"]) == (200, etag)
    for stale in ('"4"', '"6"', '"999999999"'):
        document = problem(await change(stale), status=412, code="precondition_failed")
        assert "read it anew" in document["detail"]
    for garbage in ('"x"', "", "99999999999999999999", '"1", "2"', "\u0661", "1\u00b2"):
        document = problem(await change(garbage), status=400, code="invalid_input")
        assert pointers(document) == ["/If-Match"]
    assert (await site.get(f"/tasks/{task_id}")).json()["version"] == 5


async def test_the_delays_of_a_task_fit_each_other_after_a_patch_too(site: Site) -> None:
    await site.task(
        "delays", resource_requirements={"retry_delay_seconds": 10, "retry_max_delay_seconds": 20}
    )

    for resources in ({"retry_delay_seconds": 21}, {"retry_max_delay_seconds": 9}):
        answer = await site.request("PATCH", "/tasks/delays", json={"resource_requirements": resources})
        document = problem(answer, status=400, code="invalid_input")
        assert pointers(document) == ["/resource_requirements/retry_max_delay_seconds"]
    answer = await site.request(
        "PATCH",
        "/tasks/delays",
        json={"resource_requirements": {"retry_delay_seconds": 21, "retry_max_delay_seconds": 22}},
    )
    assert answer.status_code == 200


async def test_a_task_without_jobs_is_deleted_and_one_with_jobs_is_kept(site: Site) -> None:
    await site.task("unused")
    answer = await site.request("DELETE", "/tasks/unused")
    assert (answer.status_code, answer.content) == (204, b"")
    problem(await site.get("/tasks/unused"), status=404, code="not_found")
    problem(await site.request("DELETE", "/tasks/unused"), status=404, code="not_found")

    await site.job("used")
    document = problem(await site.request("DELETE", "/tasks/used"), status=409, code="conflict")
    assert "used" in document["detail"]
    assert (await site.get("/tasks/used")).status_code == 200


async def test_an_id_is_taken_once(site: Site) -> None:
    created = await site.task("taken")

    answer = await site.post("/tasks", {"task_id": "taken", "execution_handler": "builtin:noop"})

    assert "taken" in problem(answer, status=409, code="conflict")["detail"]
    assert (await site.get("/tasks/taken")).json() == created


async def test_a_task_that_does_not_exist_can_neither_be_read_nor_changed(site: Site) -> None:
    body = {"execution_handler": "builtin:noop"}
    problem(await site.get("/tasks/nobody"), status=404, code="not_found")
    problem(await site.request("PUT", "/tasks/nobody", json=body), status=404, code="not_found")
    problem(await site.request("PATCH", "/tasks/nobody", json=body), status=404, code="not_found")


async def test_tasks_are_listed_page_by_page_in_the_order_of_their_ids(site: Site) -> None:
    ids = [f"page-{number:02}" for number in range(10)]
    for task_id in reversed(ids):
        await site.task(task_id)
    found: list[str] = []
    cursor = base64.urlsafe_b64encode(b"page-").decode().rstrip("=")
    while cursor and len(found) < len(ids):
        answer = await site.get("/tasks", params={"limit": 3, "cursor": cursor})
        assert answer.status_code == 200
        found += [task["task_id"] for task in answer.json()["items"]]
        cursor = answer.json()["next_cursor"]
    assert found[: len(ids)] == ids
    everything = (await site.get("/tasks?limit=1000")).json()
    assert everything["next_cursor"] is None
    assert set(ids) <= {task["task_id"] for task in everything["items"]}


async def test_a_job_is_checked_against_the_schema_that_its_task_has_now(site: Site) -> None:
    number = {"properties": {"n": {"type": "integer"}}}
    text = {"properties": {"n": {"type": "string"}}}
    await site.task("evolving", parameter_schema=number)

    async def status_of(parameters: dict[str, object]) -> int:
        body = {"task_id": "evolving", "schedule": IMMEDIATE, "parameters": parameters}
        return (await site.post("/jobs", body)).status_code

    assert await status_of({"n": 1}) == 201
    assert await status_of({"n": "one"}) == 400
    await site.request("PATCH", "/tasks/evolving", json={"parameter_schema": text})
    assert await status_of({"n": "one"}) == 201
    assert await status_of({"n": 1}) == 400


async def test_waiting_executions_follow_a_changed_task_as_far_as_their_job_leaves_it_to_the_task(
    site: Site,
) -> None:
    await site.task("moves")
    far = {"type": "ONCE", "scheduled_time": "2040-01-01T00:00:00Z"}
    wanted = [{"task_id": "moves", "schedule": far}, {"task_id": "moves", "schedule": far, "priority": 3}]
    ids = [(await site.post("/jobs", body)).json()["execution_id"] for body in wanted]

    changes = {"queue": "critical", "priority": 0, "resource_requirements": {"max_retries": 1}}
    assert (await site.request("PATCH", "/tasks/moves", json=changes)).status_code == 200

    seen = [(await site.get(f"/executions/{execution_id}")).json() for execution_id in ids]
    assert [(e["queue"], e["priority"], e["max_attempts"]) for e in seen] == [
        ("critical", 0, 2),
        ("critical", 3, 2),
    ]
