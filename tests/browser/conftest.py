"""A real browser on a real `onthedot serve`.

The tests are plain functions: they drive Chromium by Playwright's blocking interface. Every page is watched: an error
on its console, or a request to anywhere but the server, fails the test.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.databases import Databases
from tests.life.processes import serving

playwright_api = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
)

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
ADMIN_KEY = "the-admin-key-of-the-browser-tests-0123456789"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_MS = 20_000
"""Generous: a busy machine is no failure."""
playwright_api.expect.set_options(timeout=PATIENCE_MS)


@dataclass(kw_only=True)
class House:
    """A running `onthedot serve` with one worker, and its API."""

    url: str
    dsn: str
    api: httpx.Client
    keys: dict[str, str]

    def post(self, path: str, body: object = None) -> Any:
        """Send something to the API and return the answer's JSON."""
        answer = self.api.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def job(self, task_id: str | None = None, **columns: Any) -> dict[str, Any]:
        """Make a job, by default one that waits for tomorrow, of a task of its own that echoes."""
        task = task_id or self.task()
        body = {"task_id": task, "schedule": {"type": "INTERVAL", "every": 86_400}} | columns
        made: dict[str, Any] = self.post("/jobs", body)
        return made

    def task(self, handler: str = "builtin:echo", **columns: Any) -> str:
        """Make a task with an id of its own."""
        task_id = f"task-{uuid4().hex[:8]}"
        self.post("/tasks", {"task_id": task_id, "execution_handler": handler} | columns)
        return task_id


@dataclass(kw_only=True)
class Watched:
    """What a page did that it must not do."""

    faults: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Patterns of faults that a test causes itself."""

    def expect(self, pattern: str) -> None:
        """Let faults pass that match."""
        self.expected.append(pattern)

    def unexpected(self) -> list[str]:
        """Return the faults that no test expects."""
        return [fault for fault in self.faults if not any(re.search(one, fault) for one in self.expected)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def house(databases: Databases) -> Iterator[House]:
    """Return a running house on a database of its own; tests share it and make what they need."""
    with house_on(databases, "browser") as opened:
        yield opened


@contextmanager
def house_on(databases: Databases, what: str) -> Iterator[House]:
    """Run a house on a new database."""
    with databases.cloned(what) as dsn, tempfile.TemporaryDirectory() as data:
        own = {"DATABASE_URL": dsn, "DATA_DIR": data, "PORT": "0", "WORKER_PROCESSES": "1"}
        with serving(ADMIN_API_KEY=ADMIN_KEY, **own) as (_, line):
            url = line.split()[-1]
            headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
            with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=30) as api:
                yield House(url=url, dsn=dsn, api=api, keys=_users(api))


@pytest.fixture(scope="session")
def chromium(databases: Databases) -> "Iterator[playwright_api.Browser]":  # noqa: ARG001
    """Return a running Chromium; skip where there is none.

    Its driver keeps an event loop running in this thread: the database, which is made by one of its own, comes first.
    """
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed (Debian: apt install chromium)")
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def watched() -> Watched:
    """Return what the test's pages do wrong; looked at when the test is over."""
    return Watched()


@pytest.fixture
def open_as(
    chromium: "playwright_api.Browser", house: House, watched: Watched
) -> "Iterator[Callable[..., playwright_api.Page]]":
    """Return a function that opens a page as somebody: `open_as("ada", "/jobs", theme="dark", width=390)`."""
    contexts = []

    def open_page(
        user: str, path: str = "/", *, theme: str = "light", width: int = 1440, **options: Any
    ) -> "playwright_api.Page":
        context = chromium.new_context(
            base_url=house.url, color_scheme=theme, viewport={"width": width, "height": 900}, **options
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        _watch(page, house.url, watched)
        answer = page.request.post("/login", form={"key": house.keys[user]}, max_redirects=0)
        assert answer.status == 303
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert watched.unexpected() == []


@pytest.fixture
def page(open_as: "Callable[..., playwright_api.Page]") -> "playwright_api.Page":
    """Return the overview, opened by ada, an operator."""
    return open_as("ada")


def serious_flaws(page: "playwright_api.Page") -> list[str]:
    """Return what axe finds on the page as it is, of serious or critical impact."""
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{flaw['id']}: {flaw['help']}: {[node['html'] for node in flaw['nodes'][:3]]}"
        for flaw in found["violations"]
        if flaw["impact"] in {"serious", "critical"}
    ]


def listen(page: "playwright_api.Page") -> Callable[[], None]:
    """Return what waits until the server has told of a change from now on, and so has told the page's own stream."""
    page.evaluate(
        """() => {
            const stream = new EventSource('/ui/events');
            const hear = ({ type }) => document.documentElement.setAttribute('data-heard', type);
            for (const name of ['hello', 'changed']) stream.addEventListener(name, hear);
        }"""
    )
    heard = playwright_api.expect(page.locator("html"))
    heard.to_have_attribute("data-heard", re.compile("."))
    return lambda: heard.to_have_attribute("data-heard", "changed")


def _users(api: httpx.Client) -> dict[str, str]:
    keys = {}
    for user, role in (("ada", "operator"), ("viv", "viewer"), ("root", "admin")):
        assert api.post("/users", json={"user_id": user, "name": user.title(), "role": role}).is_success
        keys[user] = api.post(f"/users/{user}/keys", json={"name": "browser"}).json()["key"]
    return keys


def _watch(page: "playwright_api.Page", url: str, watched: Watched) -> None:
    def note_message(message: "playwright_api.ConsoleMessage") -> None:
        if message.type in {"error", "warning"}:
            watched.faults.append(f"console: {message.text}")

    def note_request(request: "playwright_api.Request") -> None:
        if not request.url.startswith((f"{url}/", "blob:", "data:")):
            watched.faults.append(f"request to {request.url}")

    page.on("console", note_message)
    page.on("pageerror", lambda error: watched.faults.append(f"error: {error}"))
    page.on("request", note_request)
