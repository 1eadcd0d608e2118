"""The three requests that the product was asked for, letter by letter."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from tests.api.conftest import Site
from tests.factories import make_executions

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCHEMA = {
    "type": "object",
    "properties": {
        "update_version": {"type": "string"},
        "target_region": {"enum": ["US-East", "US-West"]},
        "rollout_percentage": {"type": "integer", "minimum": 1, "maximum": 100},
    },
    "required": ["update_version"],
    "additionalProperties": False,
}
REQUEST = b"""
{ "task_id": "deploy_ios_update",
  "schedule": { "type": "CRON", "expression": "0 2 * * TUE", "timezone": "America/Cupertino" },
  "parameters": { "update_version": "17.2.1", "target_region": "US-East", "rollout_percentage": 25 } }
"""


async def test_create_a_job_that_recurs_by_the_wall_clock_of_cupertino(site: Site) -> None:
    await site.task("deploy_ios_update", parameter_schema=SCHEMA)

    answer = await site.post("/jobs", REQUEST)

    assert answer.status_code == 201
    job = answer.json()
    assert answer.headers["Location"] == f"/api/v1/jobs/{job['job_id']}"
    assert job["status"] == "created"
    assert job["user_id"] == "oscar"
    assert job["parameters"] == {
        "update_version": "17.2.1",
        "target_region": "US-East",
        "rollout_percentage": 25,
    }
    assert job["schedule"]["type"] == "RECURRING"
    assert job["schedule"]["expression"] == "0 2 * * TUE"
    assert job["schedule"]["timezone"] == "America/Los_Angeles"
    assert job["schedule"]["timezone_requested"] == "America/Cupertino"
    assert job["execution_id"] is None
    instants = [datetime.fromisoformat(text) for text in job["next_occurrences"]]
    walls = [instant.astimezone(ZoneInfo("America/Los_Angeles")) for instant in instants]
    assert [(wall.strftime("%a"), wall.hour, wall.minute, wall.second) for wall in walls] == [
        ("Tue", 2, 0, 0)
    ] * 5
    assert [later.date() - earlier.date() for earlier, later in pairwise(walls)] == [timedelta(days=7)] * 4
    assert all(text.endswith("Z") for text in job["next_occurrences"])


async def test_list_the_running_executions_of_a_job(site: Site) -> None:
    job = await site.job("deploy_ios_update", parameters={"update_version": "17.2.1"})
    [running, _] = await make_executions(
        site.pool,
        [
            {"job_id": UUID(job["job_id"]), "status": status, "due_in_seconds": -seconds}
            for status, seconds in (("RUNNING", 1), ("RETRYING", 2))
        ],
    )

    answer = await site.get(f"/jobs/{job['job_id']}/executions?limit=50&status=RUNNING")

    assert answer.status_code == 200
    assert answer.json()["next_cursor"] is None
    [execution] = answer.json()["items"]
    assert execution["execution_id"] == str(running)
    assert execution["status"] == "RUNNING"
    assert execution["job_id"] == job["job_id"]


async def test_list_the_jobs_of_a_user_and_a_task_created_after_a_moment(site: Site) -> None:
    before = await site.job("deploy_ios_update", parameters={"update_version": "1"})
    await site.job("other_task")
    await site.job("deploy_ios_update", parameters={"update_version": "1"}, user="ada")
    later = await site.job("deploy_ios_update", parameters={"update_version": "2"})
    moment = datetime.fromisoformat(before["created_at"])

    for timestamp in (
        before["created_at"],
        f"{(moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds():f}",
    ):
        answer = await site.get(f"/jobs?user_id=oscar&task_type=deploy_ios_update&created_after={timestamp}")
        assert answer.status_code == 200
        assert [job["job_id"] for job in answer.json()["items"]] == [later["job_id"]]
        assert answer.json()["next_cursor"] is None
