"""`/jobs`: the list and its actions."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import httpx
import pytest

from app.db.pools import Pool
from tests.factories import Row, insert, job_row, make_job, make_task, now_of
from tests.ui.conftest import OpenPage, send
from tests.ui.hostile import HOSTILE
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOT_RECURRING: Row = {"every_seconds": None, "starts_at": None, "materialize_at": None}
SCHEDULES = [
    ({"schedule_type": "IMMEDIATE"}, "immediately"),
    (
        {"schedule_type": "RECURRING", "expression": "0 2 * * TUE", "timezone": "America/Los_Angeles"},
        "0 2 * * TUE\nAmerica/Los_Angeles",
    ),
    ({"schedule_type": "INTERVAL", "every_seconds": 5400.0}, "every 1 h 30 min"),
]


async def test_without_jobs_the_page_says_how_to_begin(page: OpenPage) -> None:
    html = await page("/jobs")

    assert "No jobs yet" in html.text
    assert html.all("a", href="/")


@pytest.mark.parametrize(("columns", "words"), SCHEDULES)
async def test_a_job_tells_its_schedule_in_words(
    page: OpenPage, pool: Pool, columns: Row, words: str
) -> None:
    anchor = {"starts_at": await now_of(pool)} if "every_seconds" in columns else {}
    await make_job(pool, **(NOT_RECURRING | anchor | columns))

    assert words in (await page("/jobs")).text


async def test_a_job_that_runs_once_tells_when(page: OpenPage, pool: Pool) -> None:
    at = await now_of(pool) + timedelta(hours=2, seconds=30)
    await make_job(pool, schedule_type="ONCE", scheduled_time=at, **NOT_RECURRING)
    text = (await page("/jobs")).text

    assert f"once at\n{at:%Y-%m-%d %H:%M:%S} UTC" in text
    assert "in 2 h" in text


async def test_a_paused_job_shows_no_next_run_but_why(page: OpenPage, pool: Pool) -> None:
    await make_job(pool, is_active=False, pause_reason="Waiting for the migration", materialize_at=None)
    html = await page("/jobs")

    assert "Paused" in html.texts
    assert html.all("span", title="Waiting for the migration")
    assert not [text for text in html.texts if text.startswith("in ")]


async def test_a_job_without_a_name_goes_by_its_task(page: OpenPage, pool: Pool) -> None:
    await make_job(pool, name=None, task_id="nightly_report", user_id="ada")
    await make_job(pool, name="Nightly", task_id="nightly_report", user_id="ada")
    texts = (await page("/jobs")).texts

    assert "nightly_report" in texts
    assert "nightly_report · by ada" in texts


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_stay_text(page: OpenPage, pool: Pool, name: str) -> None:
    await make_job(pool, name=name, task_id=name, user_id=name, timezone_requested=name)
    html = await page("/jobs")

    assert html.texts.count(name) == 1
    assert html.all("bdi", title=name)
    assert html.inline_code() == []
    assert not [tag for tag, found in html.elements if tag == "script" and "src" not in found]
    assert not [found for _, found in html.elements if found.get("hx-get") == "/logout"]
    assert [img["src"] for img in html.all("img")] == [img["src"] for img in html.all("img", alt="")]


async def test_pages_reach_every_job_once(page: OpenPage, pool: Pool) -> None:
    now = await now_of(pool)
    # Some share their instant, as the jobs of a batch do.
    await insert(pool, "jobs", [_job(now, n, seconds_ago=n // 7) for n in range(120)])
    found, address = [], "/jobs"
    while address:
        html = await page(address)
        found += [text for text in html.texts if text.startswith("job-")]
        address = html.link("next")

    assert sorted(found) == [f"job-{n:03}" for n in range(120)]


async def test_a_filter_narrows_the_list_and_stands_in_the_address(page: OpenPage, pool: Pool) -> None:
    now = await now_of(pool)
    mine = [_job(now, n, seconds_ago=n) | {"task_id": "mine"} for n in range(60)]
    await insert(pool, "jobs", [*mine, _job(now, 99, seconds_ago=99)])
    html = await page("/jobs?task_id=mine&user_id=")

    assert "job-099" not in html.texts
    assert html.all("input", name="task_id", value="mine")
    assert html.all("a", href="/jobs", title="Remove this filter")
    assert (html.link("next") or "").startswith("/jobs?task_id=mine&cursor=")


async def test_a_filter_that_finds_nothing_says_which_and_offers_the_way_back(
    page: OpenPage, pool: Pool
) -> None:
    await make_job(pool)
    html = await page("/jobs?task_id=nothing")

    assert "No jobs match" in html.text
    assert {"task:", "nothing"} <= set(html.texts)
    assert html.all("a", href="/jobs")


@pytest.mark.parametrize("query", ["cursor=garbage", "cursor=%00", "task_id=%00", f"user_id={'x' * 300}"])
async def test_a_query_that_is_none_of_ours_gets_a_page_that_says_so(
    ada: httpx.AsyncClient, query: str
) -> None:
    answer = await ada.get(f"/jobs?{query}")

    assert answer.status_code == 400
    assert Html(answer.text).all("a", href="/")


async def test_running_a_job_leads_back_and_says_so_once(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    job_id = await _runnable(pool)
    answer = await send(ada, f"/jobs/{job_id}/run", {"next": "/jobs?task_id=report"})
    first, second = await page("/jobs"), await page("/jobs")

    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?task_id=report")
    assert await _executions_of(pool, job_id) == 1
    assert "Started." in first.texts
    assert "Started." not in second.texts


async def test_a_script_is_answered_with_the_message_alone(ada: httpx.AsyncClient, pool: Pool) -> None:
    job_id = await _runnable(pool)
    answer = await send(ada, f"/jobs/{job_id}/run", **{"HX-Request": "true"})

    assert (answer.status_code, answer.headers["hx-trigger"]) == (200, "done")
    assert answer.text.startswith('<hx-partial hx-target="#toasts"')
    assert await _executions_of(pool, job_id) == 1


async def test_pausing_asks_why_and_resuming_does_not(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    job_id = await _runnable(pool, name="Nightly")
    asked = await page(f"/jobs/{job_id}/pause")
    paused = await send(ada, f"/jobs/{job_id}/pause", {"reason": " the migration "})
    row = await pool.fetchrow("SELECT is_active, pause_reason FROM onthedot.jobs")
    resumed = await send(ada, f"/jobs/{job_id}/resume")

    assert "Nightly" in asked.texts
    assert asked.all("input", name="reason")
    assert asked.all("form", action=f"/jobs/{job_id}/pause", method="post")
    assert (paused.status_code, tuple(row or ())) == (303, (False, "the migration"))
    assert resumed.status_code == 303
    assert await pool.fetchval("SELECT is_active FROM onthedot.jobs")


@pytest.mark.parametrize("next_page", ["//evil.example", "https://evil.example/", "/\\evil.example"])
async def test_an_action_leads_to_no_other_site(ada: httpx.AsyncClient, pool: Pool, next_page: str) -> None:
    answer = await send(ada, f"/jobs/{await _runnable(pool)}/run", {"next": next_page})

    assert answer.headers["location"] == "/"


async def test_a_bulk_action_names_what_it_concerns_before_it_is_carried_out(
    ada: httpx.AsyncClient, pool: Pool
) -> None:
    ids = [await _runnable(pool, name=f"job-{n}") for n in range(7)]
    await _runnable(pool, name="not this one")
    chosen = {"ids": [str(one) for one in ids], "next": "/jobs"}
    asked = await send(ada, "/jobs/actions/pause", chosen)
    untouched = await pool.fetchval("SELECT bool_and(is_active) FROM onthedot.jobs")
    html = Html(asked.text)
    hidden = {found["value"] for found in html.all("input", name="ids")}
    carried = await send(ada, "/jobs/actions/pause", chosen | {"confirmed": "1", "reason": "why"})

    assert untouched
    assert "Pause 7 jobs?" in html.texts
    assert "and 2 more" in html.texts
    assert hidden == set(chosen["ids"])
    assert carried.status_code == 303
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs WHERE pause_reason = 'why'") == 7
    assert "7 jobs paused." in Html((await ada.get("/jobs")).text).texts


async def test_of_a_bulk_action_what_fails_stops_no_other(ada: httpx.AsyncClient, pool: Pool) -> None:
    ids = [str(uuid4()), str(await _runnable(pool))]
    await send(ada, "/jobs/actions/run", {"ids": ids, "confirmed": "1"})

    assert f"1 job started. 1 not: there is no job {ids[0]}" in Html((await ada.get("/jobs")).text).texts


@pytest.mark.parametrize(
    "ids", [[], ["no id"], [str(uuid4()) for _ in range(201)]], ids=["none", "no id", "many"]
)
async def test_a_selection_that_is_none_is_refused(ada: httpx.AsyncClient, ids: list[str]) -> None:
    assert (await send(ada, "/jobs/actions/run", {"ids": ids})).status_code == 400


async def test_rows_are_answered_as_they_are_now(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    kept, deleted = await _runnable(pool, name="kept"), await _runnable(pool, name="deleted")
    [rows] = [found["hx-get"] for found in (await page("/jobs")).all("tbody")]
    await pool.execute("UPDATE onthedot.jobs SET name = 'renamed' WHERE job_id = $1", kept)
    await pool.execute("DELETE FROM onthedot.jobs WHERE job_id = $1", deleted)
    await make_job(pool, name="new")
    answer = Html((await ada.get(rows, headers={"HX-Request": "true"})).text)

    assert {part["hx-target"] for part in answer.all("hx-partial")} == {
        f"#row-{kept}",
        f"#row-{deleted}",
        "#news",
    }
    assert {"renamed", "This job was deleted.", "1 new"} <= set(answer.texts)
    assert "new" not in answer.texts


VIEWERS_MAY_NOT = ["/jobs/{job}/run", "/jobs/{job}/pause", "/jobs/{job}/resume", "/jobs/actions/run",
                   "/jobs/actions/pause", "/jobs/actions/resume"]  # fmt: skip


@pytest.mark.parametrize("path", VIEWERS_MAY_NOT)
async def test_what_a_viewer_may_not_do_is_not_offered_and_is_refused(
    viv: httpx.AsyncClient, pool: Pool, path: str
) -> None:
    job_id = await _runnable(pool, name="Nightly")
    html = Html((await viv.get("/jobs")).text)
    answer = await send(viv, path.format(job=job_id), {"ids": str(job_id), "confirmed": "1"})

    assert "Nightly" in html.texts
    assert [form["action"] for form in html.all("form", method="post")] == ["/logout"]
    assert not html.all("input", name="ids")
    assert answer.status_code == 403
    assert await _executions_of(pool, job_id) == 0


async def test_a_viewer_is_not_even_asked(viv: httpx.AsyncClient, pool: Pool) -> None:
    assert (await viv.get(f"/jobs/{await _runnable(pool)}/pause")).status_code == 403


def _job(now: datetime, number: int, *, seconds_ago: int) -> Row:
    return job_row(now, name=f"job-{number:03}", created_at=now - timedelta(seconds=seconds_ago))


async def _runnable(pool: Pool, **columns: object) -> UUID:
    if not await pool.fetchval("SELECT true FROM onthedot.tasks WHERE task_id = 'report'"):
        await make_task(pool)
    return await make_job(pool, **columns)


async def _executions_of(pool: Pool, job_id: UUID) -> int:
    count: int = await pool.fetchval(
        "SELECT count(*) FROM onthedot.executions WHERE job_id = $1 AND trigger = 'manual'", job_id
    )
    return count
