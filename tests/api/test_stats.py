"""`/stats` and `/metrics`: rates, lateness and what waits."""

from typing import Any

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from tests.api.conftest import Site, pointers, problem
from tests.factories import make_execution, make_finished
from tests.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def busy(site: Site) -> Site:
    """Return a site where ten executions ended within a minute, one of them in failure, and three wait or run."""
    for second in range(9):
        await make_finished(site.pool, queue="critical", lateness_ms=float(second), ended_seconds_ago=second)
    await make_finished(site.pool, queue="bulk", status="FAILED", lateness_ms=100.0, ended_seconds_ago=5)
    await make_finished(site.pool, queue="bulk", lateness_ms=5000.0, ended_seconds_ago=1800)
    await make_execution(site.pool, queue="bulk", due_in_seconds=-20)
    await make_execution(site.pool, queue="critical", due_in_seconds=-10)
    await make_execution(site.pool, queue="critical", status="RUNNING")
    return site


async def test_rates_are_those_of_the_window(busy: Site) -> None:
    stats = (await busy.get("/stats?window=100", user="vera")).json()

    assert stats["window_seconds"] == 100
    assert stats["completed_per_second"] == 0.09
    assert stats["failed_per_second"] == 0.01
    assert stats["created_per_second"] == pytest.approx(0.13)  # all but the one that ended half an hour ago
    assert stats["queues"]["critical"]["completed_per_second"] == 0.09
    assert stats["queues"]["bulk"]["failed_per_second"] == 0.01


async def test_lateness_and_stages_are_those_of_what_ended(busy: Site) -> None:
    stats = (await busy.get("/stats?window=101")).json()

    assert stats["lateness_ms"] == {"p50": 4.5, "p99": 91.72, "max": 100.0}
    assert stats["queues"]["critical"]["lateness_ms"] == {"p50": 4.0, "p99": 7.92, "max": 8.0}
    assert set(stats["stages_ms"]) == {"due_to_claimed", "claimed_to_started", "started_to_completed"}
    assert stats["stages_ms"]["started_to_completed"]["p50"] == 1000.0


async def test_what_waits_and_runs_is_counted_as_it_is_now(busy: Site) -> None:
    before = (await busy.get("/stats")).json()
    execution_id = await make_execution(busy.pool, queue="maintenance", due_in_seconds=-1)
    after = (await busy.get("/stats")).json()
    await busy.pool.execute("DELETE FROM onthedot.executions WHERE execution_id = $1", execution_id)

    assert (before["due"], before["running"]) == (2, 1)
    assert (after["due"], after["running"]) == (3, 1)
    assert after["queues"]["maintenance"]["due"] == 1
    assert after["queues"]["bulk"]["oldest_due_seconds"] >= 20


async def test_a_window_without_an_end_has_no_lateness(busy: Site) -> None:
    stats = (await busy.get("/stats?window=100")).json()["queues"]["maintenance"]

    assert stats["lateness_ms"] == {"p50": None, "p99": None, "max": None}
    assert stats["completed_per_second"] == 0


@pytest.mark.parametrize("window", ["0", "3601", "abc", "1.5"])
async def test_a_window_is_a_second_to_an_hour(site: Site, window: str) -> None:
    answer = await site.get(f"/stats?window={window}")
    assert pointers(problem(answer, status=400, code="invalid_input")) == ["/window"]


async def scrape(site: Site) -> dict[str, dict[tuple[str, ...], float]]:
    """Return each metric by the values of its labels, in the order of their names."""
    answer = await site.http.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(answer.text)
    }


async def test_metrics_need_no_key_and_say_what_the_database_knows(busy: Site) -> None:
    found = await scrape(busy)

    assert found["onthedot_queue_depth"][("bulk",)] == 1
    assert found["onthedot_queue_running"][("critical",)] == 1
    assert found["onthedot_queue_oldest_due_seconds"][("bulk",)] >= 20
    assert ("maintenance",) not in found["onthedot_queue_oldest_due_seconds"]
    assert found["onthedot_completed_per_second"][("critical",)] == pytest.approx(0.15)
    assert found["onthedot_failed_per_second"][("bulk",)] == pytest.approx(1 / 60, abs=1e-3)
    assert found["onthedot_created_per_second"][()] > 0
    assert found["onthedot_lateness_seconds"][("0.99", "critical")] == pytest.approx(0.00792)
    assert found["onthedot_stage_seconds"][("0.5", "started_to_completed")] == 1.0
    assert found["onthedot_queue_paused"] == dict.fromkeys(found["onthedot_queue_depth"], 0.0)
    assert [len(labels) for labels in found["process_resident_memory_bytes"]] == [1]


async def test_metrics_follow_within_two_seconds(busy: Site) -> None:
    worker: dict[str, Any] = {"live": 1.0, "draining": 0.0, "stale": 0.0, "lost": 0.0, "stopped": 0.0}
    await busy.pool.execute(
        "UPDATE onthedot.queues SET paused_at = now(), paused_by = 'ada' WHERE queue = 'bulk'"
    )
    await busy.pool.execute(
        "INSERT INTO onthedot.workers (worker_id, host, pid, version, queues, slots, running)"
        " VALUES (gen_random_uuid(), 'host-a', 1, '1.0', '{}', 100, 40)"
    )

    async def followed() -> dict[str, dict[tuple[str, ...], float]] | None:
        found = await scrape(busy)
        return found if found["onthedot_queue_paused"][("bulk",)] == 1 else None

    found = await eventually(followed)
    assert found["onthedot_workers"] == {(state,): count for state, count in worker.items()}
    assert found["onthedot_worker_slots"][("live",)] == 100
    assert found["onthedot_worker_running"][("live",)] == 40
