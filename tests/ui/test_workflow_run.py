"""`/workflow-runs/{id}`: how a run stands, its graph, its steps, and what is done to it."""

import gzip
from uuid import UUID

import httpx
import pytest

from app.db.pools import Pool
from tests.factories import begin_run, make_execution, make_finished
from tests.ui.conftest import OpenPage, Site, send
from tests.ui.parsed import Html
from tests.ui.workflows import NAME, end_step, failed_run, new_run, new_workflow

pytestmark = pytest.mark.asyncio(loop_scope="module")

MOST_HTML_BYTES = 15_000
"""Compressed."""
STATUSES = "SELECT step, status FROM onthedot.workflow_run_steps WHERE workflow_run_id = $1"


def classes(html: Html) -> dict[str, str]:
    """Return how each step is drawn, by its key."""
    cards = [a for a in html.all("a") if a.get("class", "").startswith("step-card")]
    return {a["id"].removeprefix("card-"): a["class"].removeprefix("step-card state-") for a in cards}


async def statuses(pool: Pool, run_id: UUID) -> dict[str, str]:
    return dict([tuple(row) for row in await pool.fetch(STATUSES, run_id)])


async def test_a_run_that_failed_tells_which_step_did_and_why_others_never_ran(
    page: OpenPage, site: Site
) -> None:
    run_id = await failed_run(site.pool, site.clock)
    html = await page(f"/workflow-runs/{run_id}")

    assert classes(html) == {
        "extract": "completed",
        "load": "completed",
        "check": "failed",
        "report": "skipped",
        "alarm": "completed",
    }
    assert {"Failed", "Skipped", "Completed"} <= set(html.texts)
    assert "5 of 5 steps over" in html.text.replace("\n", " ")
    assert "all_success: check FAILED" in html.text
    assert html.all("ul", **{"aria-label": "Steps that failed"})
    assert "manual" in html.text
    [region] = html.all("section", id="now")
    assert region["hx-trigger"] == "changed:definitions from:body"  # nothing changes unless somebody acts


async def test_a_run_under_way_says_what_each_step_waits_for_and_asks_for_itself_anew(
    ada: httpx.AsyncClient, page: OpenPage, site: Site
) -> None:
    run_id = await new_run(site.pool, site.clock)
    html = await page(f"/workflow-runs/{run_id}")
    [region] = [one for one in html.all("section", id="now") if "hx-get" in one]
    await end_step(site.pool, site.clock, run_id, "extract")
    now = Html((await ada.get(region["hx-get"])).text)

    assert "a worker has yet to take it" in html.text
    assert "waits for load, check" in html.text
    assert classes(html)["report"] == "blocked"
    assert classes(now)["extract"] == "completed"
    assert classes(now)["load"] == "pending"
    assert "3 pending" in now.text
    assert html.all("path", **{"class": "line line-passed"}) == []
    assert len(now.all("path", **{"class": "line line-passed"})) == 1


async def test_a_step_that_maps_is_one_card_that_leads_to_its_executions(page: OpenPage, site: Site) -> None:
    run_id = await new_run(site.pool, site.clock)
    await end_step(site.pool, site.clock, run_id, "extract")
    html = await page(f"/workflow-runs/{run_id}")
    [card] = html.all("a", id="card-load")
    step = await page(card["href"])
    pending = await page(f"{card['href']}?status=FAILED")

    assert card["href"] == f"/workflow-runs/{run_id}/steps/load"
    assert "\N{MULTIPLICATION SIGN}3" in html.texts
    assert len([row for row in step.all("tr") if "id" in row]) == 3
    assert "3 executions: 3 pending" in step.text.replace("\n", " ")
    assert "No execution is like this now" in pending.text


async def test_the_executions_of_a_step_have_pages_in_the_order_of_its_items(
    page: OpenPage, site: Site
) -> None:
    run_id = await new_run(site.pool, site.clock, {"key": "each", "map": list(range(51))})
    first = await page(f"/workflow-runs/{run_id}/steps/each")
    second = await page(str(first.link("next")))

    assert [text for text in first.texts if text.isdecimal()] == [str(i) for i in range(50)]
    assert [text for text in second.texts if text.isdecimal()] == ["50"]
    assert second.link("next") is None


async def test_a_card_of_a_step_without_an_execution_leads_to_its_row(page: OpenPage, site: Site) -> None:
    run_id = await new_run(site.pool, site.clock)
    html = await page(f"/workflow-runs/{run_id}")
    execution_id = await site.pool.fetchval(
        "SELECT execution_id FROM onthedot.executions WHERE run_key > 'w'"
    )

    assert html.all("a", id="card-report", href="#step-report")
    assert html.all("tr", id="step-report")
    assert html.all("a", id="card-extract", href=f"/executions/{execution_id}")


