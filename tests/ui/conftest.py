"""The dashboard on a database of its own, and a browser without JavaScript."""

import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from uuid import UUID

import httpx
import pytest
import pytest_asyncio
from litestar import Litestar
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.clock import DatabaseClock
from app.db.engine import open_engine
from app.db.pools import Pool, open_pool
from app.db.reads.changes import ChangeReads
from app.db.reads.recent import Recent
from app.domain.access import hash_secret
from app.server.api import page_parts, web_app
from app.settings import Settings
from app.ui.change_feed import ChangeFeed
from app.ui.csrf import FIELD, csrf_token
from app.ui.house import House
from app.ui.login_limits import LoginLimits
from app.ui.sessions import COOKIE_NAME
from tests.factories import insert
from tests.ui.parsed import Html

KEYS = {"ada": "a key of ada's, an operator", "viv": "a key of viv's, a viewer"}
ROLES = {"ada": "operator", "viv": "viewer"}
ADA_KEY = KEYS["ada"]
WORKFLOWS = ("workflow_run_steps", "workflow_runs", "workflow_definitions")
BASE_URL = "http://onthedot.test"

OpenPage: TypeAlias = Callable[..., Awaitable[Html]]
"""Opens an address of the dashboard as ada."""


@dataclass(kw_only=True)
class Site:
    """The dashboard and its database, on which ada is an operator and viv a viewer, each with a key."""

    dsn: str
    pool: Pool
    engine: AsyncEngine
    clock: DatabaseClock
    change_feed: ChangeFeed
    login_limits: LoginLimits
    house: House
    application: Litestar
    kept: list[Recent[Any, Any]]
    """Every place where it keeps answers for a moment."""


def site_on(
    engine: AsyncEngine, pool: Pool, clock: DatabaseClock, dsn: str = "", *, settings: Settings | None = None
) -> Site:
    """Compose the application as the server does."""
    change_feed = ChangeFeed(ChangeReads(engine))
    pages = page_parts(engine, clock, change_feed)
    application = web_app(engine, pool, clock, settings or Settings(), pages=pages)
    return Site(
        dsn=dsn,
        pool=pool,
        engine=engine,
        clock=clock,
        change_feed=change_feed,
        login_limits=cast("LoginLimits", pages["login_limits"]),
        house=cast("House", pages["house"]),
        application=application,
        kept=[one for one in gc.get_objects() if type(one) is Recent],
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


async def send(
    client: httpx.AsyncClient, path: str, fields: dict[str, Any] | None = None, **headers: str
) -> httpx.Response:
    """Send a form as a page of the client's session would."""
    token = {FIELD: csrf_token(client.cookies[COOKIE_NAME])}
    return await client.post(path, data=token | (fields or {}), headers=headers)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole_site(module_dsn: str) -> AsyncIterator[Site]:
    """Return the dashboard for a module; its tests must run in the module's loop."""
    async with await open_pool(module_dsn, size=2, application_name="test") as pool:
        engine, clock = open_engine(module_dsn, size=4, application_name="test"), DatabaseClock()
        await clock.synchronise(pool)
        yield site_on(engine, pool, clock, module_dsn)
        await engine.dispose()


@pytest_asyncio.fixture(loop_scope="module")
async def site(whole_site: Site) -> Site:
    """Return the dashboard with no rows but its users', no login that failed and no answer kept."""
    pool = whole_site.pool
    for recent in whole_site.kept:
        recent._answers.clear()
    whole_site.login_limits.__init__()  # type: ignore[misc]
    for table in (
        *WORKFLOWS,
        "users",
        "jobs",
        "executions",
        "execution_history",
        "tasks",
        "workers",
        "rollups",
    ):
        await pool.execute(f"DELETE FROM onthedot.{table}")  # noqa: S608 - our own names; keys go with users
    for i, (user, key) in enumerate(KEYS.items()):
        await insert(pool, "users", [{"user_id": user, "name": user.title(), "role": ROLES[user]}])
        row = {"key_id": UUID(int=i), "user_id": user, "name": "laptop", "prefix": key[:10]}
        await insert(pool, "api_keys", [row | {"key_hash": hash_secret(key)}])
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
    """Return the browser of ada, an operator, logged in."""
    async with browser(site.application) as client:
        yield await _logged_in(client, "ada")


@pytest_asyncio.fixture(loop_scope="module")
async def viv(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    """Return the browser of viv, a viewer, logged in."""
    async with browser(site.application) as client:
        yield await _logged_in(client, "viv")


@pytest.fixture
def page(ada: httpx.AsyncClient) -> OpenPage:
    """Return a function that opens a page and parses it."""

    async def open_page(address: str) -> Html:
        answer = await ada.get(address)
        assert answer.status_code == 200, answer.text
        return Html(answer.text)

    return open_page


async def _logged_in(client: httpx.AsyncClient, user: str) -> httpx.AsyncClient:
    answer = await client.post("/login", data={"key": KEYS[user]})
    assert answer.status_code == 303, answer.text
    return client
