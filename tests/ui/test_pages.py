"""What holds for every page: headers, policies, errors, files."""

import gzip
import hashlib
from pathlib import Path

import httpx
import pytest

from app.db.engine import open_engine
from app.db.pools import Pool
from app.settings import Settings
from app.ui.assets import STATIC_DIR
from app.ui.headers import PAGE_HEADERS
from app.ui.sessions import COOKIE_NAME
from tests.factories import (
    execution_row,
    insert,
    job_row,
    make_finished,
    make_job,
    make_task,
    now_of,
    task_row,
)
from tests.polling import eventually
from tests.ui.conftest import Site, browser, site_on
from tests.ui.parsed import Html
from tests.ui.workflows import new_workflow

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGES = [
    ("/", 200),
    ("/jobs", 200),
    ("/executions?status=FAILED", 200),
    ("/workflows", 200),
    ("/tasks", 200),
    ("/login?token=unknown", 303),
    ("/nowhere", 404),
    ("/executions?status=LOST", 400),
]
LISTS = ["/", "/jobs", "/executions", "/workflows", "/tasks"]
MOST_ASSET_BYTES, MOST_STYLE_BYTES, MOST_SCRIPT_BYTES, MOST_HTML_BYTES = 30_000, 8_000, 6_000, 15_000
"""Of a page, compressed; scripts are our own."""


@pytest.mark.parametrize(("path", "status"), PAGES)
async def test_every_page_is_sent_with_the_same_headers(
    ada: httpx.AsyncClient, path: str, status: int
) -> None:
    answer = await ada.get(path)

    assert answer.status_code == status
    assert (
        dict(PAGE_HEADERS).items() <= {name.title(): value for name, value in answer.headers.items()}.items()
    )


async def test_the_policy_lets_nothing_inline_and_nothing_foreign_in() -> None:
    policy = dict(part.split(" ", 1) for part in PAGE_HEADERS["Content-Security-Policy"].split("; "))

    assert policy == {
        "default-src": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "object-src": "'none'",
    }


@pytest.mark.parametrize("path", ["/login", "/login?token=unknown", "/nowhere", "/schema"])
async def test_pages_hold_no_inline_code_and_refer_to_nobody_else(
    visitor: httpx.AsyncClient, path: str
) -> None:
    html = Html((await visitor.get(path)).text)

    assert html.inline_code() == []
    assert html.references()
    assert all(reference.startswith(("/", "#")) for reference in html.references())
    assert not any(reference.startswith("//") for reference in html.references())


