"""`/workflows/{id}`: its graph, its steps, its runs, and what is done to it."""

from uuid import UUID

import httpx
import pytest

from app.db.pools import Pool
from app.domain.statuses import Status
from tests.factories import begin_run, make_job
from tests.ui.conftest import OpenPage, Site, send
from tests.ui.parsed import Html
from tests.ui.workflows import NAME, end_step, failed_run, new_workflow

pytestmark = pytest.mark.asyncio(loop_scope="module")

TABS = ["", "/steps", "/changes", "/api"]
ACTIONS = ["/run", "/pause", "/resume", "/delete"]


@pytest.mark.parametrize("tab", TABS)
async def test_every_tab_draws_the_steps_and_what_each_comes_after(
    page: OpenPage, pool: Pool, tab: str
) -> None:
    workflow_id = await new_workflow(pool)
    html = await page(f"/workflows/{workflow_id}{tab}")
    cards = [a for a in html.all("a") if a.get("class", "").startswith("step-card")]

    assert {a["id"] for a in cards} == {
        f"card-{key}" for key in ("extract", "load", "check", "report", "alarm")
    }
    assert all(a["href"].startswith(f"/workflows/{workflow_id}/steps#step-") for a in cards)
    assert [a["tabindex"] for a in cards].count("0") == 1
    assert len(html.all("path", **{"class": "line"})) == 3  # of extract, load and check
    assert html.inline_code() == []


async def test_the_table_of_steps_has_all_that_the_graph_has(page: OpenPage, pool: Pool) -> None:
    workflow_id = await new_workflow(
        pool,
        {"key": "first", "parameters": {"day": "<today>"}},
        {"key": "second", "depends_on": ["first"], "when": "all_done", "map": [1, 2], "max_retries": 7},
    )
    html = await page(f"/workflows/{workflow_id}/steps")

    assert [row["id"] for row in html.all("tr") if "id" in row] == ["step-first", "step-second"]
    assert html.all("a", href="#step-first")
    assert "all before it are over" in html.text
    assert "once for each item" in html.text
    assert "retries\n7" in html.text
    assert '"day": "<today>"' in html.text


async def test_more_steps_than_an_eye_can_follow_are_a_table_alone_in_pages(
    page: OpenPage, pool: Pool
) -> None:
    workflow_id = await new_workflow(pool, *({"key": f"s{i}"} for i in range(301)))
    first = await page(f"/workflows/{workflow_id}/steps")
    second = await page(str(first.link("next")))

    assert not first.all("path", **{"class": "line"})
    assert "301 steps: too many to draw" in first.text
    assert first.all("tr", id="step-s99")
    assert not first.all("tr", id="step-s100")
    assert second.all("tr", id="step-s100")


async def test_its_runs_are_listed_the_newest_first_each_with_how_far_it_is(
    page: OpenPage, site: Site
) -> None:
    workflow_id = await new_workflow(site.pool)
    older = await begin_run(site.pool, site.clock, workflow_id)
    await end_step(site.pool, site.clock, older, "extract", status=Status.FAILED)
    await end_step(site.pool, site.clock, older, "alarm")
    newer = await begin_run(site.pool, site.clock, workflow_id, trigger="schedule")
    html = await page(f"/workflows/{workflow_id}")

    assert [row["id"] for row in html.all("tr") if "id" in row] == [f"row-{newer}", f"row-{older}"]
    assert html.all("a", href=f"/workflow-runs/{newer}")
    assert "0 of 5 steps" in html.text.replace("\n", " ")
    assert html.all("a", href=f"/workflow-runs/{older}/retry")
    assert html.all("a", href=f"/workflow-runs/{newer}/cancel")


async def test_its_runs_are_narrowed_by_status_and_have_pages(page: OpenPage, site: Site) -> None:
    workflow_id = await new_workflow(site.pool, {"key": "only"})
    runs = [await begin_run(site.pool, site.clock, workflow_id) for _ in range(51)]
    await end_step(site.pool, site.clock, runs[0], "only", status=Status.FAILED)
    first = await page(f"/workflows/{workflow_id}")
    second = await page(str(first.link("next")))
    failed = await page(f"/workflows/{workflow_id}?status=FAILED")

    assert len([row for row in first.all("tr") if "id" in row]) == 50
    assert [row["id"] for row in second.all("tr") if "id" in row] == [f"row-{runs[0]}"]
    assert [row["id"] for row in failed.all("tr") if "id" in row] == [f"row-{runs[0]}"]
    assert "No runs match" in (await page(f"/workflows/{workflow_id}?status=CANCELLED")).text


async def test_runs_under_way_are_answered_as_they_are_now(
    ada: httpx.AsyncClient, page: OpenPage, site: Site
) -> None:
    workflow_id = await new_workflow(site.pool, {"key": "only"})
    run_id = await begin_run(site.pool, site.clock, workflow_id)
    [body] = [one for one in (await page(f"/workflows/{workflow_id}")).all("tbody") if "hx-get" in one]
    await end_step(site.pool, site.clock, run_id, "only")
    await begin_run(site.pool, site.clock, workflow_id)
    rows = Html((await ada.get(body["hx-get"])).text)

    assert [one["hx-target"] for one in rows.all("hx-partial")] == [f"#row-{run_id}", "#news"]
    assert "Completed" in rows.texts
    assert "1 new" in rows.text


