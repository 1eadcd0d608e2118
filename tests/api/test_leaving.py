"""A server that is about to stop says so, and serves whoever comes nevertheless."""

import asyncio

import httpx
import pytest

from app.api.leaving import Leaving
from app.server.api import web_app
from app.settings import Settings
from tests.api.conftest import Site, key_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_server_that_is_to_stop_is_not_ready_and_keeps_no_connection(site: Site) -> None:
    stopping = asyncio.Event()
    app = web_app(site.engine, site.pool, site.clock, Settings.from_env({}), stopping=stopping)
    transport = httpx.ASGITransport(Leaving(app, stopping))  # type: ignore[arg-type]  # the same protocol in other words
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as http:
        before = await http.get("/readyz")
        stopping.set()
        after = await http.get("/readyz")
        served = await http.get("/api/v1/tasks", headers={"Authorization": f"Bearer {key_of('vera')}"})
        refused = await http.get("/api/v1/tasks")

    assert (before.status_code, before.headers.get("Connection")) == (200, None)
    assert (after.status_code, after.json()["reason"]) == (503, "the server is stopping")
    assert (served.status_code, served.headers["Connection"]) == (200, "close")
    assert (refused.status_code, refused.headers["Connection"]) == (401, "close")
