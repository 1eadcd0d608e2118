"""Queues: their definition, their pause, and what waits in them."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from app.db.reads.paces import MOST_COUNTED
from tests.api.conftest import Site, pointers, problem
from tests.api.support import pages
from tests.factories import make_executions, make_finished
from tests.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def create(site: Site, queue: str, **fields: Any) -> dict[str, Any]:
    answer = await site.post("/queues", {"queue": queue} | fields)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"/api/v1/queues/{queue}"
    found: dict[str, Any] = answer.json()
    return found


async def test_a_queue_reads_back_as_it_was_made(site: Site) -> None:
    made = await create(
        site,
        "etl",
        priority=1,
        max_delay_ms=500,
        lease_seconds=12.5,
        max_retries=7,
        batch_size=50,
        durability="relaxed",
        reserved_slots=2,
        interruptible=True,
    )
    answer = await site.get("/queues/etl", user="vera")

    assert answer.json() == made
    assert answer.headers["ETag"] == '"1"'
    assert made["lease_seconds"] == 12.5
    assert {
        name: made[name] for name in ("depth", "running", "oldest_due_seconds", "paused", "lateness_ms")
    } == {
        "depth": 0,
        "running": 0,
        "oldest_due_seconds": None,
        "paused": None,
        "lateness_ms": {"p50": None, "p99": None},
    }


async def test_the_default_set_is_there(site: Site) -> None:
    listed = {queue["queue"]: queue for queue in (await site.get("/queues?limit=1000")).json()["items"]}

    assert {"critical", "transactional", "bulk", "maintenance", "general"} <= set(listed)
    assert (listed["critical"]["max_delay_ms"], listed["critical"]["reserved_slots"]) == (100, 4)
    assert listed["bulk"]["durability"] == "relaxed"


async def test_queues_are_listed_page_by_page(site: Site) -> None:
    seen = [queue["queue"] for queue in await pages(site, "/queues")]

    assert seen == sorted(seen)
    assert len(seen) >= 5


async def test_a_name_is_given_once(site: Site) -> None:
    problem(await site.post("/queues", {"queue": "general"}), status=409, code="conflict")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"queue": "Big"}, "/queue"),
        ({"queue": "q" * 64}, "/queue"),
        ({"priority": 4}, "/priority"),
        ({"max_delay_ms": 0}, "/max_delay_ms"),
        ({"lease_seconds": 0.5}, "/lease_seconds"),
        ({"batch_size": 1001}, "/batch_size"),
        ({"durability": "none"}, "/durability"),
        ({"reserved_slots": -1}, "/reserved_slots"),
        ({"interruptible": 1}, "/interruptible"),
        ({"depth": 3}, "/depth"),
    ],
)
async def test_what_does_not_fit_is_refused_where_it_stands(
    site: Site, fields: dict[str, Any], pointer: str
) -> None:
    created = await site.post("/queues", {"queue": "never"} | fields)
    assert pointers(problem(created, status=400, code="invalid_input")) == [pointer]
    if "queue" not in fields:
        changed = await site.request("PATCH", "/queues/general", json=fields)
        assert pointers(problem(changed, status=400, code="invalid_input")) == [pointer]


async def test_a_patch_changes_what_it_names(site: Site) -> None:
    made = await create(site, "patched", max_delay_ms=100)
    answer = await site.request("PATCH", "/queues/patched", json={"max_delay_ms": None, "batch_size": 7})

    expected = made | {"max_delay_ms": None, "batch_size": 7, "version": 2}
    assert answer.json() == expected | {"updated_at": answer.json()["updated_at"]}
    assert answer.headers["ETag"] == '"2"'


async def test_a_stale_change_is_refused(site: Site) -> None:
    await create(site, "stale")
    answers = [
        await site.request("PATCH", "/queues/stale", json={"priority": 1}, headers={"If-Match": '"1"'})
        for _ in range(2)
    ]

    assert answers[0].status_code == 200
    problem(answers[1], status=412, code="precondition_failed")


async def test_a_pause_says_who_and_why_and_until_when(site: Site) -> None:
    await create(site, "halt")
    until = (site.clock.now() + timedelta(hours=1)).replace(microsecond=0)
    body = {"reason": "maintenance of the warehouse", "until": until.isoformat()}
    paused = await site.post("/queues/halt/actions/pause", body)

    assert paused.status_code == 200, paused.text
    found = paused.json()["paused"]
    assert (found["by"], found["reason"]) == ("oscar", "maintenance of the warehouse")
    assert datetime.fromisoformat(found["until"]) == until
    assert paused.json()["version"] == 2

    resumed = await site.request("POST", "/queues/halt/actions/resume")
    assert (resumed.status_code, resumed.json()["paused"], resumed.json()["version"]) == (200, None, 3)


async def test_a_pause_needs_no_body_and_lasts_until_it_is_resumed(site: Site) -> None:
    await create(site, "bare")
    paused = (await site.request("POST", "/queues/bare/actions/pause")).json()["paused"]

    assert (paused["by"], paused["reason"], paused["until"]) == ("oscar", None, None)


async def test_a_pause_whose_end_has_come_is_none(site: Site) -> None:
    await create(site, "brief")
    until = int(site.clock.unix_seconds()) + 3600
    assert (await site.post("/queues/brief/actions/pause", {"until": until})).json()["paused"] is not None
    await site.pool.execute("UPDATE onthedot.queues SET paused_until = now() WHERE queue = 'brief'")

    assert (await site.get("/queues/brief")).json()["paused"] is None


async def test_resuming_what_is_not_paused_changes_nothing(site: Site) -> None:
    made = await create(site, "runs")
    assert (await site.request("POST", "/queues/runs/actions/resume")).json() == made


@pytest.mark.parametrize("until", [0, "2020-01-01T00:00:00Z", "later"])
async def test_a_pause_ends_in_the_future(site: Site, until: object) -> None:
    answer = await site.post("/queues/general/actions/pause", {"until": until})

    assert answer.status_code == 400
    assert pointers(answer.json()) == ["/until"]
    assert (await site.get("/queues/general")).json()["paused"] is None


async def test_viewers_read_and_change_nothing(site: Site) -> None:
    for method, path, body in (
        ("POST", "/queues", {"queue": "by-vera"}),
        ("PATCH", "/queues/general", {"priority": 0}),
        ("POST", "/queues/general/actions/pause", {}),
        ("POST", "/queues/general/actions/resume", None),
    ):
        answer = await site.request(method, path, user="vera", json=body)
        problem(answer, status=403, code="forbidden")
    assert (await site.get("/queues/general", user="vera")).status_code == 200


async def test_there_is_nothing_under_a_name_that_no_queue_has(site: Site) -> None:
    for method, path, body in (
        ("GET", "/queues/nowhere", None),
        ("PATCH", "/queues/nowhere", {"priority": 0}),
        ("POST", "/queues/nowhere/actions/pause", {}),
        ("POST", "/queues/nowhere/actions/resume", None),
    ):
        problem(await site.request(method, path, json=body), status=404, code="not_found")


async def test_depth_counts_what_is_due_and_may_be_claimed(site: Site) -> None:
    await create(site, "deep")
    waiting: list[dict[str, Any]] = [
        {"due_in_seconds": -30, "priority": 3},
        {"due_in_seconds": -90, "priority": 0},
        {"due_in_seconds": -10, "status": "RETRYING"},
        {"due_in_seconds": 60},
        {"due_in_seconds": -300, "held": True},
        {"due_in_seconds": -5, "status": "RUNNING"},
        {"due_in_seconds": 1, "status": "SCHEDULED"},
    ]
    await make_executions(site.pool, ({"queue": "deep"} | row for row in waiting))
    found = (await site.get("/queues/deep")).json()

    assert (found["depth"], found["running"]) == (3, 1)
    assert 90 <= found["oldest_due_seconds"] < 120


async def test_what_waits_is_counted_to_a_limit(site: Site) -> None:
    await create(site, "flood")
    more = MOST_COUNTED + 5
    waiting = ({"queue": "flood", "priority": n % 4, "due_in_seconds": -1 - n} for n in range(more))
    await make_executions(site.pool, waiting)
    found = (await site.get("/queues/flood")).json()

    assert found["depth"] == MOST_COUNTED
    assert found["oldest_due_seconds"] >= more


async def test_lateness_is_that_of_the_last_minutes(site: Site) -> None:
    await create(site, "late")
    for lateness_ms in range(1, 101):
        await make_finished(site.pool, queue="late", lateness_ms=float(lateness_ms), ended_seconds_ago=60)
    await make_finished(site.pool, queue="late", lateness_ms=9999.0, ended_seconds_ago=360)

    async def measured() -> dict[str, float] | None:
        found: dict[str, float] = (await site.get("/queues/late")).json()["lateness_ms"]
        return found if found["p50"] else None

    assert await eventually(measured) == {"p50": 50.5, "p99": 99.01}
