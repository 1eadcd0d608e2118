"""The API's description: whole, sound, and true of what the API answers."""

from typing import Any

import jsonschema_rs
import pytest
import pytest_asyncio

from tests.api.conftest import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPERATIONS = {
    ("get", "/api/v1/tasks"): "listTasks",
    ("post", "/api/v1/tasks"): "createTask",
    ("get", "/api/v1/tasks/{task_id}"): "getTask",
    ("put", "/api/v1/tasks/{task_id}"): "replaceTask",
    ("patch", "/api/v1/tasks/{task_id}"): "changeTask",
    ("delete", "/api/v1/tasks/{task_id}"): "deleteTask",
    ("get", "/api/v1/jobs"): "listJobs",
    ("post", "/api/v1/jobs"): "createJob",
    ("get", "/api/v1/jobs/{job_id}"): "getJob",
    ("get", "/api/v1/jobs/{job_id}/executions"): "listJobExecutions",
    ("get", "/api/v1/executions"): "listExecutions",
    ("get", "/api/v1/executions/{execution_id}"): "getExecution",
    ("get", "/api/v1/executions/{execution_id}/attempts"): "listAttempts",
    ("get", "/api/v1/executions/{execution_id}/logs"): "listLogLines",
    ("get", "/livez"): "live",
    ("get", "/readyz"): "ready",
    ("get", "/problems/{code}"): "explainProblem",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def document(site: Site) -> dict[str, Any]:
    answer = await site.http.get("/schema/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the operations by method and path."""
    return {
        (method, path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


async def test_it_names_every_operation_once(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    named = {place: operation["operationId"] for place, operation in operations(document).items()}
    assert named.items() >= OPERATIONS.items()
    assert len(set(named.values())) == len(named)


async def test_all_of_the_api_needs_a_key_and_documents_its_problems(document: dict[str, Any]) -> None:
    for (method, path), operation in operations(document).items():
        if not path.startswith("/api/"):
            continue
        assert operation["security"] == [{"bearer": []}]
        failing = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        assert failing.keys() >= {"400", "401"}
        for answer in failing.values():
            [(media_type, content)] = answer["content"].items()
            assert media_type == "application/problem+json", (method, path)
            assert content["schema"] == {"$ref": "#/components/schemas/Problem"}


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(value: object) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [ref for child in value.values() for ref in references(child)]
        return [ref for child in value for ref in references(child)] if isinstance(value, list) else []

    for reference in references(document):
        target: Any = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        assert target


async def test_answers_are_as_described(site: Site, document: dict[str, Any]) -> None:
    job = await site.job("described", tags=["a"])
    task = {"task_id": "described", "execution_handler": "builtin:noop"}
    for method, path, template, body in (
        ("POST", "/tasks", "/tasks", task | {"task_id": "another"}),
        ("POST", "/tasks", "/tasks", task),
        ("POST", "/tasks", "/tasks", {}),
        ("PATCH", "/tasks/described", "/tasks/{task_id}", {"name": "Described"}),
        ("GET", "/tasks", "/tasks", None),
        ("GET", "/tasks/described", "/tasks/{task_id}", None),
        (
            "POST",
            "/jobs",
            "/jobs",
            {"task_id": "described", "schedule": {"type": "INTERVAL", "every": "PT1M"}},
        ),
        ("GET", "/jobs", "/jobs", None),
        ("GET", f"/jobs/{job['job_id']}", "/jobs/{job_id}", None),
        ("GET", f"/jobs/{job['job_id']}/executions", "/jobs/{job_id}/executions", None),
        ("GET", "/executions?limit=x", "/executions", None),
        ("GET", f"/executions/{job['execution_id']}", "/executions/{execution_id}", None),
        ("GET", f"/executions/{job['job_id']}", "/executions/{execution_id}", None),
        ("GET", f"/executions/{job['execution_id']}/logs", "/executions/{execution_id}/logs", None),
        ("GET", f"/executions/{job['execution_id']}/attempts", "/executions/{execution_id}/attempts", None),
    ):
        answer = await site.request(method, path, json=body)
        described = document["paths"][f"/api/v1{template}"][method.lower()]["responses"]
        content = described[str(answer.status_code)]["content"][
            answer.headers["Content-Type"].partition(";")[0]
        ]
        schema = content["schema"] | {"components": document["components"]}
        errors = list(jsonschema_rs.validator_for(schema).iter_errors(answer.json()))
        assert errors == [], (method, path, answer.text)
