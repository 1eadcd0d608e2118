"""A server that is silent, its connections open: what waits for it is given up, nothing in doubt is used again."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
import httpx
import pytest

from app.db.clock import DatabaseClock
from app.db.engine import Engine, open_engine
from app.db.pools import Pool, open_pool
from app.db.stores.jobs import JobStore, Submission
from app.domain.access import Actor
from app.intake.group_commit import GroupCommit
from app.server.api import web_app
from app.settings import Settings
from tests.api.conftest import IMMEDIATE, add_user, key_of
from tests.chaos.proxy import Proxy
from tests.factories import make_task, new_job
from tests.polling import eventually

SILENT = frozenset({"up", "down"})
ANSWER_SECONDS = 1.0
STATEMENT_SECONDS = 0.2
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()"


@pytest.fixture
def proxy(dsn: str) -> Iterator[Proxy]:
    with Proxy(dsn) as made:
        yield made


@asynccontextmanager
async def far_pool(proxy: Proxy, *, statement_timeout_seconds: float = 0) -> AsyncIterator[Pool]:
    """Open a pool of one connection, by way of the proxy."""
    opened = await open_pool(
        proxy.dsn,
        size=1,
        application_name="far",
        statement_timeout_seconds=statement_timeout_seconds,
        on_demand=True,
    )
    try:
        yield opened
    finally:
        opened.terminate()


@asynccontextmanager
async def site(engine: Engine, pool: Pool, clock: DatabaseClock) -> AsyncIterator[httpx.AsyncClient]:
    """Open the API over an engine and a pool."""
    app = web_app(engine, pool, clock, Settings.from_env({}), answer_seconds=ANSWER_SECONDS)
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # the same protocol in other words
    headers = {"Authorization": f"Bearer {key_of('oscar')}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as http:
        yield http


async def backends(pool: Pool) -> set[int]:
    """Return the server's processes behind the connections that lead through the proxy."""
    return {row["pid"] for row in await pool.fetch(BACKENDS, "far")}


async def test_a_statement_given_up_takes_its_connection_along(proxy: Proxy, pool: Pool) -> None:
    async with far_pool(proxy) as far:
        await far.fetchval("SELECT 1")
        before = await backends(pool)
        tasks = asyncio.all_tasks()
        proxy.silent = SILENT

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await far.fetchval("SELECT 1")

        assert asyncio.all_tasks() == tasks
        assert far.get_size() == 0
        proxy.silent = frozenset()
        assert await far.fetchval("SELECT 2") == 2
        assert not before & await backends(pool)


async def test_what_nobody_waits_for_any_more_ends_on_the_server(proxy: Proxy, pool: Pool) -> None:
    async with far_pool(proxy) as far:
        working = asyncio.create_task(far.execute("SELECT pg_advisory_lock(1), pg_sleep(600)"))

        async def is_at_work() -> bool:
            return bool(await pool.fetchval("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted"))

        await eventually(is_at_work)
        working.cancel()

        async def has_ended() -> bool:
            return not await is_at_work()

        await eventually(has_ended)


async def test_a_statement_is_given_up_when_its_time_is_over(proxy: Proxy) -> None:
    async with far_pool(proxy, statement_timeout_seconds=STATEMENT_SECONDS) as far:
        with pytest.raises(asyncpg.QueryCanceledError):
            await far.execute("SELECT pg_sleep(600)")
        assert far.get_size() == 1, "a server that says so itself keeps its connection"
        proxy.silent = SILENT

        with pytest.raises(TimeoutError):
            await far.execute("SELECT 1")

        assert far.get_size() == 0


async def test_the_api_says_in_time_that_it_gets_no_answer_and_the_request_may_come_again(
    proxy: Proxy, pool: Pool, clock: DatabaseClock
) -> None:
    await make_task(pool, task_id="sent-again")
    await add_user(pool, "oscar", role="operator")
    engine = open_engine(proxy.dsn, size=1, application_name="far")
    async with far_pool(proxy) as far, site(engine, far, clock) as http:
        proxy.silent = SILENT

        async def ask() -> httpx.Response:
            job = {"task_id": "sent-again", "schedule": IMMEDIATE}
            return await http.post("/api/v1/jobs", json=job, headers={"Idempotency-Key": "once"})

        async def succeeded() -> bool:
            return (await ask()).status_code == 201

        answers = await asyncio.gather(*(ask() for _ in range(5)))

        assert {answer.status_code for answer in answers} == {503}
        assert {answer.json()["code"] for answer in answers} == {"database_unavailable"}
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in answers)
        proxy.silent = frozenset()
        await eventually(succeeded)
        assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 1
    await engine.dispose()


async def test_a_group_whose_commit_stays_unanswered_is_looked_up(proxy: Proxy, pool: Pool) -> None:
    await make_task(pool)
    await add_user(pool, "ada", role="operator")
    async with far_pool(proxy, statement_timeout_seconds=STATEMENT_SECONDS) as far:
        commits = GroupCommit(JobStore(far))

        async def submit() -> UUID:
            job = await new_job(pool)
            assert job.job_id in (await commits.submit(Submission(jobs=[job], actor=Actor("user:ada")))).lanes
            return job.job_id

        async def is_given_up() -> bool:
            return far.get_size() == 0

        first = await submit()  # prepares the statement: else it would get no further than that
        proxy.silent = frozenset({"down"})
        submitting = asyncio.create_task(submit())
        await eventually(is_given_up)
        proxy.silent = frozenset()
        second = await submitting

    stored = {row["job_id"] for row in await pool.fetch("SELECT job_id FROM onthedot.jobs")}
    assert stored == {first, second}
