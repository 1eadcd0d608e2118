"""`/jobs`: what each kind of schedule becomes, how a job reads back, and how jobs are listed."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.api.conftest import IMMEDIATE, Site, pointers, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCHEDULE = {
    "type": "IMMEDIATE",
    "expression": None,
    "scheduled_time": None,
    "every": None,
    "timezone": "UTC",
    "timezone_requested": "UTC",
    "timezone_target": "Etc/UTC",
    "gap": "run_after_gap",
    "fold": "first",
    "starts_at": None,
    "ends_at": None,
    "misfire": "run_once",
    "misfire_grace_seconds": 60.0,
}


async def read(site: Site, job: dict[str, Any]) -> dict[str, Any]:
    """Return a job as it is read, after comparing it with the answer to its creation."""
    answer = await site.get(f"/jobs/{job['job_id']}", user="vera")
    assert answer.status_code == 200
    assert answer.headers["ETag"] == '"1"'
    found: dict[str, Any] = answer.json()
    assert found.items() <= job.items()
    assert job["status"] == "created"
    return found


async def test_the_least_that_makes_a_job_and_what_it_gets_by_default(site: Site) -> None:
    job = await site.job("least")

    found = await read(site, job)
    expected = {
        "job_id": job["job_id"],
        "user_id": "oscar",
        "task_id": "least",
        "name": None,
        "tags": [],
        "schedule": SCHEDULE,
        "parameters": {},
        "overlap": "allow",
        "queue": None,
        "priority": None,
        "max_retries": None,
        "timeout_seconds": None,
        "expires_after_seconds": None,
        "unique_key": None,
        "unique_for_seconds": None,
        "unique_policy": "keep",
        "is_active": True,
        "pause_reason": None,
        "paused_until": None,
        "created_at": job["created_at"],
        "updated_at": job["created_at"],
        "version": 1,
        "next_occurrences": [],
    }
    assert expected.items() <= found.items()
    assert UUID(job["job_id"]).version == 7
    assert job["created_at"].endswith("Z")


async def test_an_immediate_job_has_its_execution_with_it(site: Site) -> None:
    job = await site.job(
        "now", parameters={"a": [1, None, {"b": "ä"}]}, name="ü" * 200, tags=["a", "b:c/d.e@f-1"]
    )

    answer = await site.get(f"/executions/{job['execution_id']}")

    assert answer.status_code == 200
    expected = {
        "execution_id": job["execution_id"],
        "job_id": job["job_id"],
        "user_id": "oscar",
        "task_id": "now",
        "task_name": "now",
        "job_name": "ü" * 200,
        "tags": ["a", "b:c/d.e@f-1"],
        "queue": "general",
        "priority": 2,
        "status": "PENDING",
        "disposition": "pending",
        "trigger": "schedule",
        "claimed_at": None,
        "started_at": None,
        "completed_at": None,
        "lateness_ms": None,
        "attempt_number": 0,
        "max_attempts": 4,
        "worker_id": None,
        "lease_expires_at": None,
        "parameters": {"a": [1, None, {"b": "ä"}]},
        "result": None,
        "result_truncated": False,
        "error": None,
        "error_details": None,
        "execution_logs": f"/api/v1/executions/{job['execution_id']}/logs",
        "retried_from": None,
        "scheduled_time": job["created_at"],
        "due_at": job["created_at"],
    }
    assert expected.items() <= answer.json().items()


async def test_queue_priority_retries_and_timeout_of_a_job_win_over_its_task(site: Site) -> None:
    await site.task("tuned", queue="critical", resource_requirements={"max_retries": 9})
    plain = await site.job("tuned")
    own = await site.job("tuned", queue="bulk", priority=1, max_retries=0, timeout_seconds=0.5)

    by_task, by_job = [(await site.get(f"/executions/{job['execution_id']}")).json() for job in (plain, own)]
    assert (by_task["queue"], by_task["priority"], by_task["max_attempts"]) == ("critical", 0, 10)
    assert (by_job["queue"], by_job["priority"], by_job["max_attempts"]) == ("bulk", 1, 1)
    assert {"queue": "bulk", "priority": 1, "max_retries": 0, "timeout_seconds": 0.5}.items() <= own.items()
    await read(site, own)


async def test_a_job_that_runs_once_is_due_at_its_instant_and_one_in_the_past_at_once(site: Site) -> None:
    for scheduled_time, instant in (
        ("2099-01-31T09:00:00+02:00", "2099-01-31T07:00:00Z"),
        ("2099-07-31T09:00", "2099-07-31T07:00:00Z"),  # wall time of the zone
        (4073526000.5, "2099-01-31T07:00:00.500000Z"),
        ("4073526000", "2099-01-31T07:00:00Z"),
    ):
        schedule = {"type": "ONCE", "scheduled_time": scheduled_time, "timezone": "Europe/Berlin"}
        job = await site.job("once", schedule=schedule)
        found = await read(site, job)
        assert found["schedule"]["scheduled_time"] == instant
        assert found["next_occurrences"] == [instant]
        execution = (await site.get(f"/executions/{job['execution_id']}")).json()
        assert (execution["scheduled_time"], execution["due_at"]) == (instant, instant)

    past = await site.job("once", schedule={"type": "ONCE", "scheduled_time": 0})
    execution = (await site.get(f"/executions/{past['execution_id']}")).json()
    assert past["next_occurrences"] == []
    assert execution["scheduled_time"] == "1970-01-01T00:00:00Z"
    assert execution["due_at"] == past["created_at"]


async def test_an_interval_counts_from_its_start_else_from_its_creation(site: Site) -> None:
    job = await site.job("interval", schedule={"type": "INTERVAL", "every": "PT1M30S"})
    found = await read(site, job)
    created = datetime.fromisoformat(job["created_at"])
    assert found["schedule"]["every"] == 90.0
    assert [datetime.fromisoformat(text) for text in found["next_occurrences"]] == [
        created + n * timedelta(seconds=90) for n in range(1, 6)
    ]
    assert job["execution_id"] is None

    bounds = {"starts_at": "2099-01-01T00:00:00Z", "ends_at": "2099-01-01T00:03:00Z"}
    job = await site.job("interval", schedule={"type": "INTERVAL", "every": 90} | bounds)
    found = await read(site, job)
    assert bounds.items() <= found["schedule"].items()
    assert found["next_occurrences"] == ["2099-01-01T00:01:30Z", "2099-01-01T00:03:00Z"]


async def test_a_recurring_job_keeps_its_zone_and_policies(site: Site) -> None:
    policies = {"gap": "skip", "fold": "both", "misfire": "run_all", "misfire_grace_seconds": 0.5}
    schedule = {"type": "RECURRING", "expression": " 30  2 * * * ", "timezone": "US/Pacific"} | policies
    found = await read(site, await site.job("recurring", schedule=schedule))

    assert (policies | {"type": "RECURRING", "expression": "30 2 * * *"}).items() <= found["schedule"].items()
    assert found["schedule"]["timezone"] == found["schedule"]["timezone_requested"] == "US/Pacific"
    assert found["schedule"]["timezone_target"] == "America/Los_Angeles"
    assert len(found["next_occurrences"]) == 5


async def test_a_job_whose_zone_this_version_does_not_know_is_shown_without_instants(site: Site) -> None:
    job = await site.job("renamed", schedule={"type": "RECURRING", "expression": "0 2 * * *"})
    await site.pool.execute(
        "UPDATE onthedot.jobs SET timezone = 'Mars/Olympus' WHERE job_id = $1", UUID(job["job_id"])
    )
    found = await site.get(f"/jobs/{job['job_id']}")

    paused = await site.request("POST", f"/jobs/{job['job_id']}/actions/pause")

    assert (found.status_code, found.json()["next_occurrences"]) == (200, [])
    assert (paused.status_code, paused.json()["is_active"], paused.json()["warnings"]) == (200, False, [])


async def test_large_and_unusual_but_legal_values_read_back_as_sent(site: Site) -> None:
    parameters = {
        "text": "€" * 100_000,
        "integers": [2**63 - 1, -(2**63), 0],
        "floats": [1e22, 5e-324, 0.1, -2.5, 1.0],
        "keys": {"": 1, "$ref": 2, "a/b~c": 3, "__proto__": 4, " ": 5, "\u2028": 6, "😀": 7},
        "deep": nested(60),
        "list": list(range(20_000)),
    }
    job = await site.job("legal", parameters=parameters)
    assert job["parameters"] == parameters
    assert (await read(site, job))["parameters"] == parameters
    execution = (await site.get(f"/executions/{job['execution_id']}")).json()
    assert execution["parameters"] == parameters


async def test_floats_that_are_whole_read_back_as_the_same_number_in_all_their_digits(site: Site) -> None:
    job = await site.job("legal", parameters={"greatest": 1.7976931348623157e308})
    found = (await site.get(f"/jobs/{job['job_id']}")).json()
    assert found["parameters"]["greatest"] == 17976931348623157 * 10**292


async def test_jobs_are_listed_newest_first_by_user_task_and_creation(site: Site) -> None:
    mine = [await site.job("listed") for _ in range(3)]
    theirs = await site.job("listed", user="ada")
    ids = [job["job_id"] for job in mine]

    async def listed(**query: object) -> list[str]:
        answer = await site.get("/jobs", params=query, user="vera")
        assert answer.status_code == 200
        return [job["job_id"] for job in answer.json()["items"]]

    assert await listed(task_type="listed") == [theirs["job_id"], *reversed(ids)]
    assert await listed(task_type="listed", user_id="ada") == [theirs["job_id"]]
    assert (
        await listed(task_type="listed", user_id="oscar", created_after=mine[0]["created_at"]) == ids[:0:-1]
    )
    assert await listed(task_type="listed", user_id="nobody") == []
    assert await listed(task_type="nothing") == []
    assert await listed(task_type="listed", created_after="2999-01-01T00:00:00Z") == []
    assert (await listed())[:4] == [theirs["job_id"], *reversed(ids)]
    assert await listed(task_type="listed", limit=2) == [theirs["job_id"], ids[-1]]
    [first] = (await site.get("/jobs?task_type=listed&user_id=ada")).json()["items"]
    assert first == (await site.get(f"/jobs/{theirs['job_id']}")).json()


@pytest.mark.parametrize(
    "text",
    [
        "1970-01-01T00:00:00Z",
        "1970-01-01T01:00:00%2B01:00",
        "0",
        "1.5",
        "1970-01-01T00:00:00.123456Z",
        "1970-01-01",
    ],
)
async def test_created_after_is_a_time_or_unix_seconds(site: Site, text: str) -> None:
    answer = await site.get(f"/jobs?created_after={text}")
    if text == "1970-01-01":
        assert pointers(problem(answer, status=400, code="invalid_input")) == ["/created_after"]
    else:
        assert answer.status_code == 200


async def test_a_job_that_does_not_exist_is_not_found(site: Site) -> None:
    for path in (
        f"/jobs/{uuid4()}",
        f"/jobs/{uuid4()}/executions",
        f"/jobs/{uuid4()}/executions?status=FAILED",
    ):
        document = problem(await site.get(path), status=404, code="not_found")
        assert "there is no job" in document["detail"]


async def test_creation_follows_the_clock_of_the_database(site: Site) -> None:
    before = await site.pool.fetchval("SELECT clock_timestamp()")
    job = await site.job("clocked")
    after = await site.pool.fetchval("SELECT clock_timestamp()")

    slack = timedelta(seconds=site.clock.error_seconds + 0.001)
    assert before - slack <= datetime.fromisoformat(job["created_at"]).astimezone(UTC) <= after + slack


async def test_names_need_not_be_unique_and_a_repeat_makes_another_job(site: Site) -> None:
    await site.task("named")
    body = {"task_id": "named", "schedule": IMMEDIATE, "name": "nightly"}
    first, second = [(await site.post("/jobs", body)).json() for _ in range(2)]
    assert first["job_id"] != second["job_id"]


def nested(depth: int) -> object:
    """Return an object of so many objects within each other."""
    value: object = "bottom"
    for _ in range(depth):
        value = {"a": value}
    return value
