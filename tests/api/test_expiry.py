"""`expires_after_seconds`: every way in which an execution is made gives it its start deadline."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.db.notifier import HintSender
from app.db.stores.expiry import ExpiryStore
from app.db.stores.schedules import ScheduleStore
from app.maintenance.expirer import Expirer
from app.scheduler.materializer import Materializer
from tests.api.conftest import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")


def seconds_between(execution: dict[str, Any]) -> float:
    """Return how long after it was due an execution expires."""
    due, expires = [datetime.fromisoformat(execution[name]) for name in ("due_at", "expires_at")]
    return (expires - due) / timedelta(seconds=1)


async def execution(site: Site, execution_id: str) -> dict[str, Any]:
    """Return an execution."""
    found: dict[str, Any] = (await site.get(f"/executions/{execution_id}")).json()
    return found


async def test_the_deadline_counts_from_when_it_is_due(site: Site) -> None:
    job = await site.job("expiring", expires_after_seconds=0.25)
    later = {"type": "ONCE", "scheduled_time": "2999-01-01T00:00:00Z"}
    planned = await site.job("expiring", schedule=later, expires_after_seconds=90)
    without = await site.job("expiring")

    assert job["expires_after_seconds"] == 0.25
    assert seconds_between(await execution(site, job["execution_id"])) == 0.25
    found = await execution(site, planned["execution_id"])
    assert found["expires_at"] == "2999-01-01T00:01:30Z"
    assert (await execution(site, without["execution_id"]))["expires_at"] is None


async def test_an_instant_at_the_end_of_time_can_be_read(site: Site) -> None:
    end = {"type": "ONCE", "scheduled_time": "9999-12-30T00:00:00Z"}
    job = await site.job("expiring", schedule=end, expires_after_seconds=366 * 86_400)

    assert (await execution(site, job["execution_id"]))["expires_at"] == "9999-12-31T00:00:00Z"


async def test_run_now_and_retry_begin_a_deadline_of_their_own(site: Site) -> None:
    job = await site.job("expiring", expires_after_seconds=30)
    started = (await site.post(f"/jobs/{job['job_id']}/actions/run", {})).json()
    assert seconds_between(await execution(site, started["execution_id"])) == 30
    await site.post(f"/executions/{started['execution_id']}/actions/cancel", {})
    again = (await site.post(f"/executions/{started['execution_id']}/actions/retry", {})).json()

    assert seconds_between(await execution(site, again["execution_id"])) == 30


async def test_planned_instants_have_theirs(site: Site) -> None:
    every = {"type": "INTERVAL", "every": 600}
    job = await site.job("expiring", schedule=every, expires_after_seconds=45.5)
    schedules = ScheduleStore(site.pool)
    await Materializer(schedules=schedules, hints=HintSender(site.pool), horizon_seconds=3600).tick()

    listed = await site.get(f"/jobs/{job['job_id']}/executions", params={"include": "future"})
    assert {seconds_between(item) for item in listed.json()["items"]} == {45.5}

    changed = await site.request("PATCH", f"/jobs/{job['job_id']}", json={"expires_after_seconds": None})
    assert changed.json()["expires_after_seconds"] is None
    listed = await site.get(f"/jobs/{job['job_id']}/executions", params={"include": "future"})
    assert {item["expires_at"] for item in listed.json()["items"]} == {None}


async def test_what_expired_reads_as_skipped_and_may_be_run_again(site: Site) -> None:
    job = await site.job("expiring", expires_after_seconds=0.001)
    job_id, execution_id = UUID(job["job_id"]), job["execution_id"]
    await site.post(f"/jobs/{job_id}/actions/pause", {})
    await Expirer(expiries=ExpiryStore(site.pool)).tick()

    found = await execution(site, execution_id)
    assert (found["status"], found["disposition"]) == ("SKIPPED", "expired")
    assert found["error"]["type"] == "Expired"
    answer = await site.post(f"/executions/{execution_id}/actions/retry", {})
    assert answer.status_code == 201
