"""`job_quotas.max_jobs_per_hour`: who asks for more than the hour has room for hears when there is room again."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.domain.hourly_quota import hour_of
from tests.api.conftest import IMMEDIATE, Site, add_user, problem
from tests.factories import now_of
from tests.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

JOB: dict[str, Any] = {"task_id": "counted", "schedule": IMMEDIATE}
EVERY = {"type": "INTERVAL", "every": 60}


async def limited(site: Site, quota: int) -> str:
    """Make a user with a quota, set by the API; when the hour is not about to end."""

    async def hour_goes_on() -> bool:
        now = await now_of(site.pool)
        return hour_of(now + timedelta(seconds=8)) == hour_of(now)

    await eventually(hour_goes_on, seconds=30)
    await site.task("counted")
    user_id = f"user-{uuid4().hex[:8]}"
    await add_user(site.pool, user_id, role="operator")
    body = {"job_quotas": {"max_jobs_per_hour": quota}}
    answer = await site.request("PATCH", f"/users/{user_id}", json=body, user="ada")
    assert answer.status_code == 200, answer.text
    return user_id


async def executions(site: Site, user_id: str) -> int:
    """Return how many executions of a user there are."""
    count: int = await site.pool.fetchval(
        "SELECT count(*) FROM onthedot.executions WHERE user_id = $1", user_id
    )
    return count


async def test_beyond_the_quota_a_post_is_refused_until_the_next_hour(site: Site) -> None:
    user = await limited(site, 2)
    statuses = [(await site.post("/jobs", JOB, user=user)).status_code for _ in range(2)]
    answer = await site.post("/jobs", JOB, user=user)

    document = problem(answer, status=429, code="quota_exceeded")
    assert statuses == [201, 201]
    left = 3600 - datetime.now(UTC).minute * 60 - datetime.now(UTC).second
    assert abs(int(answer.headers["Retry-After"]) - left) <= 5
    assert f"{user} may create 2 executions an hour" in document["detail"]
    assert await executions(site, user) == 2


async def test_a_quota_of_nothing_and_recurring_jobs(site: Site) -> None:
    """A recurring job is a definition: its instants are counted when they are planned."""
    user = await limited(site, 0)

    problem(await site.post("/jobs", JOB, user=user), status=429, code="quota_exceeded")
    assert (await site.post("/jobs", JOB | {"schedule": EVERY}, user=user)).status_code == 201


async def test_a_job_that_an_admin_creates_for_somebody_counts_as_theirs(site: Site) -> None:
    user = await limited(site, 1)
    mine = JOB | {"user_id": user}

    assert (await site.post("/jobs", mine, user="ada")).status_code == 201
    problem(await site.post("/jobs", mine, user="ada"), status=429, code="quota_exceeded")
    assert (await site.post("/jobs", JOB, user="ada")).status_code == 201


async def test_a_batch_is_refused_as_a_whole_or_item_by_item(site: Site) -> None:
    user = await limited(site, 3)
    jobs = [JOB, JOB | {"schedule": EVERY}, JOB, JOB, JOB | {"stauts": 1}, JOB]

    whole = await site.post("/jobs/batch", {"jobs": [JOB] * 4}, user=user)
    problem(whole, status=429, code="quota_exceeded")
    assert int(whole.headers["Retry-After"]) > 0
    assert await executions(site, user) == 0

    key = {"Idempotency-Key": str(uuid4())}
    part = await site.post("/jobs/batch?partial=true", {"jobs": jobs}, user=user, headers=key)
    assert part.status_code == 207
    items = part.json()["items"]
    assert [item["status"] for item in items] == [201, 201, 201, 201, 400, 429]
    assert items[5]["problem"]["code"] == "quota_exceeded"
    assert await executions(site, user) == 3
    batch = (await site.get(f"/batches/{part.json()['batch_id']}")).json()
    assert batch["total"] == 4
    repeat = await site.post("/jobs/batch?partial=true", {"jobs": jobs}, user=user, headers=key)
    assert (repeat.status_code, repeat.json()) == (207, part.json())

    nothing = await site.post("/jobs/batch?partial=true", {"jobs": [JOB, JOB]}, user=user)
    assert [item["status"] for item in nothing.json()["items"]] == [429, 429]
    assert nothing.json()["batch_id"] is None


async def test_what_was_refused_leaves_its_key_free(site: Site) -> None:
    user = await limited(site, 0)
    key = {"Idempotency-Key": str(uuid4())}
    refused = await site.post("/jobs", JOB, user=user, headers=key)
    problem(refused, status=429, code="quota_exceeded")

    body = {"job_quotas": {"max_jobs_per_hour": 1}}
    await site.request("PATCH", f"/users/{user}", json=body, user="ada")
    first = await site.post("/jobs", JOB, user=user, headers=key)
    again = await site.post("/jobs", JOB, user=user, headers=key)

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["job_id"] == again.json()["job_id"]
    assert await executions(site, user) == 1


async def test_run_retry_and_a_new_instant_count(site: Site) -> None:
    user = await limited(site, 3)
    job = (await site.post("/jobs", JOB, user=user)).json()
    started = await site.post(f"/jobs/{job['job_id']}/actions/run", {}, user=user)
    assert started.status_code == 201
    for execution_id in (job["execution_id"], started.json()["execution_id"]):
        cancelled = await site.post(f"/executions/{execution_id}/actions/cancel", {}, user=user)
        assert cancelled.status_code == 200
    later = {"schedule": {"type": "ONCE", "scheduled_time": "2999-01-01T00:00:00Z"}}
    moved = await site.request("PATCH", f"/jobs/{job['job_id']}", json=later, user=user)
    assert moved.status_code == 200

    run = await site.post(f"/jobs/{job['job_id']}/actions/run", {}, user=user)
    retry = await site.post(f"/executions/{job['execution_id']}/actions/retry", {}, user=user)
    for answer in (run, retry):
        problem(answer, status=429, code="quota_exceeded")
        assert int(answer.headers["Retry-After"]) > 0
    assert await executions(site, user) == 1
