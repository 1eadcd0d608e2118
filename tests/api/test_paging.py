"""Lists page by page: every row once, whatever happens meanwhile, and cursors that cannot be misused."""

import base64
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from app.domain.cursors import write_cursor
from app.domain.ids import new_job_id, shard_of
from tests.api.conftest import Site, pointers, problem
from tests.factories import insert, job_row, make_execution, make_executions, make_finished, make_job, now_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def pages(
    site: Site, path: str, query: dict[str, str], *, limit: int, between: Callable[[], Awaitable[None]]
) -> list[dict[str, Any]]:
    """Read a list to its end; `between` is awaited after each page."""
    found: list[dict[str, Any]] = []
    query = {"limit": str(limit)} | query
    while True:
        answer = await site.get(path, params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["items"]) <= limit
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        assert len(page["items"]) == limit
        query["cursor"] = page["next_cursor"]
        await between()


async def test_a_thousand_jobs_of_one_moment_are_each_listed_once_while_others_come_and_go(
    site: Site,
) -> None:
    now = await now_of(site.pool)
    ids = {new_job_id(number) for number in range(1000)}  # not in the order of creation
    rows = [job_row(now, job_id=job_id, user_id="crowd", created_at=now) for job_id in ids]
    await insert(site.pool, "jobs", rows)
    fleeting = [await make_job(site.pool, user_id="crowd", created_at=now) for _ in range(3)]

    async def come_and_go() -> None:
        await make_job(site.pool, user_id="crowd")
        await site.pool.execute("DELETE FROM onthedot.jobs WHERE job_id = ANY ($1)", fleeting)

    found = await pages(site, "/jobs", {"user_id": "crowd"}, limit=7, between=come_and_go)

    listed = [UUID(job["job_id"]) for job in found]
    assert sorted(set(listed) & ids) == sorted(ids)
    assert len(listed) == len(set(listed))
    order = [(job["created_at"], job["job_id"]) for job in found]
    assert order == sorted(order, reverse=True)


async def test_executions_are_each_listed_once_while_they_end(site: Site) -> None:
    now = await now_of(site.pool)
    running = await make_executions(
        site.pool, [{"task_id": "crowd", "status": "RUNNING", "scheduled_time": now} for _ in range(60)]
    )
    ended = [await make_finished(site.pool, task_id="crowd", scheduled_time=now) for _ in range(60)]
    moving = iter(running[::2])

    async def end_some() -> None:
        for execution_id in [next(moving, None), next(moving, None)]:
            if execution_id:
                await site.pool.execute(
                    "DELETE FROM onthedot.executions WHERE execution_id = $1", execution_id
                )
                await make_finished(
                    site.pool,
                    job_id=execution_id,
                    execution_id=execution_id,
                    shard=shard_of(execution_id),
                    task_id="crowd",
                    scheduled_time=now,
                )

    found = await pages(site, "/executions", {"task_id": "crowd"}, limit=7, between=end_some)

    listed = [UUID(execution["execution_id"]) for execution in found]
    assert listed == sorted({*running, *ended}, reverse=True)
    assert next(moving, None) is None  # all of them did move


async def test_a_page_holds_fifty_rows_unless_said_and_never_more_than_a_thousand(site: Site) -> None:
    now = await now_of(site.pool)
    await insert(site.pool, "jobs", [job_row(now, user_id="many") for _ in range(1005)])

    async def length(query: str) -> int:
        return len((await site.get(f"/jobs?user_id=many{query}")).json()["items"])

    assert await length("") == 50
    assert await length("&limit=1") == 1
    assert await length("&limit=1000") == 1000
    assert await length("&limit=1000000000") == 1000
    assert await length("&limit=99999999999999999999") == 1000