async def test_a_run_of_many_steps_is_a_table_alone_narrowed_and_in_pages(page: OpenPage, site: Site) -> None:
    steps = [{"key": "root"}, *({"key": f"s{i}", "depends_on": ["root"]} for i in range(400))]
    run_id = await new_run(site.pool, site.clock, *steps)
    first = await page(f"/workflow-runs/{run_id}")
    second = await page(str(first.link("next")))
    active = await page(f"/workflow-runs/{run_id}?show=active")

    assert classes(first) == {}
    assert "401 steps: too many to draw" in first.text
    assert len([row for row in first.all("tr") if "id" in row]) == 100
    assert second.all("tr", id="step-s100")
    assert [row["id"] for row in active.all("tr") if "id" in row] == ["step-root"]
    assert "?show=active" in next(one["hx-get"] for one in active.all("section", id="now"))


async def test_the_page_of_the_largest_run_is_no_larger_than_others(
    ada: httpx.AsyncClient, site: Site
) -> None:
    steps = [{"key": f"s{i}", "depends_on": [f"s{i - 50}"] if i >= 50 else []} for i in range(5000)]
    run_id = await new_run(site.pool, site.clock, *steps)
    answer = await ada.get(f"/workflow-runs/{run_id}")

    assert answer.status_code == 200
    assert len(gzip.compress(answer.content)) <= MOST_HTML_BYTES


async def test_cancelling_asks_why_and_stops_the_run(ada: httpx.AsyncClient, site: Site) -> None:
    run_id = await new_run(site.pool, site.clock)
    asked = Html((await ada.get(f"/workflow-runs/{run_id}/cancel")).text)
    answer = await send(ada, f"/workflow-runs/{run_id}/cancel", {"reason": "wrong day"})
    html = Html((await ada.get(f"/workflow-runs/{run_id}")).text)

    assert asked.all("input", name="reason")
    assert NAME in asked.text
    assert answer.headers["location"] == f"/workflow-runs/{run_id}"
    assert set(classes(html).values()) == {"cancelled"}
    assert "cancelled by ada: wrong day" in html.text
    assert "wrong day" in html.texts  # who did what
    assert (await ada.get(f"/workflow-runs/{run_id}/cancel")).status_code == 409
    assert html.all("a", href=f"/workflow-runs/{run_id}/steps/check/retry")
    assert not html.all(
        "a", href=f"/workflow-runs/{run_id}/steps/check/skip"
    )  # a run that was stopped stays so


async def test_running_again_says_first_which_steps_do(ada: httpx.AsyncClient, site: Site) -> None:
    run_id = await failed_run(site.pool, site.clock)
    asked = Html((await ada.get(f"/workflow-runs/{run_id}/retry")).text)
    answer = await send(ada, f"/workflow-runs/{run_id}/retry")

    assert "Run 3 steps again?" in asked.text
    named = [text for text in asked.texts if ", now " in text]
    assert named == ["check, now failed", "report, now skipped", "alarm, now completed"]
    assert answer.status_code == 303
    assert await statuses(site.pool, run_id) == {
        "extract": "COMPLETED",
        "load": "COMPLETED",
        "check": "RUNNING",
        "report": "BLOCKED",
        "alarm": "BLOCKED",
    }


async def test_a_run_goes_on_from_a_step(ada: httpx.AsyncClient, site: Site) -> None:
    run_id = await failed_run(site.pool, site.clock)
    asked = Html((await ada.get(f"/workflow-runs/{run_id}/steps/load/retry")).text)
    await send(ada, f"/workflow-runs/{run_id}/steps/load/retry")
    html = Html((await ada.get(f"/workflow-runs/{run_id}")).text)

    assert [text for text in asked.texts if ", now " in text] == [
        "load, now completed",
        "report, now skipped",
        "alarm, now completed",
    ]
    assert (await statuses(site.pool, run_id))["load"] == "RUNNING"
    assert "round 2" in html.texts


async def test_what_has_not_failed_cannot_be_run_again_as_a_whole(ada: httpx.AsyncClient, site: Site) -> None:
    run_id = await new_run(site.pool, site.clock)

    assert (await ada.get(f"/workflow-runs/{run_id}/retry")).status_code == 409
    assert (await send(ada, f"/workflow-runs/{run_id}/retry")).status_code == 409
    assert not Html((await ada.get(f"/workflow-runs/{run_id}")).text).all(
        "a", href=f"/workflow-runs/{run_id}/retry"
    )