async def test_running_it_leads_to_its_run(ada: httpx.AsyncClient, pool: Pool) -> None:
    workflow_id = await new_workflow(pool, schedule={"type": "INTERVAL", "every": 86_400})
    answer = await send(ada, f"/workflows/{workflow_id}/run")
    html = Html((await ada.get(answer.headers["location"])).text)
    run_id = await pool.fetchval("SELECT execution_id FROM onthedot.executions WHERE trigger = 'manual'")
    begun = await ada.get(f"/workflow-runs/{run_id}")

    assert answer.headers["location"] == f"/workflows/{workflow_id}"
    assert html.all("a", href=f"/workflow-runs/{run_id}")
    assert begun.headers["location"] == f"/executions/{run_id}"  # no worker has begun it


async def test_pausing_asks_why_and_resuming_goes_on(ada: httpx.AsyncClient, pool: Pool) -> None:
    workflow_id = await new_workflow(pool, schedule={"type": "INTERVAL", "every": 86_400})
    asked = Html((await ada.get(f"/workflows/{workflow_id}/pause")).text)
    paused = await send(ada, f"/workflows/{workflow_id}/pause", {"reason": "stock-taking"})
    html = Html((await ada.get(f"/workflows/{workflow_id}")).text)
    resumed = await send(ada, f"/workflows/{workflow_id}/resume")

    assert asked.all("input", name="reason")
    assert asked.all("input", name="until")
    assert NAME in asked.text
    assert (paused.status_code, resumed.status_code) == (303, 303)
    assert "Paused by\nada" in html.text
    assert "stock-taking" in html.text
    assert await pool.fetchval("SELECT is_active FROM onthedot.jobs WHERE job_id = $1", workflow_id)


@pytest.mark.parametrize(("field", "value"), [("until", "yesterday"), ("reason", "x" * 1001)])
async def test_what_does_not_fit_is_asked_for_again(
    ada: httpx.AsyncClient, pool: Pool, field: str, value: str
) -> None:
    workflow_id = await new_workflow(pool)
    answer = await send(ada, f"/workflows/{workflow_id}/pause", {field: value})

    assert answer.status_code == 400
    assert Html(answer.text).all("input", name=field, **{"aria-invalid": "true"})
    assert await pool.fetchval("SELECT is_active FROM onthedot.jobs WHERE job_id = $1", workflow_id)


async def test_deleting_it_leads_to_the_list(ada: httpx.AsyncClient, pool: Pool) -> None:
    workflow_id = await new_workflow(pool)
    asked = Html((await ada.get(f"/workflows/{workflow_id}/delete")).text)
    answer = await send(ada, f"/workflows/{workflow_id}/delete")

    assert "those under way go on" in asked.text
    assert answer.headers["location"] == "/workflows"
    assert (await ada.get(f"/workflows/{workflow_id}")).status_code == 404


async def test_who_changed_it_stands_on_its_page(ada: httpx.AsyncClient, pool: Pool) -> None:
    workflow_id = await new_workflow(pool)
    await send(ada, f"/workflows/{workflow_id}/pause", {"reason": "stock-taking"})
    html = Html((await ada.get(f"/workflows/{workflow_id}/changes")).text)

    assert "ada" in html.texts
    assert "stock-taking" in html.text


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_viewer_is_refused(viv: httpx.AsyncClient, pool: Pool, action: str) -> None:
    workflow_id = await new_workflow(pool, schedule={"type": "INTERVAL", "every": 86_400})
    before = await pool.fetchrow("SELECT is_active, version FROM onthedot.jobs")
    answer = await send(viv, f"/workflows/{workflow_id}{action}")

    assert answer.status_code == 403
    assert await pool.fetchrow("SELECT is_active, version FROM onthedot.jobs") == before
    assert not await pool.fetchval("SELECT true FROM onthedot.executions WHERE trigger = 'manual'")


@pytest.mark.parametrize("path", ["", "/steps", "/changes", "/api", "/state", "/pause", "/delete"])
@pytest.mark.parametrize("workflow_id", ["nonsense", "7", "00000000-0000-7000-8000-000000000007"])
async def test_there_is_no_page_of_what_does_not_exist(
    ada: httpx.AsyncClient, workflow_id: str, path: str
) -> None:
    assert (await ada.get(f"/workflows/{workflow_id}{path}")).status_code == 404


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_job_that_is_no_workflow_has_no_page_here(
    ada: httpx.AsyncClient, pool: Pool, action: str
) -> None:
    job_id: UUID = await make_job(pool)

    assert (await ada.get(f"/workflows/{job_id}")).status_code == 404
    assert (await send(ada, f"/workflows/{job_id}{action}")).status_code == 404
    assert await pool.fetchval("SELECT is_active FROM onthedot.jobs WHERE job_id = $1", job_id)


async def test_its_job_leads_to_it(page: OpenPage, site: Site) -> None:
    await failed_run(site.pool, site.clock)
    workflow_id = await site.pool.fetchval("SELECT workflow_id FROM onthedot.workflow_runs")
    html = await page(f"/jobs/{workflow_id}")

    assert html.all("a", href=f"/workflows/{workflow_id}")
    assert not [
        form
        for form in html.all("form", method="post")
        if "/executions/" in form["action"] and form["action"].endswith("/retry")
    ]
