"""What a user's executions come to: the list over all of their jobs, and the summary."""

import asyncio
from typing import Any

import pytest

from tests.api.conftest import Site, add_user, problem
from tests.factories import make_execution, make_finished

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_executions_of_a_user_are_narrowed_by_every_filter(site: Site) -> None:
    await add_user(site.pool, "hana", role="operator")
    shapes: list[dict[str, Any]] = [
        {"queue": "critical", "priority": 0, "task_id": "red", "status": "FAILED", "ended_seconds_ago": 40},
        {"queue": "critical", "priority": 1, "task_id": "red", "ended_seconds_ago": 30},
        {"queue": "bulk", "priority": 3, "task_id": "blue", "ended_seconds_ago": 20},
    ]
    ids = [await make_finished(site.pool, user_id="hana", **shape) for shape in shapes]
    ids.append(await make_execution(site.pool, user_id="hana", queue="bulk", priority=3, due_in_seconds=-10))
    await make_execution(site.pool, user_id="hana", due_in_seconds=3600)
    await make_finished(site.pool, user_id="oscar", queue="bulk")
    newest_first = [str(found) for found in reversed(ids)]

    async def listed(query: str) -> list[str]:
        answer = await site.get(f"/users/hana/executions?{query}")
        return [found["execution_id"] for found in answer.json()["items"]]

    assert await listed("") == newest_first
    assert await listed("queue=bulk") == newest_first[:2]
    assert await listed("priority=0") == newest_first[3:]
    assert await listed("task_id=red") == newest_first[2:]
    assert await listed("status=FAILED") == newest_first[3:]
    assert await listed("queue=critical&priority=1&task_id=red&status=COMPLETED") == [newest_first[2]]
    assert len(await listed("include=future")) == 5
    problem(await site.get("/users/hana/executions?priority=4"), status=400, code="invalid_input")


async def test_executions_of_a_user_are_read_page_by_page(site: Site) -> None:
    await add_user(site.pool, "iris", role="operator")
    for second in range(5):
        await make_finished(site.pool, user_id="iris", ended_seconds_ago=second)
    first = (await site.get("/users/iris/executions?limit=3")).json()
    second_page = (await site.get(f"/users/iris/executions?limit=3&cursor={first['next_cursor']}")).json()

    assert [len(first["items"]), len(second_page["items"])] == [3, 2]
    assert second_page["next_cursor"] is None
    mixed = await site.get(f"/users/iris/executions?queue=bulk&cursor={first['next_cursor']}")
    problem(mixed, status=400, code="cursor_mismatch")


async def test_a_user_without_executions_is_told_from_no_user(site: Site) -> None:
    assert (await site.get("/users/vera/executions")).json() == {"items": [], "next_cursor": None}
    assert (await site.get("/users/vera/summary")).json()["by_status"] == {}
    for path in ("executions", "summary", "keys"):
        problem(await site.get(f"/users/nobody/{path}", user="ada"), status=404, code="not_found")


async def test_a_summary_counts_what_is_live_and_what_has_ended(site: Site) -> None:
    await add_user(site.pool, "jo", role="operator")
    await make_finished(site.pool, user_id="jo", task_id="red", queue="critical", priority=0, status="FAILED")
    await make_finished(site.pool, user_id="jo", task_id="red", queue="critical", priority=1, status="FAILED")
    await make_finished(site.pool, user_id="jo", task_id="blue", ended_seconds_ago=7200)
    await make_execution(site.pool, user_id="jo", task_id="blue")
    summary = (await site.get("/users/jo/summary")).json()
    lately = (await site.get("/users/jo/summary", params={"since": await _an_hour_ago(site)})).json()

    assert summary == {
        "by_status": {"FAILED": 2, "COMPLETED": 1, "PENDING": 1},
        "by_task": {"red": 2, "blue": 2},
        "by_queue": {"critical": 2, "general": 2},
        "failed_critical": 1,
        "since": None,
    }
    assert lately["by_status"] == {"FAILED": 2, "PENDING": 1}
    assert lately["since"].endswith("Z")
    problem(await site.get("/users/jo/summary?since=soon"), status=400, code="invalid_input")


async def _an_hour_ago(site: Site) -> str:
    return str(int(site.clock.unix_seconds() - 3600))


async def test_a_summary_is_remembered_for_two_seconds_at_most(site: Site) -> None:
    await add_user(site.pool, "kim", role="operator")
    await make_finished(site.pool, user_id="kim")

    async def completed() -> int:
        counts = (await site.get("/users/kim/summary")).json()["by_status"]
        return int(counts["COMPLETED"])

    assert await completed() == 1
    await make_finished(site.pool, user_id="kim")
    began = asyncio.get_running_loop().time()
    while await completed() == 1:
        assert asyncio.get_running_loop().time() < began + 20
