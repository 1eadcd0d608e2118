"""`unique_key`: what is there already is the answer, by every way in which jobs are created."""

from typing import Any
from uuid import uuid4

import pytest

from tests.api.conftest import IMMEDIATE, Site, pointers, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

LATER = {"type": "ONCE", "scheduled_time": "2999-01-01T00:00:00Z"}


def wanted(key: str, **fields: Any) -> dict[str, Any]:
    """Return the request of a job under a key."""
    return {"task_id": "unique", "schedule": LATER, "unique_key": key} | fields


async def ask(site: Site, key: str, *, status: int, user: str = "oscar", **fields: Any) -> dict[str, Any]:
    """Ask for a job under a key."""
    await site.task("unique")
    answer = await site.post("/jobs", wanted(key, **fields), user=user)
    assert answer.status_code == status, answer.text
    assert answer.headers["Location"] == f"/api/v1/jobs/{answer.json()['job_id']}"
    assert answer.headers["ETag"] == f'"{answer.json()["version"]}"'
    found: dict[str, Any] = answer.json()
    return found


async def test_a_key_that_is_held_answers_with_the_job_that_holds_it(site: Site) -> None:
    first = await ask(site, "held", status=201, parameters={"n": 1}, unique_for_seconds=60.5)
    again = await ask(site, "held", status=200, parameters={"n": 2})

    assert (first["status"], again["status"]) == ("created", "exists")
    assert again == first | {"status": "exists"}
    assert (again["unique_key"], again["unique_for_seconds"], again["unique_policy"]) == (
        "held",
        60.5,
        "keep",
    )
    read = (await site.get(f"/jobs/{first['job_id']}")).json()
    assert read.items() <= again.items()
    assert (await ask(site, "held", status=201, user="ada"))["job_id"] != first["job_id"]


async def test_replace_gives_the_job_what_was_asked_for_last(site: Site) -> None:
    first = await ask(site, "pushed", status=201, parameters={"n": 1})
    later = {"type": "ONCE", "scheduled_time": "2999-01-02T00:00:00Z"}
    again = await ask(
        site, "pushed", status=200, parameters={"n": 2}, schedule=later, unique_policy="replace"
    )

    assert (again["status"], again["job_id"]) == ("replaced", first["job_id"])
    assert (again["version"], again["parameters"]) == (2, {"n": 2})
    execution = (await site.get(f"/executions/{first['execution_id']}")).json()
    assert (execution["parameters"], execution["scheduled_time"]) == ({"n": 2}, "2999-01-02T00:00:00Z")


async def test_what_has_ended_within_its_time_is_told_with_its_execution(site: Site) -> None:
    first = await ask(site, "ended", status=201, unique_for_seconds=3600)
    await site.post(f"/executions/{first['execution_id']}/actions/cancel", {})
    await site.task("unique")
    again = await site.post("/jobs?wait=10", wanted("ended"))

    assert again.status_code == 200
    assert again.json()["execution_id"] == first["execution_id"]
    assert again.json()["execution"]["status"] == "CANCELLED"


async def test_batches_name_the_jobs_that_hold_the_keys(site: Site) -> None:
    held = await ask(site, "b1", status=201)
    body = {"jobs": [wanted("b1"), wanted("b2"), wanted("b2"), {"task_id": "unique", "schedule": IMMEDIATE}]}
    answer = await site.post("/jobs/batch", body)

    assert answer.status_code == 201
    ids = answer.json()["job_ids"]
    assert answer.json()["created"] == 2
    assert ids[0] == held["job_id"]
    assert ids[1] == ids[2]
    assert len(set(ids)) == 3
    assert (await site.get(f"/batches/{answer.json()['batch_id']}")).json()["total"] == 2

    nothing = await site.post("/jobs/batch", {"jobs": [wanted("b1"), wanted("b2")]})
    assert nothing.status_code == 200
    assert nothing.json() == {"batch_id": None, "job_ids": ids[:2], "created": 0}

    partial = {"jobs": [wanted("b1"), wanted("b3"), wanted("b4", stauts=1)]}
    items = (await site.post("/jobs/batch?partial=true", partial)).json()["items"]
    assert [item["status"] for item in items] == [200, 201, 400]
    assert items[0]["job_id"] == held["job_id"]


async def test_a_repeat_under_an_idempotency_key_has_the_first_answer(site: Site) -> None:
    first = await ask(site, "kept", status=201)
    key = {"Idempotency-Key": str(uuid4())}
    answers = [
        await site.post("/jobs", wanted("kept", unique_policy="replace", name=None), headers=key)
        for _ in range(2)
    ]
    batch = {"Idempotency-Key": str(uuid4())}
    batches = [
        await site.post("/jobs/batch", {"jobs": [wanted("kept"), wanted("n")]}, headers=batch) for _ in "ab"
    ]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["Idempotency-Replayed"] == "true"
    assert (answers[1].json()["job_id"], answers[1].json()["version"]) == (first["job_id"], 2)
    assert batches[0].json() == batches[1].json()
    assert batches[1].headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    "schedule", [{"type": "CRON", "expression": "0 2 * * *"}, {"type": "INTERVAL", "every": 60}]
)
async def test_what_repeats_has_no_key(site: Site, schedule: dict[str, Any]) -> None:
    await site.task("unique")
    document = problem(
        await site.post("/jobs", wanted("x", schedule=schedule)), status=400, code="invalid_input"
    )
    assert pointers(document) == ["/unique_key"]
    once = await ask(site, f"once {uuid4()}", status=201)
    answer = await site.request("PATCH", f"/jobs/{once['job_id']}", json={"schedule": schedule})
    assert pointers(problem(answer, status=400, code="invalid_input")) == ["/schedule"]
    answer = await site.request("PATCH", f"/jobs/{once['job_id']}", json={"unique_key": "y"})
    assert pointers(problem(answer, status=400, code="invalid_input")) == ["/unique_key"]
