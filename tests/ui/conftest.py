"""The dashboard on a database of its own, and a browser without JavaScript."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import httpx
import pytest
import pytest_asyncio
from litestar import Litestar
from litestar.di import Provide
from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.errors import EXCEPTION_HANDLERS
from app.api.openapi import openapi_config
from app.db.clock import DatabaseClock
from app.db.pools import Pool, open_engine, open_pool
from app.db.reads.executions import ExecutionReads
from app.db.reads.jobs import JobReads
from app.db.stores.access import AccessStore
from app.domain.access import hash_secret
from app.ui.errors import with_pages
from app.ui.routes import UI_HANDLERS
from app.ui.templating import template_config
from tests.factories import insert

ADA_KEY = "a key of ada's, an operator"
BASE_URL = "http://onthedot.test"


def dashboard(engine: AsyncEngine, clock: DatabaseClock) -> Litestar:
    """Return an application of nothing but pages."""
    parts = {
        "access": AccessStore(engine),
        "clock": clock,
        "execution_reads": ExecutionReads(engine),
        "job_reads": JobReads(engine),
    }
    return Litestar(
        route_handlers=UI_HANDLERS,
        dependencies={name: Provide(_giver(part), sync_to_thread=False) for name, part in parts.items()},
        exception_handlers=with_pages(EXCEPTION_HANDLERS),
        openapi_config=openapi_config(),
        template_config=template_config(),
        logging_config=None,
    )


def browser(application: Litestar, base_url: str = BASE_URL) -> httpx.AsyncClient:
    """Return a client that keeps cookies and asks for pages, as browsers do; it does not follow redirects.

    It runs the application in the test's own loop, in which the connections were opened.
    """
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(cast("Any", application), raise_app_exceptions=False),
        base_url=base_url,
        headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"},
    )


@dataclass(kw_only=True)
class Site:
    """The dashboard and its database, on which ada is an operator with a key."""

    pool: Pool
    engine: AsyncEngine
    clock: DatabaseClock
    application: Litestar


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole_site(module_dsn: str) -> AsyncIterator[Site]:
    """Return the dashboard for a module; its tests must run in the module's loop."""
    async with await open_pool(module_dsn, size=2, application_name="test") as pool:
        engine, clock = open_engine(module_dsn, size=4, application_name="test"), DatabaseClock()
        await clock.synchronise(pool)
        yield Site(pool=pool, engine=engine, clock=clock, application=dashboard(engine, clock))
        await engine.dispose()


@pytest_asyncio.fixture(loop_scope="module")
async def site(whole_site: Site) -> Site:
    """Return the dashboard with no rows but ada's."""
    pool = whole_site.pool
    for table in ("users", "jobs", "executions", "execution_history"):  # keys and sessions go with users
        await pool.execute(f"DELETE FROM onthedot.{table}")  # noqa: S608 - our own names
    await insert(pool, "users", [{"user_id": "ada", "name": "Ada", "role": "operator"}])
    key = {"user_id": "ada", "name": "laptop", "prefix": ADA_KEY[:10], "key_hash": hash_secret(ADA_KEY)}
    await insert(pool, "api_keys", [key | {"key_id": UUID(int=1)}])
    return whole_site


@pytest.fixture
def pool(site: Site) -> Pool:
    """Return a pool on the dashboard's database."""
    return site.pool


@pytest_asyncio.fixture(loop_scope="module")
async def visitor(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    """Return the browser of somebody who is not logged in."""
    async with browser(site.application) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def ada(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    """Return ada's browser, logged in."""
    async with browser(site.application) as client:
        answer = await client.post("/login", data={"key": ADA_KEY})
        assert answer.status_code == 303, answer.text
        yield client


def _giver(part: object) -> Callable[[], Any]:
    return lambda: part
