"""Backfills: past instants of a schedule are made up for, as many as there are and not one more."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from app.db.pools import Pool
from tests.api.conftest import Site, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOURLY = {"type": "RECURRING", "expression": "0 * * * *", "timezone": "UTC"}
RANGE = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T03:00:00Z"}
INSTANTS = [f"2026-01-01T0{hour}:00:00Z" for hour in range(4)]
MADE = """SELECT execution_id, trigger, status, scheduled_time < due_at AS is_due_later FROM onthedot.executions
           WHERE job_id = $1 AND trigger = 'backfill' ORDER BY scheduled_time"""


async def backfill(site: Site, job_id: str, **fields: Any) -> httpx.Response:
    return await site.post(f"/jobs/{job_id}/actions/backfill", RANGE | fields)


async def made(pool: Pool, job_id: str) -> list[Any]:
    return await pool.fetch(MADE, UUID(job_id))


async def test_each_instant_of_the_range_runs_both_ends_included(site: Site) -> None:
    job_id = (await site.job("made-up", schedule=HOURLY))["job_id"]

    tried = await backfill(site, job_id, dry_run=True)
    assert (tried.status_code, tried.json()["instants"], tried.json()["executions"]) == (200, INSTANTS, [])
    assert await made(site.pool, job_id) == []
    done = await backfill(site, job_id)

    assert done.status_code == 201
    assert [each["scheduled_time"] for each in done.json()["executions"]] == INSTANTS
    rows = await made(site.pool, job_id)
    assert [str(row["execution_id"]) for row in rows] == [
        e["execution_id"] for e in done.json()["executions"]
    ]
    assert {(row["status"], row["is_due_later"]) for row in rows} == {("PENDING", True)}
    again = await backfill(site, job_id)
    assert (again.json()["instants"], again.json()["executions"]) == (INSTANTS, [])
    assert len(await made(site.pool, job_id)) == 4


async def test_wall_time_that_a_zone_skips_is_made_up_for_as_the_schedule_fires(site: Site) -> None:
    schedule = {"type": "RECURRING", "expression": "30 2 * * *", "timezone": "America/New_York"}
    job_id = (await site.job("made-up", schedule=schedule))["job_id"]

    tried = await backfill(
        site, job_id, **{"from": "2026-03-07T00:00:00Z", "to": "2026-03-10T00:00:00Z"}, dry_run=True
    )

    assert tried.json()["instants"] == [
        "2026-03-07T07:30:00Z",
        "2026-03-08T07:00:00Z",
        "2026-03-09T06:30:00Z",
    ]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"to": "2999-01-01T00:00:00Z"}, "/to"),
        ({"from": "2026-01-02T00:00:00Z"}, "/from"),
        ({"from": "yesterday"}, "/from"),
        ({"to": None}, "/to"),
        ({"from": "2025-01-01T00:00:00Z"}, "/to"),
        ({"dry_run": 1}, "/dry_run"),
    ],
)
async def test_a_range_that_cannot_be_is_refused(site: Site, fields: dict[str, Any], pointer: str) -> None:
    job_id = (await site.job("made-up", schedule=HOURLY))["job_id"]

    refused = problem(await backfill(site, job_id, **fields), status=400, code="invalid_input")

    assert refused["errors"][0]["pointer"] == pointer
    assert await made(site.pool, job_id) == []


async def test_a_job_that_runs_once_has_nothing_to_make_up_for(site: Site) -> None:
    job = await site.job("made-up")

    problem(await backfill(site, job["job_id"]), status=409, code="conflict")


async def test_a_quota_holds_for_all_of_it_or_nothing(site: Site) -> None:
    user = {"user_id": "slow", "job_quotas": {"max_jobs_per_hour": 3}}
    assert (await site.post("/users", user, user="ada")).status_code == 201
    job = await site.job("made-up", user="ada", schedule=HOURLY, user_id="slow")

    problem(await backfill(site, job["job_id"]), status=429, code="quota_exceeded")
    assert await made(site.pool, job["job_id"]) == []
    fewer = await backfill(site, job["job_id"], to="2026-01-01T02:00:00Z")
    assert len(fewer.json()["executions"]) == 3
    problem(await backfill(site, job["job_id"], to="2026-01-01T00:00:00Z"), status=429, code="quota_exceeded")


async def test_a_workflow_is_backfilled_like_any_job(site: Site) -> None:
    await site.task("made-up")
    body = {"schedule": HOURLY, "steps": [{"key": "a", "task_id": "made-up"}]}
    workflow_id = (await site.post("/workflows", body)).json()["workflow_id"]

    done = await site.post(f"/workflows/{workflow_id}/actions/backfill", RANGE)

    assert [each["scheduled_time"] for each in done.json()["executions"]] == INSTANTS
    job = await site.job("made-up", schedule=HOURLY)
    path = f"/workflows/{job['job_id']}/actions/backfill"
    problem(await site.post(path, RANGE), status=404, code="not_found")
