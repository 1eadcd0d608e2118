"""The whole application over a database of its own. A module shares one: its tests do not disturb each other."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest_asyncio
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.clock import DatabaseClock
from app.db.engine import open_engine
from app.db.pools import Pool, open_pool
from app.domain.access import hash_secret
from app.domain.ids import uuid7
from app.server.api import web_app
from app.settings import Settings

USERS = {"ada": "admin", "oscar": "operator", "vera": "viewer"}
"""User -> role. Each one's key is `key_of` the name."""

COUNTS = """SELECT (SELECT count(*) FROM onthedot.tasks) AS tasks, (SELECT count(*) FROM onthedot.jobs) AS jobs,
                   (SELECT count(*) FROM onthedot.executions) AS executions"""
"""How many rows there are of what a request can store."""

IMMEDIATE = {"type": "IMMEDIATE"}


def key_of(user_id: str) -> str:
    """Return the API key of a user."""
    return f"key-of-{user_id}"


@dataclass(kw_only=True)
class Site:
    """The application, its database, and what tests ask of them. Requests are the operator's unless said."""

    pool: Pool
    engine: AsyncEngine
    clock: DatabaseClock
    http: httpx.AsyncClient

    async def request(
        self, method: str, path: str, *, user: str | None = "oscar", **options: Any
    ) -> httpx.Response:
        """Send a request to `/api/v1`; `user=None` sends no key."""
        headers = {"Authorization": f"Bearer {key_of(user)}"} if user else {}
        options["headers"] = headers | options.get("headers", {})
        return await self.http.request(method, f"/api/v1{path}", **options)

    async def get(self, path: str, **options: Any) -> httpx.Response:
        """Read something."""
        return await self.request("GET", path, **options)

    async def post(self, path: str, body: object, **options: Any) -> httpx.Response:
        """Send JSON; bytes are sent as they are."""
        if isinstance(body, bytes):
            options["headers"] = {"Content-Type": "application/json"} | options.get("headers", {})
            return await self.request("POST", path, content=body, **options)
        return await self.request("POST", path, json=body, **options)

    async def task(self, task_id: str, **fields: Any) -> dict[str, Any]:
        """Create a task, unless there is one already."""
        answer = await self.get(f"/tasks/{task_id}")
        if answer.status_code == 404:
            answer = await self.post(
                "/tasks", {"task_id": task_id, "execution_handler": "builtin:echo"} | fields
            )
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def job(self, task_id: str, *, user: str = "oscar", **fields: Any) -> dict[str, Any]:
        """Create a job, IMMEDIATE unless said, and the task if there is none."""
        await self.task(task_id)
        answer = await self.post("/jobs", {"task_id": task_id, "schedule": IMMEDIATE} | fields, user=user)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def counts(self) -> dict[str, int]:
        """Return how many rows there are of what a request can store."""
        return dict(await self.pool.fetchrow(COUNTS) or {})


def problem(answer: httpx.Response, *, status: int, code: str) -> dict[str, Any]:
    """Return a problem document (RFC 9457) after checking what all of them have in common."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == status
    assert document["code"] == code, document
    assert document["type"] == f"/problems/{code}"
    assert document["title"]
    assert document["detail"]
    assert len(document["detail"]) < 1000
    assert "Traceback" not in answer.text
    assert document["request_id"] == answer.headers["X-Request-Id"]
    return document


def pointers(document: dict[str, Any]) -> list[str]:
    """Return where a problem document says that something is wrong."""
    return [error["pointer"] for error in document.get("errors", [])]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(module_dsn: str) -> AsyncIterator[Site]:
    """Return the application over a database with three users; tests must run in the module's loop."""
    async with await open_pool(module_dsn, size=4, application_name="test") as pool:
        engine, clock = open_engine(module_dsn, size=4, application_name="test"), DatabaseClock()
        await clock.synchronise(pool)
        for user_id, role in USERS.items():
            await add_user(pool, user_id, role=role)
        app = web_app(engine, pool, clock, Settings.from_env({}))
        # In the loop of the pools. Litestar's own test client runs the application in a loop of another thread.
        transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # the same protocol in other words
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as http:
            yield Site(pool=pool, engine=engine, clock=clock, http=http)
        await engine.dispose()


async def add_user(pool: Pool, user_id: str, *, role: str) -> None:
    """Store a user and a key."""
    await pool.execute("INSERT INTO onthedot.users (user_id, name, role) VALUES ($1, $1, $2)", user_id, role)
    await pool.execute(
        "INSERT INTO onthedot.api_keys (key_id, user_id, name, prefix, key_hash) VALUES ($1, $2, 'test', 'key', $3)",
        uuid7(0),
        user_id,
        hash_secret(key_of(user_id)),
    )
