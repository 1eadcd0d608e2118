"""Changing, pausing, running and deleting jobs; cancelling executions and running them again."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.api.conftest import IMMEDIATE, Site, pointers, problem
from tests.factories import make_finished
from tests.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOURLY = {"type": "RECURRING", "expression": "0 * * * *"}
ONCE = {"type": "ONCE", "scheduled_time": "2099-01-01T00:00:00Z"}


async def act(site: Site, path: str, body: object = None, **options: Any) -> Any:
    """Send an action, without a body unless there is one."""
    return await site.request("POST", path, json=body, **options)


async def begin(site: Site, execution_id: str) -> None:
    """Let a worker have begun an execution."""
    await site.pool.execute(
        "UPDATE onthedot.executions SET status = 'RUNNING', attempt_number = 1, lease_epoch = 1, worker_id = $2,"
        " claimed_at = now(), lease_expires_at = now() + interval '1 minute' WHERE execution_id = $1",
        UUID(execution_id),
        uuid4(),
    )


async def test_patch_changes_what_it_names_and_nothing_else(site: Site) -> None:
    job = await site.job("patched", schedule=HOURLY, parameters={"n": 1}, name="old", tags=["a"], priority=1)
    changes = {"name": "new", "parameters": {"n": 2}, "priority": None, "timeout_seconds": 5}

    answer = await site.request("PATCH", f"/jobs/{job['job_id']}", json=changes, headers={"If-Match": '"1"'})

    assert answer.status_code == 200
    assert answer.headers["ETag"] == '"2"'
    assert answer.json()["running"] == []
    kept = {name: job[name] for name in ("job_id", "user_id", "task_id", "tags", "schedule", "created_at")}
    assert (kept | changes | {"version": 2}).items() <= answer.json().items()
    read = await site.get(f"/jobs/{job['job_id']}")
    assert read.json().items() <= answer.json().items()
    stale = await site.request("PATCH", f"/jobs/{job['job_id']}", json=changes, headers={"If-Match": '"1"'})
    problem(stale, status=412, code="precondition_failed")


@pytest.mark.parametrize(
    ("before", "after"),
    [(a, b) for a in (IMMEDIATE, ONCE, HOURLY) for b in (IMMEDIATE, ONCE, HOURLY, {"type": "INTERVAL", "every": 60})],
)  # fmt: skip
async def test_any_schedule_may_become_any_other(
    site: Site, before: dict[str, Any], after: dict[str, Any]
) -> None:
    job = await site.job("rescheduled", schedule=before)
    answer = await site.request("PATCH", f"/jobs/{job['job_id']}", json={"schedule": after})
    assert answer.status_code == 200
    assert answer.json()["schedule"]["type"] == after["type"]
    assert (await site.get(f"/jobs/{job['job_id']}")).status_code == 200


async def test_an_instant_that_has_begun_may_be_set_again(site: Site) -> None:
    job = await site.job("again", schedule=ONCE)
    await begin(site, job["execution_id"])

    answer = await site.request("PATCH", f"/jobs/{job['job_id']}", json={"schedule": ONCE})

    assert answer.status_code == 200
    assert answer.json()["running"] == [job["execution_id"]]
    running = (await site.get(f"/executions/{job['execution_id']}")).json()
    assert (running["status"], running["lease_epoch"]) == ("RUNNING", 1)
    assert running["started_at"] == running["claimed_at"]
    assert running["lateness_ms"] is not None


@pytest.mark.parametrize(
    ("changes", "code", "pointer"),
    [
        ({"task_id": "other"}, "invalid_input", "/task_id"),
        ({"user_id": "ada"}, "invalid_input", "/user_id"),
        ({"name": ""}, "invalid_input", "/name"),
        ({"tags": ["a b"]}, "invalid_input", "/tags/0"),
        ({"tags": None}, "invalid_input", "/tags"),
        ({"parameters": []}, "invalid_input", "/parameters"),
        ({"parameters": {"n": "x"}}, "invalid_parameters", "/parameters/n"),
        ({"queue": "nobody"}, "unknown_queue", "/queue"),
        ({"priority": 4}, "invalid_input", "/priority"),
        ({"max_retries": -1}, "invalid_input", "/max_retries"),
        ({"timeout_seconds": 0}, "invalid_input", "/timeout_seconds"),
        ({"is_active": "yes"}, "invalid_input", "/is_active"),
        ({"schedule": {}}, "invalid_input", "/schedule/type"),
        ({"schedule": {"type": "CRON", "expression": "x"}}, "invalid_cron", "/schedule/expression"),
        ({"schedule": {"type": "CRON", "expression": "0 0 30 2 *"}}, "never_fires", "/schedule/expression"),
        ({"schedule": IMMEDIATE | {"timezone": "Mars"}}, "invalid_timezone", "/schedule/timezone"),
        ({"schedule": IMMEDIATE | {"every": 5}}, "invalid_schedule", "/schedule/every"),
    ],
)
async def test_a_change_that_does_not_hold_together_is_refused(
    site: Site, changes: dict[str, Any], code: str, pointer: str
) -> None:
    await site.task("refused", parameter_schema={"properties": {"n": {"type": "integer"}}})
    job = await site.job("refused", schedule=HOURLY)
    answer = await site.request("PATCH", f"/jobs/{job['job_id']}", json=changes)
    assert pointers(problem(answer, status=400, code=code)) == [pointer]
    assert (await site.get(f"/jobs/{job['job_id']}")).json()["version"] == 1


async def test_pause_and_resume(site: Site) -> None:
    job = await site.job("paused", schedule=HOURLY)
    path = f"/jobs/{job['job_id']}/actions"

    plain = await act(site, f"{path}/pause")
    assert (plain.status_code, plain.json()["is_active"], plain.json()["pause_reason"]) == (200, False, None)
    reasoned = await act(site, f"{path}/pause", {"reason": "Umbau ⚠", "until": "2099-01-01T01:00:00+01:00"})
    assert {
        "pause_reason": "Umbau ⚠",
        "paused_until": "2099-01-01T00:00:00Z",
    }.items() <= reasoned.json().items()
    assert len(reasoned.json()["next_occurrences"]) == 5
    unix = await act(site, f"{path}/pause", {"until": 4070908800})
    assert unix.json()["paused_until"] == "2099-01-01T00:00:00Z"

    for _ in range(2):
        resumed = await act(site, f"{path}/resume")
        assert resumed.status_code == 200
        assert {
            "is_active": True,
            "pause_reason": None,
            "paused_until": None,
        }.items() <= resumed.json().items()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"until": "soon"}, "/until"),
        ({"until": "2001-01-01T00:00:00Z"}, "/until"),
        ({"until": "2001-01-01T00:00:00"}, "/until"),
        ({"until": "9999-12-31T23:59:59-14:00"}, "/until"),
        ({"until": 0}, "/until"),
        ({"until": -1}, "/until"),
        ({"until": 1e300}, "/until"),
        ({"until": True}, "/until"),
        ({"reason": "x" * 1001}, "/reason"),
        ({"reason": 1}, "/reason"),
        ({"why": "x"}, "/why"),
        ([], ""),
    ],
)
async def test_a_pause_that_makes_no_sense_is_refused(site: Site, body: object, pointer: str) -> None:
    job = await site.job("unpaused", schedule=HOURLY)
    answer = await act(site, f"/jobs/{job['job_id']}/actions/pause", body)
    assert pointers(problem(answer, status=400, code="invalid_input")) == [pointer]
    assert (await site.get(f"/jobs/{job['job_id']}")).json()["is_active"] is True


async def test_run_now_makes_an_execution_of_its_own(site: Site) -> None:
    job = await site.job("manual", schedule=HOURLY, parameters={"n": 1})
    first, second = [await act(site, f"/jobs/{job['job_id']}/actions/run") for _ in range(2)]
    assert first.status_code == 201
    assert first.json()["execution_id"] != second.json()["execution_id"]
    assert first.headers["Location"] == f"/api/v1/executions/{first.json()['execution_id']}"
    execution = (await site.get(f"/executions/{first.json()['execution_id']}")).json()
    assert {"trigger": "manual", "parameters": {"n": 1}, "job_id": job["job_id"]}.items() <= execution.items()


async def test_delete_takes_back_what_waits_and_names_what_runs(site: Site) -> None:
    waiting, running = [await site.job("deleted", schedule=ONCE) for _ in range(2)]
    await begin(site, running["execution_id"])
    for job, left in ((waiting, []), (running, [running["execution_id"]])):
        answer = await site.request("DELETE", f"/jobs/{job['job_id']}")
        assert (answer.status_code, answer.json()) == (200, {"job_id": job["job_id"], "running": left})
        problem(await site.get(f"/jobs/{job['job_id']}"), status=404, code="not_found")
        problem(await site.request("DELETE", f"/jobs/{job['job_id']}"), status=404, code="not_found")
    assert (await site.get(f"/executions/{waiting['execution_id']}")).json()["status"] == "CANCELLED"
    assert (await site.get(f"/executions/{running['execution_id']}")).json()["status"] == "RUNNING"


async def test_cancel_waits_for_nobody_asks_who_runs_and_is_too_late_afterwards(site: Site) -> None:
    waiting, running = [await site.job("cancelled") for _ in range(2)]
    await begin(site, running["execution_id"])

    answer = await act(site, f"/executions/{waiting['execution_id']}/actions/cancel", {"reason": "typo"})
    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")
    again = await act(site, f"/executions/{waiting['execution_id']}/actions/cancel")
    assert "CANCELLED" in problem(again, status=409, code="conflict")["detail"]
    asked = await act(site, f"/executions/{running['execution_id']}/actions/cancel")
    assert (asked.status_code, asked.json()["status"]) == (202, "RUNNING")
    refused = await act(site, f"/executions/{running['execution_id']}/actions/cancel", {"reason": 1})
    assert pointers(problem(refused, status=400, code="invalid_input")) == ["/reason"]


async def test_only_what_has_ended_and_has_a_job_is_run_again(site: Site) -> None:
    job = await site.job("retried", parameters={"n": 1})
    live = await act(site, f"/executions/{job['execution_id']}/actions/retry")
    problem(live, status=409, code="conflict")
    orphan = await make_finished(site.pool, status="FAILED")
    problem(await act(site, f"/executions/{orphan}/actions/retry"), status=409, code="conflict")

    ended = await make_finished(site.pool, job_id=UUID(job["job_id"]), status="FAILED", task_id="retried")
    answer = await act(site, f"/executions/{ended}/actions/retry")
    assert (answer.status_code, answer.json()["retried_from"]) == (201, str(ended))
    assert answer.headers["Location"] == f"/api/v1/executions/{answer.json()['execution_id']}"
    execution = (await site.get(f"/executions/{answer.json()['execution_id']}")).json()
    assert {"trigger": "retry", "retried_from": str(ended), "status": "PENDING"}.items() <= execution.items()


@pytest.mark.parametrize(("had", "begins_with"), [((3, 6), (0, 3)), ((4, 7), (2, 5))])
async def test_what_was_poison_is_a_suspect_when_it_is_run_again(
    site: Site, had: tuple[int, int], begins_with: tuple[int, int]
) -> None:
    job = await site.job("suspected")
    names = ("worker_deaths", "max_attempts")
    ended = await make_finished(
        site.pool,
        job_id=UUID(job["job_id"]),
        status="FAILED",
        task_id="suspected",
        **dict(zip(names, had, strict=True)),
    )
    answer = await act(site, f"/executions/{ended}/actions/retry")
    again = (await site.get(f"/executions/{answer.json()['execution_id']}")).json()

    assert tuple(again[name] for name in names) == begins_with


async def test_what_is_not_there_cannot_be_acted_on_and_a_viewer_acts_on_nothing(site: Site) -> None:
    job = await site.job("untouched", schedule=HOURLY)
    for method, path in (
        ("PATCH", "/jobs/{}"), ("DELETE", "/jobs/{}"), ("POST", "/jobs/{}/actions/pause"),
        ("POST", "/jobs/{}/actions/resume"), ("POST", "/jobs/{}/actions/run"),
        ("POST", "/executions/{}/actions/cancel"), ("POST", "/executions/{}/actions/retry"),
    ):  # fmt: skip
        body = {"name": "x"} if method == "PATCH" else None
        problem(await site.request(method, path.format(uuid4()), json=body), status=404, code="not_found")
        problem(await site.request(method, path.format("x"), json=body), status=404, code="not_found")
        answer = await site.request(method, path.format(job["job_id"]), user="vera", json=body)
        if answer.status_code != 404:  # the id of a job is none of an execution
            problem(answer, status=403, code="forbidden")
    assert (await site.get(f"/jobs/{job['job_id']}")).json()["version"] == 1


@pytest.mark.parametrize("wait", ["-1", "61", "nan", "inf", "1e400", "soon", "", "true"])
async def test_a_wait_that_is_no_number_of_seconds_is_refused(site: Site, wait: str) -> None:
    await site.task("waited")
    before = await site.counts()
    answer = await site.post(f"/jobs?wait={wait}", {"task_id": "waited", "schedule": IMMEDIATE})
    assert pointers(problem(answer, status=400, code="invalid_input")) == ["/wait"]
    assert await site.counts() == before


async def test_a_wait_that_runs_out_answers_with_the_execution_as_it_stands(site: Site) -> None:
    await site.task("waited")
    answer = await site.post("/jobs?wait=0.05", {"task_id": "waited", "schedule": IMMEDIATE})
    assert answer.status_code == 201
    assert answer.json()["execution"]["status"] == "PENDING"
    assert answer.json()["execution"]["execution_id"] == answer.json()["execution_id"]
    repeating = await site.post("/jobs?wait=60", {"task_id": "waited", "schedule": HOURLY})
    assert (repeating.status_code, repeating.json()["execution"]) == (201, None)


async def test_a_run_that_is_waited_for_is_committed_before(site: Site) -> None:
    job = await site.job("waited", schedule=HOURLY)
    path, headers = f"/jobs/{job['job_id']}/actions/run", {"Idempotency-Key": str(uuid4())}
    waiting = asyncio.create_task(act(site, f"{path}?wait=60", headers=headers))
    execution_id = await eventually(lambda: _manual_run(site, job["job_id"]))
    assert not waiting.done()
    await act(site, f"/executions/{execution_id}/actions/cancel")
    answer, repeat = await waiting, await act(site, path, headers=headers)

    assert answer.status_code == repeat.status_code == 201
    assert (answer.json()["execution_id"], answer.json()["execution"]["status"]) == (
        execution_id,
        "CANCELLED",
    )
    assert repeat.json() == answer.json() | {"execution": None}
    assert repeat.headers["Location"] == answer.headers["Location"]


async def _manual_run(site: Site, job_id: str) -> str | None:
    """Return the run made by hand, once others can see it."""
    runs = (await site.get(f"/jobs/{job_id}/executions?include=future")).json()["items"]
    return next((run["execution_id"] for run in runs if run["trigger"] == "manual"), None)