@pytest.mark.parametrize("path", ["/login", "/schema"])
async def test_every_file_of_a_page_is_served_and_may_be_kept_for_good(
    visitor: httpx.AsyncClient, path: str
) -> None:
    html = Html((await visitor.get(path)).text)
    files = [reference for reference in html.references() if reference.startswith("/static/")]
    types = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

    assert files
    for file in files:
        answer = await visitor.get(file)
        bare = file.partition("?")[0]
        assert answer.status_code == 200
        assert answer.headers["content-type"].partition(";")[0] == types[Path(bare).suffix]
        kept = set(answer.headers["cache-control"].split(", "))
        assert kept == {"public", "max-age=31536000", "immutable"}
        assert answer.headers["etag"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert hashlib.sha256(answer.content).hexdigest().startswith(file.partition("?v=")[2])


@pytest.mark.parametrize(
    "path",
    ["/static/%2e%2e/base.html", "/static/..%2fbase.html", "/static//etc/passwd", "/static/", "/static/%00"],
)
async def test_only_static_files_are_served(visitor: httpx.AsyncClient, path: str) -> None:
    answer = await visitor.get(path)

    assert answer.status_code in {400, 404}
    assert "<!doctype" not in answer.text.lower() or "no such" in answer.text.lower()


async def test_people_get_pages_and_programs_get_problems(visitor: httpx.AsyncClient) -> None:
    page = await visitor.get("/nowhere")
    api = await visitor.get("/api/v1/nowhere")
    program = await visitor.get("/nowhere", headers={"Accept": "*/*"})

    assert [a.status_code for a in (page, api, program)] == [404, 404, 404]
    assert page.headers["content-type"].startswith("text/html")
    assert api.headers["content-type"] == program.headers["content-type"] == "application/problem+json"


async def test_a_method_that_a_page_does_not_take_gets_a_page(ada: httpx.AsyncClient) -> None:
    answer = await ada.delete("/login")

    assert answer.status_code == 405
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(("name", "red"), [("staging", 0), ("PRODUCTION", 1), ("<b>", 0)])
async def test_the_bar_says_which_house_this_is(
    site: Site, ada: httpx.AsyncClient, name: str, red: int
) -> None:
    settings = Settings(environment=name)
    named = site_on(site.engine, site.pool, site.clock, settings=settings)
    async with browser(named.application) as client:
        client.cookies = ada.cookies
        html = Html((await client.get("/jobs")).text)

    assert name in html.texts
    assert len(html.all("span", **{"class": "house-name house-production"})) == red
    assert not Html((await ada.get("/jobs")).text).all("span", **{"class": "house-name "})


async def test_without_a_database_pages_say_so(unused_tcp_port: int, site: Site) -> None:
    engine = open_engine(
        f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/none", size=1, application_name="test"
    )
    async with browser(site_on(engine, site.pool, site.clock).application) as client:
        client.cookies.set(COOKIE_NAME, "a session")
        answer = await client.get("/")
        form = await client.get("/login")
    await engine.dispose()

    assert (answer.status_code, form.status_code) == (503, 503)
    assert answer.headers["retry-after"]
    assert "database" in Html(answer.text).text


async def test_what_takes_too_long_is_stopped_and_says_what_to_do(ada: httpx.AsyncClient, site: Site) -> None:
    engine = open_engine(site.dsn, size=2, application_name="test", statement_timeout_seconds=0.2)
    async with browser(site_on(engine, site.pool, site.clock).application) as client:
        client.cookies = ada.cookies
        async with site.pool.acquire() as other, other.transaction():
            await other.execute("LOCK TABLE onthedot.jobs")
            answer = await client.get("/jobs?task_id=report")

        async def works_again() -> bool:
            return (await client.get("/jobs?task_id=report")).is_success

        await eventually(works_again)
    await engine.dispose()
    html = Html(answer.text)

    assert answer.status_code == 503
    assert "This takes too long" in html.texts
    assert html.all("a", href="/jobs")


async def test_a_script_is_told_what_went_wrong_in_a_message(ada: httpx.AsyncClient) -> None:
    answer = await ada.get("/executions?status=LOST", headers={"HX-Request": "true"})

    assert answer.status_code == 400
    assert answer.text.startswith('<hx-partial hx-target="#toasts"')


async def test_a_script_whose_session_has_ended_has_its_page_loaded_anew(visitor: httpx.AsyncClient) -> None:
    answer = await visitor.get("/jobs/rows", headers={"HX-Request": "true"})

    assert (answer.status_code, answer.headers["hx-refresh"], answer.text) == (200, "true", "")


async def test_a_fault_of_ours_shows_no_trace(ada: httpx.AsyncClient, pool: Pool) -> None:
    await pool.execute("ALTER TABLE onthedot.tasks RENAME TO tasks_mislaid")
    answer = await ada.get("/tasks")
    await pool.execute("ALTER TABLE onthedot.tasks_mislaid RENAME TO tasks")

    assert answer.status_code == 500
    assert "Traceback" not in answer.text
    assert "tasks" not in answer.text


@pytest.mark.parametrize("vendor", [STATIC_DIR / "vendor", Path(__file__).parents[1] / "browser" / "vendor"])
async def test_vendored_files_are_as_they_were_published(vendor: Path) -> None:
    assert _checksums(vendor) == _published(vendor)


@pytest.mark.parametrize("path", LISTS)
async def test_what_a_page_loads_stays_small(ada: httpx.AsyncClient, path: str) -> None:
    files = {name.partition("?")[0]: name for name in Html((await ada.get(path)).text).references()}
    loaded = {
        name: len(gzip.compress((await ada.get(url)).content))
        for name, url in files.items()
        if "static" in name
    }

    assert sum(loaded.values()) <= MOST_ASSET_BYTES, loaded
    assert sum(size for name, size in loaded.items() if name.endswith(".css")) <= MOST_STYLE_BYTES
    assert sum(size for name, size in loaded.items() if "/js/" in name) <= MOST_SCRIPT_BYTES


@pytest.mark.parametrize("path", LISTS)
async def test_a_full_page_stays_small(ada: httpx.AsyncClient, pool: Pool, path: str) -> None:
    now = await now_of(pool)
    await insert(pool, "tasks", [task_row(task_id=f"task-{n}") for n in range(60)])
    jobs = [job_row(now, name=f"Nightly report {n}", task_id=f"task-{n}") for n in range(60)]
    await insert(pool, "jobs", jobs)
    live = [execution_row(now, due_in_seconds=-n, job_id=job["job_id"]) for n, job in enumerate(jobs)]
    await insert(pool, "executions", live)
    await make_task(pool)
    for n in range(51 if path == "/workflows" else 0):
        await new_workflow(pool, name=f"Nightly report {n}")
    page = await ada.get(path)

    assert path == "/" or Html(page.text).link("next")
    assert len(gzip.compress(page.content)) <= MOST_HTML_BYTES


@pytest.mark.parametrize("path", LISTS)
async def test_everything_on_a_page_leads_somewhere(ada: httpx.AsyncClient, pool: Pool, path: str) -> None:
    await make_task(pool)
    await new_workflow(pool)
    await make_finished(pool, job_id=await make_job(pool))
    html = Html((await ada.get(path)).text)
    found = {link["href"] for link in html.all("a") if not link["href"].startswith("#")}

    assert found
    assert {link: (await ada.get(link)).status_code for link in found} == dict.fromkeys(found, 200)


async def test_the_api_is_described_for_everybody(visitor: httpx.AsyncClient) -> None:
    page = await visitor.get("/schema")
    described = (await visitor.get("/schema/openapi.json")).json()
    as_yaml = await visitor.get("/schema/openapi.yaml")

    assert page.status_code == as_yaml.status_code == 200
    assert Html(page.text).all("div", **{"data-schema-url": "/schema/openapi.json"})
    assert (described["openapi"], described["info"]["title"]) == ("3.1.0", "onthedot")
    assert described["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    assert not [
        path for path in described["paths"] if path.startswith(("/jobs", "/ui", "/login"))
    ]  # no pages


async def test_the_page_of_the_api_may_do_little_more_than_ours(visitor: httpx.AsyncClient) -> None:
    policy = (await visitor.get("/schema")).headers["content-security-policy"]

    assert policy.startswith("default-src 'self'; img-src 'self' data:; ")
    assert "unsafe" not in policy


def _published(vendor: Path) -> dict[str, str]:
    lines = (vendor / "SHA256SUMS").read_text("utf-8").splitlines()
    return {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}


def _checksums(vendor: Path) -> dict[str, str]:
    return {
        file.relative_to(vendor).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in vendor.rglob("*")
        if file.is_file() and file.name != "SHA256SUMS"
    }
