"""`/workflows`: the list."""

import re
import shlex

import httpx
import pytest

from app.db.pools import Pool
from app.domain.statuses import Status
from tests.factories import begin_run
from tests.ui.conftest import ADA_KEY, OpenPage, Site
from tests.ui.hostile import HOSTILE
from tests.ui.parsed import Html
from tests.ui.workflows import NAME, end_step, failed_run, new_workflow

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAILY = {"type": "RECURRING", "expression": "0 2 * * TUE", "timezone": "America/Los_Angeles"}


async def test_without_workflows_the_page_shows_how_to_make_one(
    page: OpenPage, ada: httpx.AsyncClient, pool: Pool
) -> None:
    html = await page("/workflows")
    [snippet] = [one["data-copy"] for one in html.all("button") if "curl" in one.get("data-copy", "")]
    for command in snippet.split("\n\n"):
        words = shlex.split(command.replace("\\\n", " ").replace("$KEY", ADA_KEY))
        address = next(word for word in words if word.startswith("http"))
        header = [words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H"]
        body = words[words.index("-d") + 1]
        answer = await ada.post(address, content=body, headers={**dict(header), "Accept": "*/*"})  # type: ignore[arg-type]
        assert answer.status_code == 201, answer.text

    assert "No workflows yet" in html.text
    assert "First workflow" in (await page("/workflows")).text
    assert await pool.fetchval("SELECT jsonb_array_length(steps) FROM onthedot.workflow_definitions") == 3


async def test_the_navigation_leads_to_workflows_between_executions_and_tasks(page: OpenPage) -> None:
    html = await page("/workflows")
    links = [(a["href"], a["data-key"]) for a in html.all("a") if a.get("data-key", "").startswith("g ")]

    assert links.index(("/workflows", "g w")) == links.index(("/executions", "g e")) + 1
    assert html.all("a", href="/workflows", **{"aria-current": "page"})


async def test_a_workflow_tells_its_schedule_its_next_run_and_that_it_has_not_run(
    page: OpenPage, pool: Pool
) -> None:
    workflow_id = await new_workflow(pool, schedule=DAILY)
    html = await page("/workflows")

    assert html.all("a", href=f"/workflows/{workflow_id}")
    assert "every Tuesday at 02:00\nAmerica/Los_Angeles" in html.text
    assert re.search(r"\nin \d+ (d|h|min)\nnever run\n5 steps", html.text)


async def test_a_run_under_way_shows_how_far_it_is(page: OpenPage, site: Site) -> None:
    workflow_id = await new_workflow(site.pool, schedule=DAILY)
    run_id = await begin_run(site.pool, site.clock, workflow_id)
    await end_step(site.pool, site.clock, run_id, "extract")
    await end_step(site.pool, site.clock, run_id, "check", status=Status.FAILED)
    html = await page("/workflows")

    assert html.all("a", href=f"/workflow-runs/{run_id}")
    assert "Running" in html.texts
    assert "3 of 5 steps" in html.text.replace("\n", " ")  # the report cannot run any more
    assert "1 failed" in html.text
    assert html.all("rect", width="60.0", **{"class": "meter-share"})


async def test_a_workflow_whose_latest_run_failed_is_failing(page: OpenPage, site: Site) -> None:
    await failed_run(site.pool, site.clock)
    text = (await page("/workflows")).text

    assert "Failing" in text
    assert "Failed" in text


async def test_rows_are_answered_as_they_are_now(ada: httpx.AsyncClient, page: OpenPage, site: Site) -> None:
    workflow_id = await new_workflow(site.pool)
    [body] = [one for one in (await page("/workflows")).all("tbody") if "hx-get" in one]
    await begin_run(site.pool, site.clock, workflow_id)
    newer = await new_workflow(site.pool, name="a newer one")
    rows = Html((await ada.get(body["hx-get"])).text)

    assert [one["hx-target"] for one in rows.all("hx-partial")] == [f"#row-{workflow_id}", "#news"]
    assert "Running" in rows.texts
    assert "1 new" in rows.text
    assert str(newer) not in rows.text


async def test_a_deleted_workflow_is_gone_from_its_row(
    ada: httpx.AsyncClient, page: OpenPage, site: Site
) -> None:
    workflow_id = await new_workflow(site.pool)
    [body] = [one for one in (await page("/workflows")).all("tbody") if "hx-get" in one]
    await site.pool.execute("DELETE FROM onthedot.jobs WHERE job_id = $1", workflow_id)
    rows = Html((await ada.get(body["hx-get"])).text)

    assert "This workflow was deleted." in rows.text


async def test_long_lists_have_pages(page: OpenPage, pool: Pool) -> None:
    for i in range(51):
        await new_workflow(pool, {"key": "only"}, name=f"number {i:02}")
    first = await page("/workflows")
    second = await page(str(first.link("next")))

    assert "number 50" in first.texts
    assert "number 00" not in first.texts
    assert "number 00" in second.texts
    assert second.link("next") is None


@pytest.mark.parametrize("name", HOSTILE)
async def test_names_stay_text(ada: httpx.AsyncClient, site: Site, name: str) -> None:
    workflow_id = await new_workflow(site.pool, {"key": "only"}, name=name)
    run_id = await begin_run(site.pool, site.clock, workflow_id)
    for path in ("/workflows", f"/workflows/{workflow_id}", f"/workflow-runs/{run_id}"):
        answer = await ada.get(path)
        html = Html(answer.text)

        assert html.inline_code() == []
        assert name in html.texts
        assert not html.all("img", src="x")
        assert not html.all("a", **{"hx-get": "/logout"})


async def test_a_viewer_is_offered_no_action(viv: httpx.AsyncClient, site: Site) -> None:
    workflow_id = await new_workflow(site.pool)
    run_id = await failed_run(site.pool, site.clock)
    for path in ("/workflows", f"/workflows/{workflow_id}", f"/workflow-runs/{run_id}"):
        html = Html((await viv.get(path)).text)

        assert NAME in html.text
        assert [form["action"] for form in html.all("form", method="post")] == ["/logout"]
        assert not any(
            a["href"].endswith(("/pause", "/delete", "/cancel", "/retry", "/skip")) for a in html.all("a")
        )


@pytest.mark.parametrize("path", ["/workflows?cursor=nonsense", "/workflows/rows?ids=nonsense"])
async def test_an_address_that_means_nothing_is_refused(ada: httpx.AsyncClient, path: str) -> None:
    assert (await ada.get(path)).status_code == 400