async def test_a_step_is_passed_over_and_the_run_goes_on(ada: httpx.AsyncClient, site: Site) -> None:
    run_id = await failed_run(site.pool, site.clock)
    asked = Html((await ada.get(f"/workflow-runs/{run_id}/steps/check/skip")).text)
    await send(ada, f"/workflow-runs/{run_id}/steps/check/skip", {"reason": "known"})
    html = Html((await ada.get(f"/workflow-runs/{run_id}")).text)

    assert "as if it had succeeded" in asked.text
    assert (await statuses(site.pool, run_id))["check"] == "SKIPPED"
    assert (await statuses(site.pool, run_id))["report"] == "RUNNING"
    assert "passed over by ada: known" in html.text
    assert not html.all("a", href=f"/workflow-runs/{run_id}/steps/check/skip")


async def test_a_step_that_runs_is_neither_run_again_nor_passed_over(
    ada: httpx.AsyncClient, site: Site
) -> None:
    run_id = await new_run(site.pool, site.clock)
    html = Html((await ada.get(f"/workflow-runs/{run_id}")).text)

    for action in ("retry", "skip"):
        assert not html.all("a", href=f"/workflow-runs/{run_id}/steps/extract/{action}")
        answer = await send(ada, f"/workflow-runs/{run_id}/steps/extract/{action}")
        assert answer.status_code == 409


@pytest.mark.parametrize("action", ["/cancel", "/retry", "/steps/check/retry", "/steps/check/skip"])
async def test_a_viewer_is_refused(viv: httpx.AsyncClient, site: Site, action: str) -> None:
    run_id = await failed_run(site.pool, site.clock)
    before = await statuses(site.pool, run_id)

    assert (await viv.get(f"/workflow-runs/{run_id}{action}")).status_code == 403
    assert (await send(viv, f"/workflow-runs/{run_id}{action}")).status_code == 403
    assert await statuses(site.pool, run_id) == before


@pytest.mark.parametrize("path", ["", "/now", "/cancel", "/retry", "/steps/x", "/steps/x/retry"])
@pytest.mark.parametrize("run_id", ["nonsense", "7", "00000000-0000-7000-8000-000000000007"])
async def test_there_is_no_page_of_what_does_not_exist(
    ada: httpx.AsyncClient, run_id: str, path: str
) -> None:
    assert (await ada.get(f"/workflow-runs/{run_id}{path}")).status_code == 404


async def test_an_execution_that_begins_no_run_has_no_page_as_one(ada: httpx.AsyncClient, pool: Pool) -> None:
    execution_id = await make_execution(pool)

    assert (await ada.get(f"/workflow-runs/{execution_id}")).status_code == 404


@pytest.mark.parametrize("step", ["nosuch", "%3Cb%3E", "%00", "x" * 300])
@pytest.mark.parametrize("action", ["", "/now", "/retry", "/skip"])
async def test_there_is_no_page_of_a_step_that_the_run_has_not(
    ada: httpx.AsyncClient, site: Site, step: str, action: str
) -> None:
    run_id = await new_run(site.pool, site.clock)

    assert (await ada.get(f"/workflow-runs/{run_id}/steps/{step}{action}")).status_code == 404


@pytest.mark.parametrize("query", ["show=nonsense", "page=0", "page=x", "show=%00"])
async def test_a_query_that_means_nothing_is_refused(ada: httpx.AsyncClient, site: Site, query: str) -> None:
    run_id = await new_run(site.pool, site.clock)

    assert (await ada.get(f"/workflow-runs/{run_id}?{query}")).status_code == 400


async def test_an_execution_of_a_step_leads_to_its_run_and_is_not_run_again_alone(
    page: OpenPage, site: Site
) -> None:
    run_id = await failed_run(site.pool, site.clock)
    execution_id = await site.pool.fetchval(
        "SELECT execution_id FROM onthedot.execution_history WHERE status = 'FAILED'"
    )
    html = await page(f"/executions/{execution_id}")
    listed = await page("/executions?status=FAILED")

    assert html.all("a", href=f"/workflow-runs/{run_id}")
    assert html.all("a", href=f"/workflow-runs/{run_id}#step-check")
    assert listed.all("tr", id=f"row-{execution_id}")
    for one in (html, listed):
        assert not one.all("form", action=f"/executions/{execution_id}/retry")


async def test_an_execution_that_began_a_run_leads_to_it(page: OpenPage, site: Site) -> None:
    workflow_id = await new_workflow(site.pool)
    run_id = await begin_run(site.pool, site.clock, workflow_id)
    await make_finished(site.pool, execution_id=run_id, job_id=workflow_id, task_id="onthedot.workflow")
    html = await page(f"/executions/{run_id}")

    assert html.all("a", href=f"/workflow-runs/{run_id}")
    assert html.all("a", href=f"/workflows/{workflow_id}")
