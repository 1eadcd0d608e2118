"""`/workflows` and `/workflow-runs`: what is taken, what is refused and how, and who may do it."""

from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import pytest_asyncio

from tests.api.conftest import Site
from tests.api.conftest import problem as problem_of
from tests.factories import begin_run

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("task")]

HOURLY = {"type": "RECURRING", "expression": "0 * * * *"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def task(site: Site) -> None:
    """Make a task with a schema."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    await site.task("count", parameter_schema=schema)


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """Return a problem document, whatever its code."""
    return problem_of(answer, status=status, code=answer.json().get("code", "none"))


def steps(*keys: str) -> list[dict[str, Any]]:
    """Return a chain of steps."""
    chain: list[dict[str, Any]] = [{"key": key, "task_id": "count"} for key in keys]
    for before, after in pairwise(chain):
        after["depends_on"] = [before["key"]]
    return chain


async def defined(site: Site) -> tuple[int, int]:
    """Count jobs and definitions."""
    row = await site.pool.fetchrow(
        "SELECT (SELECT count(*) FROM onthedot.jobs), (SELECT count(*) FROM onthedot.workflow_definitions)"
    )
    assert row is not None
    return (row[0], row[1])


async def workflow(site: Site, **fields: Any) -> dict[str, Any]:
    """Create a workflow that is not due; return it."""
    body = {"schedule": HOURLY, "steps": steps("a", "b")} | fields
    answer = await site.post("/workflows", body)
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def test_a_workflow_is_read_as_it_was_made(site: Site) -> None:
    made = await workflow(
        site, name="nightly", parameters={"day": "Tue"}, overlap="skip", deadline_seconds=60
    )

    read = await site.get(f"/workflows/{made['workflow_id']}")

    assert read.json().items() <= made.items()
    assert read.headers["ETag"] == '"1"'
    assert (read.json()["overlap"], read.json()["deadline_seconds"]) == ("skip", 60)
    assert [step["key"] for step in read.json()["steps"]] == ["a", "b"]
    listed = (await site.get("/workflows?limit=1")).json()["items"]
    assert [each["workflow_id"] for each in listed] == [made["workflow_id"]]
    assert (await site.get(f"/workflows/{made['workflow_id']}/runs")).json() == {
        "items": [],
        "next_cursor": None,
    }
    job = (await site.get(f"/jobs/{made['workflow_id']}")).json()
    assert (job["task_id"], job["next_occurrences"]) == ("onthedot.workflow", made["next_occurrences"])


@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({"steps": []}, "invalid_input", "/steps"),
        ({"steps": [{"key": "a"}]}, "invalid_input", "/steps/0/task_id"),
        ({"steps": [{"key": "1", "task_id": "count"}]}, "invalid_input", "/steps/0/key"),
        ({"steps": [{"key": "a", "task_id": "none"}]}, "unknown_task", "/steps/0/task_id"),
        ({"steps": [{"key": "a", "task_id": "onthedot.workflow"}]}, "unknown_task", "/steps/0/task_id"),
        ({"steps": [{"key": "a", "task_id": "count", "queue": "none"}]}, "unknown_queue", "/steps/0/queue"),
        (
            {"steps": [{"key": "a", "task_id": "count", "parameters": {"n": "x"}}]},
            "invalid_parameters",
            "/steps/0/parameters/n",
        ),
        ({"steps": [{"key": "a", "task_id": "count", "when": "maybe"}]}, "invalid_input", "/steps/0/when"),
        (
            {"steps": [{"key": "a", "task_id": "count", "depends_on": ["a"]}]},
            "circular_steps",
            "/steps/0/depends_on",
        ),
        ({"steps": steps("a") + steps("a")}, "duplicate_step", "/steps/1/key"),
        ({"schedule": None}, "invalid_input", "/schedule"),
        ({"deadline_seconds": 0}, "invalid_input", "/deadline_seconds"),
        ({"parameters": {"x": "y" * 2**20}}, "invalid_input", "/parameters"),
        ({"depends": []}, "invalid_input", "/depends"),
    ],
)
async def test_what_cannot_be_a_workflow_is_refused_and_nothing_is_stored(
    site: Site, fields: dict[str, Any], code: str, pointer: str
) -> None:
    before = await defined(site)
    answer = await site.post("/workflows", {"schedule": HOURLY, "steps": steps("a")} | fields)

    refused = problem(answer, 400)
    assert (refused["code"], refused["errors"][0]["pointer"]) == (code, pointer)
    assert await defined(site) == before


async def test_more_steps_than_a_workflow_may_have_are_refused(site: Site) -> None:
    many = [{"key": f"s{i}", "task_id": "count"} for i in range(5_001)]

    refused = problem(await site.post("/workflows", {"schedule": HOURLY, "steps": many}), 400)

    assert refused["errors"][0]["pointer"] == "/steps"
    assert (await site.post("/workflows", {"schedule": HOURLY, "steps": many[:-1]})).status_code == 201


async def test_a_change_makes_a_version_and_leaves_runs_alone(site: Site) -> None:
    made = await workflow(site)
    run = await begin_run(site.pool, site.clock, UUID(made["workflow_id"]))
    path = f"/workflows/{made['workflow_id']}"

    changed = await site.request(
        "PATCH", path, json={"steps": steps("x", "y", "z")}, headers={"If-Match": '"1"'}
    )

    assert changed.status_code == 200, changed.text
    assert (changed.json()["definition_version"], changed.headers["ETag"]) == (2, '"2"')
    assert [step["key"] for step in changed.json()["steps"]] == ["x", "y", "z"]
    read = (await site.get(f"/workflow-runs/{run}")).json()
    assert (read["version"], [step["key"] for step in read["steps"]]) == (1, ["a", "b"])
    stale = await site.request("PATCH", path, json={"overlap": "skip"}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    circle = await site.request(
        "PATCH", path, json={"steps": [{"key": "a", "task_id": "count", "depends_on": ["a"]}]}
    )
    assert problem(circle, 400)["code"] == "circular_steps"
    noted = await site.pool.fetchrow(
        "SELECT * FROM onthedot.audit_log WHERE action = 'workflow.redefine' AND target_id = $1",
        made["workflow_id"],
    )
    assert noted is not None
    assert noted["actor"] == "user:oscar"


async def test_a_run_that_nobody_works_on_shows_what_waits(site: Site) -> None:
    made = await workflow(site, steps=[*steps("a", "b"), {"key": "m", "task_id": "count", "map": [1, 2, 3]}])
    run = await begin_run(site.pool, site.clock, UUID(made["workflow_id"]))

    read = (await site.get(f"/workflow-runs/{run}")).json()

    assert (read["status"], read["workflow_id"], read["cause"]) == ("RUNNING", made["workflow_id"], None)
    a, b, m = read["steps"]
    assert (a["status"], b["status"], b["execution_id"], b["depends_on"]) == (
        "PENDING",
        "BLOCKED",
        None,
        ["a"],
    )
    assert (m["status"], m["instances"], m["execution_id"]) == (
        "PENDING",
        {"total": 3, "by_status": {"PENDING": 3}},
        None,
    )
    execution = (await site.get(f"/executions/{a['execution_id']}")).json()
    assert (execution["workflow_run_id"], execution["step"], execution["trigger"]) == (
        str(run),
        "a",
        "workflow",
    )
    again = await site.post(f"/executions/{a['execution_id']}/actions/retry", None)
    assert problem(again, 409)
    runs = (await site.get(f"/workflows/{made['workflow_id']}/runs?status=RUNNING")).json()["items"]
    assert [each["workflow_run_id"] for each in runs] == [str(run)]
    assert "steps" not in runs[0]
    assert (await site.get("/workflow-runs?status=FAILED")).json()["items"] == []


async def test_a_cancelled_run_is_over_and_can_be_taken_up_again(site: Site) -> None:
    made = await workflow(site)
    run = await begin_run(site.pool, site.clock, UUID(made["workflow_id"]))
    path = f"/workflow-runs/{run}/actions"

    cancelled = await site.post(f"{path}/cancel", {"reason": "typo"})
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "CANCELLED")
    assert cancelled.json()["cause"] == "cancelled by oscar: typo"
    assert [step["status"] for step in cancelled.json()["steps"]] == ["CANCELLED", "CANCELLED"]
    assert problem(await site.post(f"{path}/cancel", {}), 409)
    assert problem(await site.post(f"{path}/skip", {"step": "a"}), 409)
    assert (
        problem(await site.post(f"{path}/retry", {"steps": ["x"]}), 400)["errors"][0]["pointer"] == "/steps/0"
    )

    again = await site.post(f"{path}/retry", {})
    assert (again.status_code, again.json()["status"], again.json()["cause"]) == (200, "RUNNING", None)
    assert [step["status"] for step in again.json()["steps"]] == ["PENDING", "BLOCKED"]
    assert again.json()["steps"][0]["round"] == 2
    assert problem(await site.post(f"{path}/retry", {}), 409)


async def test_what_runs_of_workflows_need_cannot_be_taken_away(site: Site) -> None:
    await site.task("rare")
    made = await workflow(site, steps=[{"key": "a", "task_id": "rare"}])

    assert problem(await site.request("DELETE", "/tasks/rare"), 409)
    own = await site.request("PATCH", "/tasks/onthedot.workflow", json={"execution_handler": "builtin:noop"})
    assert problem(own, 409)
    body = {"task_id": "onthedot.workflow", "schedule": {"type": "IMMEDIATE"}}
    assert problem(await site.post("/jobs", body), 400)["errors"][0]["pointer"] == "/task_id"
    overlap = await site.request("PATCH", f"/jobs/{made['workflow_id']}", json={"overlap": "skip"})
    assert problem(overlap, 400)["errors"][0]["pointer"] == "/overlap"

    deleted = await site.request("DELETE", f"/workflows/{made['workflow_id']}")
    assert deleted.json() == {"workflow_id": made["workflow_id"]}
    assert problem(await site.get(f"/workflows/{made['workflow_id']}"), 404)
    assert (await site.request("DELETE", "/tasks/rare")).status_code == 204


async def test_who_only_reads_changes_nothing(site: Site) -> None:
    made = await workflow(site)
    run = await begin_run(site.pool, site.clock, UUID(made["workflow_id"]))
    path = f"/workflows/{made['workflow_id']}"

    for method, where, body in (
        ("POST", "/workflows", {"schedule": HOURLY, "steps": steps("a")}),
        ("PATCH", path, {"name": "x"}),
        ("DELETE", path, None),
        ("POST", f"{path}/actions/run", None),
        ("POST", f"{path}/actions/pause", None),
        ("POST", f"{path}/actions/resume", None),
        ("POST", f"/workflow-runs/{run}/actions/cancel", None),
        ("POST", f"/workflow-runs/{run}/actions/retry", None),
        ("POST", f"/workflow-runs/{run}/actions/skip", {"step": "a"}),
    ):
        options = {} if body is None else {"json": body}
        assert problem(await site.request(method, where, user="vera", **options), 403), where
    assert (await site.request("GET", path, user="vera")).status_code == 200


async def test_what_does_not_exist_is_not_found(site: Site) -> None:
    job = await site.job("count", schedule=HOURLY)
    for where in (f"/workflows/{uuid4()}", f"/workflow-runs/{uuid4()}", f"/workflows/{job['job_id']}"):
        assert problem(await site.get(where), 404), where
    for where in (
        f"/workflows/{job['job_id']}/actions/run",
        f"/workflow-runs/{uuid4()}/actions/cancel",
        f"/workflow-runs/{uuid4()}/actions/retry",
    ):
        assert problem(await site.post(where, {}), 404), where


async def test_a_job_names_the_jobs_that_it_comes_after(site: Site) -> None:
    first = await site.job("count", schedule=HOURLY)
    body = {"task_id": "count", "schedule": HOURLY, "depends_on": [first["job_id"], str(uuid4())]}

    refused = problem(await site.post("/jobs", body), 400)
    assert (refused["code"], refused["errors"][0]["pointer"]) == ("unknown_job", "/depends_on/1")
    second = await site.job("count", schedule=HOURLY, depends_on=[first["job_id"]])
    assert second["depends_on"] == [first["job_id"]]
    circle = await site.request("PATCH", f"/jobs/{first['job_id']}", json={"depends_on": [second["job_id"]]})
    assert problem(circle, 400)["code"] == "circular_jobs"
    gone = await site.request("PATCH", f"/jobs/{first['job_id']}", json={"depends_on": [str(uuid4())]})
    assert problem(gone, 400)["code"] == "unknown_job"