LISTS = ("/tasks", "/jobs", "/executions", "/jobs/01a2286f-8f81-7fe3-8426-ba3624ec9a73/executions")


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "limit", ["0", "-1", "abc", "", "1.5", "true", "null", "%00", "9" * 5000, "-" + "9" * 30]
)
async def test_a_limit_that_is_no_positive_number_is_refused(site: Site, path: str, limit: str) -> None:
    document = problem(await site.get(f"{path}?limit={limit}"), status=400, code="invalid_input")
    assert pointers(document) == ["/limit"]
    assert document["detail"].startswith("limit:")


def packed(*values: object) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(values)).decode().rstrip("=")


GARBAGE = {
    "empty": "",
    "not base64": "!!!!",
    "blank": "%20",
    "NUL": "%00",
    "not UTF-8": "%ff",
    "one character": "A",
    "base64 of nothing sensible": "AAAA",
    "long": "A" * 10_000,
    "other fields": packed(1, 2, 3),
    "too few": packed(1),
    "an object": base64.urlsafe_b64encode(msgspec.msgpack.encode({"a": 1})).decode(),
    "year 300,000": packed(10**19, uuid4(), b"123456"),
    "before all time": packed(-(2**63), uuid4(), b"123456"),
    "no uuid": packed(0, "x", b"123456"),
    "NaN": packed(float("nan"), uuid4(), b"123456"),
}


@pytest.mark.parametrize("path", LISTS[1:])
@pytest.mark.parametrize("name", GARBAGE)
async def test_a_cursor_that_is_not_ours_is_refused(site: Site, path: str, name: str) -> None:
    document = problem(await site.get(f"{path}?cursor={GARBAGE[name]}"), status=400, code="invalid_cursor")
    assert pointers(document) == ["/cursor"]


@pytest.mark.parametrize("cursor", ["", "!!!!", "%20", "%00", "%ff", "YWJj!!!!", "AAAA", "gIGC", "A"])
async def test_a_cursor_of_tasks_that_holds_no_id_is_refused(site: Site, cursor: str) -> None:
    document = problem(await site.get(f"/tasks?cursor={cursor}"), status=400, code="invalid_cursor")
    assert pointers(document) == ["/cursor"]


async def test_a_cursor_belongs_to_its_list_and_filters(site: Site) -> None:
    for _ in range(3):
        await make_execution(site.pool, task_id="bound", user_id="bound")
        await make_job(site.pool, task_id="bound", user_id="bound")
    job_id = await make_job(site.pool)

    async def cursor_of(path: str) -> str:
        cursor: str = (await site.get(f"{path}limit=1")).json()["next_cursor"]
        return cursor

    jobs, executions = await cursor_of("/jobs?user_id=bound&"), await cursor_of("/executions?task_id=bound&")
    for path, cursor in (
        ("/jobs?", jobs),
        ("/jobs?user_id=other&", jobs),
        ("/jobs?user_id=bound&task_type=bound&", jobs),
        ("/jobs?user_id=bound&created_after=0&", jobs),
        ("/executions?user_id=bound&", jobs),
        (f"/jobs/{job_id}/executions?", jobs),
        ("/executions?task_id=bound&status=PENDING&", executions),
        ("/executions?task_id=bound&include=future&", executions),
        ("/jobs?user_id=bound&", executions),
        (f"/jobs/{job_id}/executions?", executions),
    ):
        answer = await site.get(f"{path}cursor={cursor}")
        assert pointers(problem(answer, status=400, code="cursor_mismatch")) == ["/cursor"], path
    assert (await site.get(f"/jobs?user_id=bound&cursor={jobs}")).status_code == 200
    assert (await site.get(f"/executions?task_id=bound&cursor={executions}&limit=2")).status_code == 200


async def test_a_cursor_may_point_anywhere_in_time(site: Site) -> None:
    filters = {"user_id": None, "task_type": None, "created_after": None}
    for year in (1, 1970, 9999):
        cursor = write_cursor((await now_of(site.pool)).replace(year=year, day=1), uuid4(), filters)
        answer = await site.get(f"/jobs?cursor={cursor}")
        assert answer.status_code == 200
