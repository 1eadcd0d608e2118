"""Deleting tasks and users while transactions that have created jobs by SQL go on: nobody is held up for long."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import httpx
import pytest

from app.db.job_creation import without_new_jobs
from app.domain.access import Principal, Role
from tests.api.conftest import IMMEDIATE, Site, problem
from tests.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

kinds = pytest.mark.parametrize("kind", ["tasks", "users"])
MOST_SECONDS = 2
"""For which job creation may stand still: it does for a fifth of a second, and machines may be slow."""
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'onthedot.jobs'::regclass"


@asynccontextmanager
async def enqueued(site: Site, task_id: str, *, end: str = "ROLLBACK") -> AsyncIterator[int]:
    """Create a job in a transaction that goes on until the end; yield its session."""
    await site.task(task_id)
    async with site.pool.acquire() as connection:
        await connection.execute("SET application_name = 'shop'; BEGIN")
        await connection.execute("SELECT onthedot.enqueue($1)", task_id)
        yield await connection.fetchval("SELECT pg_backend_pid()")
        await connection.execute(f"{end}; RESET application_name")


async def unused(site: Site, kind: str) -> str:
    """Return the address of a new task or user that no job refers to."""
    name = f"x-{uuid4()}"
    if kind == "tasks":
        await site.task(name)
    else:
        assert (await site.post("/users", {"user_id": name}, user="ada")).status_code == 201
    return f"/{kind}/{name}"


async def begin_to_delete(site: Site, path: str) -> "asyncio.Task[httpx.Response]":
    """Return when that waits for somebody."""
    deleting = asyncio.create_task(site.request("DELETE", path, user="ada"))
    await eventually(lambda: waits_for_jobs(site))
    return deleting


async def waits_for_jobs(site: Site) -> bool:
    """Tell whether somebody waits for a lock on jobs."""
    return bool(await site.pool.fetchval(WAITING))


async def create(site: Site, task_id: str = "ordered") -> httpx.Response:
    return await site.post("/jobs", {"task_id": task_id, "schedule": IMMEDIATE})


@kinds
async def test_jobs_are_created_while_it_waits_and_whoever_is_in_the_way_is_named(
    site: Site, kind: str
) -> None:
    path = await unused(site, kind)
    async with enqueued(site, "ordered") as session:
        deleting = await begin_to_delete(site, path)
        async with asyncio.timeout(MOST_SECONDS):
            assert (await create(site)).status_code == 201
        assert not deleting.done(), "it was the delete that had to end first"

        detail = problem(await deleting, status=409, code="conflict")["detail"]
        assert f"PID {session}, 'shop' as onthedot, open for " in detail
        assert "pg_terminate_backend" in detail
        assert (await site.get(path, user="ada")).status_code == 200

    assert (await site.request("DELETE", path, user="ada")).status_code == 204
    problem(await site.get(path, user="ada"), status=404, code="not_found")


@kinds
async def test_it_goes_on_when_they_end(site: Site, kind: str) -> None:
    path = await unused(site, kind)
    async with enqueued(site, "ordered"):
        deleting = await begin_to_delete(site, path)

    assert (await deleting).status_code == 204


async def test_a_task_that_an_open_transaction_uses_is_in_use_when_that_commits(site: Site) -> None:
    task_id = f"x-{uuid4()}"
    async with enqueued(site, task_id, end="COMMIT"):
        deleting = await begin_to_delete(site, f"/tasks/{task_id}")

    assert (
        f"jobs of the task {task_id} exist" in problem(await deleting, status=409, code="conflict")["detail"]
    )


async def test_what_is_in_use_or_does_not_exist_is_refused_without_waiting(site: Site) -> None:
    await create_owner(site, "owner")
    async with enqueued(site, "ordered"):
        await site.job("ordered")
        for path in ("/tasks/ordered", "/users/owner"):
            detail = problem(await site.request("DELETE", path, user="ada"), status=409, code="conflict")[
                "detail"
            ]
            assert "delete them first" in detail
        for path in ("/tasks/nothing", "/users/nobody"):
            problem(await site.request("DELETE", path, user="ada"), status=404, code="not_found")


async def test_a_job_that_comes_while_its_task_is_deleted_finds_no_task(site: Site) -> None:
    task_id = f"x-{uuid4()}"
    await site.job(task_id)
    await site.pool.execute("DELETE FROM onthedot.jobs WHERE task_id = $1", task_id)
    async with without_new_jobs(site.engine, Principal("ada", Role.ADMIN)) as connection:
        creating = asyncio.create_task(create(site, task_id))
        await eventually(lambda: waits_for_jobs(site))
        await connection.exec_driver_sql("DELETE FROM onthedot.tasks WHERE task_id = $1", (task_id,))

    problem(await creating, status=400, code="unknown_task")
    assert await site.pool.fetchval("SELECT count(*) FROM onthedot.jobs WHERE task_id = $1", task_id) == 0


async def create_owner(site: Site, user_id: str) -> None:
    """Create a user who owns a job."""
    await site.post("/users", {"user_id": user_id}, user="ada")
    await site.job("ordered", user="ada", user_id=user_id)
