"""`/tasks`: the list, a task's page, deleting."""

from datetime import timedelta

import httpx
import msgspec
import pytest
import pytest_asyncio

from app.db.pools import Pool
from tests.factories import (
    FAILURE,
    Row,
    insert,
    job_row,
    make_execution,
    make_finished,
    make_job,
    make_task,
    now_of,
    task_row,
)
from tests.ui.conftest import OpenPage, send
from tests.ui.hostile import HOSTILE
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def nothing_counted(pool: Pool) -> None:
    """Forget what was counted for the test before."""
    await pool.execute("DELETE FROM onthedot.rollups")


async def test_without_tasks_the_page_says_how_to_make_one(page: OpenPage) -> None:
    html = await page("/tasks")

    assert "No tasks yet" in html.text
    assert html.all("a", href="/tasks/-/new")
    assert html.all("a", href="/tasks/-/new?kind=builtin")
    [example] = [text for text in html.texts if '@task("sync.customers")' in text]
    assert [button["data-copy"] for button in html.all("button", **{"class": "copy"})] == [example]


async def test_a_viewer_without_tasks_is_not_asked_to_make_one(viv: httpx.AsyncClient) -> None:
    html = Html((await viv.get("/tasks")).text)

    assert "No tasks yet" in html.text
    assert not [a for a in html.all("a") if "/new" in a["href"]]


async def test_a_task_tells_what_it_runs_how_often_it_is_tried_and_how_it_goes(
    page: OpenPage, pool: Pool
) -> None:
    await make_task(
        pool, "sync.catalogue", name="Catalogue", execution_handler="http:POST https://example.com/run",
        description="From the shop", queue="bulk", max_retries=2, timeout_seconds=90.0,
    )  # fmt: skip
    for _ in range(3):
        await make_job(pool, task_id="sync.catalogue")
    await _count(pool, "sync.catalogue", completed=9, failed=1)
    html = await page("/tasks")

    assert {
        "Catalogue",
        "sync.catalogue · From the shop",
        "HTTP",
        "POST https://example.com/run",
        "bulk",
        "90.0 %",
    } <= set(html.texts)
    assert "2 retries, after 1 s, 2 s" in html.texts
    assert "timeout 1 min 30 s" in html.texts
    assert [a["href"] for a in html.all("a") if a["href"].startswith("/jobs?")] == [
        "/jobs?task_id=sync.catalogue"
    ]
    assert "3" in html.texts
    assert html.all("svg", **{"aria-label": "9 completed, 1 failed"})


async def test_retries_that_the_queue_decides_are_told(page: OpenPage, pool: Pool) -> None:
    await make_task(pool, "urgent", queue="critical", retry_policy="fixed", retry_delay_seconds=5.0)

    assert "10 retries, each after 5 s" in (await page("/tasks")).texts
    assert "10 retries, each after 5 s (as the queue says)" in (await page("/tasks/urgent")).texts


async def test_the_last_run_is_told_and_what_runs_now(page: OpenPage, pool: Pool) -> None:
    for task_id in ("never", "ran", "long_ago", "running"):
        await make_task(pool, task_id)
    await make_finished(pool, task_id="ran", ended_seconds_ago=300)
    await _count(pool, "long_ago", completed=1, days_ago=3)
    await make_execution(pool, task_id="running", status="RUNNING")
    html = await page("/tasks")

    assert html.texts.count("never") == 2  # what it is called, and that it did not run
    assert {"5 min ago", "3 d ago", "1 running"} <= set(html.texts)


async def test_many_jobs_are_not_counted_to_the_end(page: OpenPage, pool: Pool) -> None:
    await make_task(pool)
    now = await now_of(pool)
    await insert(pool, "jobs", [job_row(now) for _ in range(250)])

    assert "200+" in (await page("/tasks")).texts


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_texts_stay_text(page: OpenPage, pool: Pool, name: str) -> None:
    schema = {"properties": {name: {"description": name, "enum": [name], "default": name}}}
    await pool.execute(
        "INSERT INTO onthedot.tasks (task_id, name, description, execution_handler, parameter_schema, created_by)"
        " VALUES ('report', $1, $1, 'python:' || $1, $2::text::jsonb, $1)",
        name,
        _json(schema),
    )
    await make_finished(
        pool,
        job_id=await make_job(pool, name=name),
        status="FAILED",
        error=FAILURE.replace('"no"', _json(name)),
    )
    for address in (
        "/tasks",
        "/tasks/report",
        "/tasks/report/try",
        "/tasks/report/edit",
        "/tasks/report/delete",
    ):
        html = await page(address)
        assert html.inline_code() == []
        assert not [found for _, found in html.elements if found.get("hx-get") == "/logout"]
        assert not [found for tag, found in html.elements if tag == "script" and "src" not in found]
        assert all("alt" in img for img in html.all("img"))


