"""Workers: what they are by their heartbeats, and how one is told to drain."""

from uuid import UUID, uuid4

import pytest

from tests.api.conftest import Site, problem
from tests.api.support import pages

pytestmark = pytest.mark.asyncio(loop_scope="module")

REGISTER = """
    INSERT INTO onthedot.workers (worker_id, host, pid, version, queues, slots, running, draining,
                                  started_at, heartbeat_at, stopped_at)
    VALUES ($1, 'host-a', 7, '1.0', $2, 100, 3, $3, now() - make_interval(secs => $4 + 10),
            now() - make_interval(secs => $4), CASE WHEN $5 THEN now() - make_interval(secs => $4) END)
"""


async def register(
    site: Site, *, silent_seconds: float = 0.0, draining: bool = False, stopped: bool = False
) -> UUID:
    worker_id = uuid4()
    await site.pool.execute(REGISTER, worker_id, ["general"], draining, silent_seconds, stopped)
    return worker_id


async def listed(site: Site) -> set[str]:
    answer = await site.get("/workers?limit=1000", user="vera")
    return {worker["worker_id"] for worker in answer.json()["items"]}


@pytest.mark.parametrize(
    ("silent_seconds", "draining", "stopped", "state"),
    [
        (0, False, False, "live"),
        (14, False, False, "live"),
        (0, True, False, "draining"),
        (16, False, False, "stale"),
        (16, True, False, "stale"),
        (61, False, False, "lost"),
        (61, True, False, "lost"),
        (0, True, True, "stopped"),
        (300, True, True, "stopped"),
    ],
)
async def test_a_heartbeat_tells_the_state(
    site: Site, *, silent_seconds: float, draining: bool, stopped: bool, state: str
) -> None:
    worker_id = await register(site, silent_seconds=silent_seconds, draining=draining, stopped=stopped)
    answer = await site.get(f"/workers/{worker_id}", user="vera")

    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["state"] == state
    assert (found["host"], found["pid"], found["queues"], found["labels"]) == ("host-a", 7, ["general"], {})
    assert (found["slots"], found["running"], found["drain_reason"]) == (100, 3, None)
    assert str(worker_id) in await listed(site)


async def test_workers_leave_the_list_after_a_while(site: Site) -> None:
    stopped = await register(site, silent_seconds=3700, stopped=True)
    lost = await register(site, silent_seconds=90_000)
    silent = await register(site, silent_seconds=3700)
    seen = await listed(site)

    assert str(stopped) not in seen
    assert str(lost) not in seen
    assert str(silent) in seen
    assert (await site.get(f"/workers/{stopped}")).json()["state"] == "stopped"


async def test_workers_are_listed_page_by_page_the_last_started_first(site: Site) -> None:
    for silent_seconds in (1, 2, 3):
        await register(site, silent_seconds=silent_seconds)
    seen = [(worker["started_at"], worker["worker_id"]) for worker in await pages(site, "/workers")]

    assert seen == sorted(seen, reverse=True)
    assert {worker_id for _, worker_id in seen} == await listed(site)


async def test_a_worker_is_told_to_drain(site: Site) -> None:
    worker_id = await register(site)
    answer = await site.request("POST", f"/workers/{worker_id}/actions/drain")

    assert (answer.status_code, answer.json()["state"]) == (200, "draining")
    told = await site.pool.fetchval("SELECT draining FROM onthedot.workers WHERE worker_id = $1", worker_id)
    assert told is True


async def test_what_cannot_drain_says_why(site: Site) -> None:
    stopped, live = await register(site, stopped=True), await register(site)

    answer = await site.request("POST", f"/workers/{stopped}/actions/drain")
    problem(answer, status=409, code="conflict")
    problem(await site.request("POST", f"/workers/{uuid4()}/actions/drain"), status=404, code="not_found")
    answer = await site.request("POST", f"/workers/{live}/actions/drain", user="vera")
    problem(answer, status=403, code="forbidden")
    assert (await site.get(f"/workers/{live}")).json()["state"] == "live"


async def test_there_is_nothing_under_an_id_that_no_worker_has(site: Site) -> None:
    for path in (f"/workers/{uuid4()}", "/workers/abc"):
        problem(await site.get(path), status=404, code="not_found")