async def test_pages_reach_every_task_once(page: OpenPage, pool: Pool) -> None:
    await insert(pool, "tasks", [task_row(task_id=f"task-{n:03}") for n in range(120)])
    found, address = [], "/tasks"
    while address:
        html = await page(address)
        found += [text for text in html.texts if text.startswith("task-")]
        address = html.link("next")

    assert found == [f"task-{n:03}" for n in range(120)]


FILTERS = [
    ("text=REPORT", ["daily_report", "other"]),
    ("kind=http", ["other"]),
    ("queue=bulk", ["fast"]),
    ("text=100%25", []),
]


@pytest.mark.parametrize(("query", "expected"), FILTERS)
async def test_filters_narrow_the_list(page: OpenPage, pool: Pool, query: str, expected: list[str]) -> None:
    await make_task(pool, "daily_report")
    await make_task(pool, "other", name="A report by mail", execution_handler="http:GET https://example.com")
    await make_task(pool, "fast", queue="bulk")
    html = await page(f"/tasks?{query}")
    links = [a["href"].removeprefix("/tasks/") for a in html.all("a", **{"data-open": ""})]

    assert links == expected
    assert bool(expected) or "No tasks match" in html.text


@pytest.mark.parametrize("query", ["kind=exec", "cursor=%00", "text=%00", f"queue={'x' * 300}"])
async def test_a_query_that_is_none_of_ours_is_refused(ada: httpx.AsyncClient, query: str) -> None:
    assert (await ada.get(f"/tasks?{query}")).status_code == 400


async def test_rows_are_answered_as_they_are_now(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    await make_task(pool, "a.b")
    await make_task(pool, "gone")
    [rows] = [found["hx-get"] for found in (await page("/tasks")).all("tbody")]
    await pool.execute("UPDATE onthedot.tasks SET name = 'renamed' WHERE task_id = 'a.b'")
    await pool.execute("DELETE FROM onthedot.tasks WHERE task_id = 'gone'")
    answer = Html((await ada.get(rows, headers={"HX-Request": "true"})).text)

    assert [part["hx-target"] for part in answer.all("hx-partial")] == ["#row-aDb", "#row-gone"]
    assert {"renamed", "This task was deleted."} <= set(answer.texts)


async def test_a_task_shows_what_its_parameters_may_be(page: OpenPage, pool: Pool) -> None:
    schema = {
        "type": "object",
        "required": ["version"],
        "additionalProperties": False,
        "properties": {
            "version": {"type": "string", "description": "What to roll out"},
            "region": {"enum": ["EU", "US"], "default": "EU"},
            "window": {"type": "object", "properties": {"hours": {"type": "integer", "minimum": 1}}},
        },
    }
    await make_task(pool, parameter_schema=_json(schema))
    html = await page("/tasks/report")

    assert {"version", "string", "required", "What to roll out", "no others"} <= set(html.texts)
    assert {"region", '"EU"', '"US"', "window.hours", "≥ 1"} <= set(html.texts)
    assert [text for text in html.texts if "additionalProperties" in text]


async def test_a_task_shows_its_failures_its_jobs_and_its_changes(page: OpenPage, pool: Pool) -> None:
    await make_task(pool)
    job_id = await make_job(pool, name="Nightly", user_id="ada")
    failed = await make_finished(pool, job_id=job_id, status="FAILED")
    await make_finished(pool, task_id="another", status="FAILED")
    await pool.execute("UPDATE onthedot.tasks SET queue = 'bulk' WHERE task_id = 'report'")
    html = await page("/tasks/report")

    assert {"RuntimeError: no", "Nightly", "by ada", "every minute", "changed", "general", "bulk"} <= set(
        html.texts
    )
    assert [a["href"] for a in html.all("a") if a["href"].startswith("/executions/")] == [
        f"/executions/{failed}"
    ]
    assert html.all("a", href=f"/jobs/{job_id}")


async def test_the_jobs_of_a_task_are_paged(page: OpenPage, pool: Pool) -> None:
    await make_task(pool)
    now = await now_of(pool)
    jobs = [job_row(now, name=f"job-{n:02}", created_at=now - timedelta(seconds=n)) for n in range(45)]
    await insert(pool, "jobs", [*jobs, job_row(now, name="job-of-another", task_id="another")])
    found, address = [], "/tasks/report"
    while address:
        html = await page(address)
        found += [text for text in html.texts if text.startswith("job-")]
        address = (html.link("next") or "").replace("&amp;", "&")

    assert found == [f"job-{n:02}" for n in range(45)]


@pytest.mark.parametrize(("over", "completed"), [("24h", 2), ("7d", 5), ("30d", 9)])
async def test_how_runs_went_is_counted_over_what_is_asked_for(
    page: OpenPage, pool: Pool, over: str, completed: int
) -> None:
    await make_task(pool)
    for days_ago, count in ((0, 2), (3, 3), (20, 4), (40, 5)):
        await _count(pool, "report", completed=count, days_ago=days_ago)
    html = await page(f"/tasks/report?over={over}")

    assert f"{completed} completed" in html.texts
    assert html.all("a", href=f"/tasks/report?over={over}", **{"aria-current": "true"})
    assert html.all("section", **{"hx-get": f"/tasks/report/activity?over={over}"})


async def test_how_runs_went_is_answered_alone(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool)
    await make_finished(pool, job_id=await make_job(pool), status="FAILED")
    answer = await ada.get("/tasks/report/activity?over=7d", headers={"HX-Request": "true"})

    assert answer.text.lstrip().startswith('<section id="activity"')
    assert "RuntimeError: no" in Html(answer.text).texts


@pytest.mark.parametrize("path", ["", "/activity", "/edit", "/try", "/delete"])
async def test_a_task_that_is_not_there_is_not_found(ada: httpx.AsyncClient, path: str) -> None:
    assert (await ada.get(f"/tasks/nothing{path}")).status_code == 404


@pytest.mark.parametrize("task_id", ["new", "rows", "edit"])
async def test_a_task_may_be_called_like_a_page(page: OpenPage, pool: Pool, task_id: str) -> None:
    await make_task(pool, task_id, name="Called like a page")

    assert "Called like a page" in (await page(f"/tasks/{task_id}")).texts


async def test_a_task_that_is_used_cannot_be_deleted_and_says_why(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    await make_task(pool)
    await make_job(pool)
    asked = await page("/tasks/report/delete")
    answer = await send(ada, "/tasks/report/delete")

    assert "It cannot be deleted yet" in asked.texts
    assert asked.all("a", href="/jobs?task_id=report")
    assert not asked.all("form", action="/tasks/report/delete")
    assert answer.status_code == 409
    assert await pool.fetchval("SELECT true FROM onthedot.tasks WHERE task_id = 'report'")


async def test_a_task_that_no_job_uses_is_deleted(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    await make_task(pool)
    asked = await page("/tasks/report/delete")
    answer = await send(ada, "/tasks/report/delete")

    assert asked.all("form", action="/tasks/report/delete", method="post")
    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks")
    assert not await pool.fetchval("SELECT true FROM onthedot.tasks")
    assert (
        await pool.fetchval(
            "SELECT actor FROM onthedot.audit_log WHERE action = 'task.delete' ORDER BY audit_id DESC"
        )
        == "user:ada"
    )
    assert "The task report was deleted." in (await page("/tasks")).texts


VIEWERS_MAY_NOT = ["/tasks/-/new", "/tasks/report/edit", "/tasks/report/try", "/tasks/report/delete"]


@pytest.mark.parametrize("path", VIEWERS_MAY_NOT)
async def test_what_a_viewer_may_not_do_is_not_offered_and_is_refused(
    viv: httpx.AsyncClient, pool: Pool, path: str
) -> None:
    await make_task(pool)
    for address in ("/tasks", "/tasks/report"):
        html = Html((await viv.get(address)).text)
        assert [form["action"] for form in html.all("form", method="post")] == ["/logout"]
        assert not {a["href"] for a in html.all("a")} & set(VIEWERS_MAY_NOT)

    assert (await viv.get(path)).status_code == 403
    assert (
        await send(viv, path, {"task_id": "another", "execution_handler": "https://example.com"})
    ).status_code == 403
    assert await pool.fetchval("SELECT string_agg(task_id, ',') FROM onthedot.tasks") == "report"
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 0


async def _count(pool: Pool, task_id: str, *, completed: int = 0, failed: int = 0, days_ago: int = 0) -> None:
    """Write down what a task's executions came to, as the rollups do."""
    counts = (("COMPLETED", completed), ("FAILED", failed))
    rows: list[Row] = [
        {
            "grain_seconds": 900,
            "bucket": await pool.fetchval(
                "SELECT date_bin('15 min', now() - $1::interval, '2000-01-01Z')", timedelta(days=days_ago)
            ),
            "queue": "general",
            "task_id": task_id,
            "status": status,
            "executions": count,
            "late": 0,
            "lateness_ms_sum": 0.0,
            "lateness_ms_max": 0.0,
            "run_ms_sum": 10.0 * count,
        }
        for status, count in counts
        if count
    ]
    await insert(pool, "rollups", rows)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
