"""What is done to jobs: one, or those that are selected."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import httpx
import pytest

from app.db.pools import Pool
from tests.factories import make_execution, make_job, make_task
from tests.ui.conftest import OpenPage, send
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")


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


async def test_a_pause_may_end_by_itself_at_a_time_of_the_pages_zone(
    ada: httpx.AsyncClient, pool: Pool
) -> None:
    job_id = await _runnable(pool)
    ada.cookies.set("onthedot_zone", "Europe/Berlin")
    asked = Html((await ada.get(f"/jobs/{job_id}/pause")).text)
    await send(ada, f"/jobs/{job_id}/pause", {"until": "2130-01-31T09:00"})

    assert asked.all("input", name="until", type="datetime-local")
    assert "Europe/Berlin" in asked.text
    assert await pool.fetchval("SELECT paused_until FROM onthedot.jobs") == datetime(
        2130, 1, 31, 8, tzinfo=UTC
    )


REFUSED = [
    ({"until": "2001-01-01T00:00"}, "until", "lies in the past"),
    ({"until": "tomorrow"}, "until", "is not a time"),
    ({"reason": "x" * 1001}, "reason", "at most 1,000 characters"),
]


@pytest.mark.parametrize(("fields", "name", "words"), REFUSED)
@pytest.mark.parametrize("path", ["/jobs/{job}/pause", "/jobs/actions/pause"])
async def test_a_refused_pause_is_asked_again_with_what_is_wrong_beside_its_field(
    ada: httpx.AsyncClient, pool: Pool, fields: dict[str, str], name: str, words: str, path: str
) -> None:
    job_id = await _runnable(pool, name="Nightly")
    sent = {"ids": str(job_id), "confirmed": "1", "next": "/jobs?task_id=report", "reason": "why"} | fields
    answer = await send(ada, path.format(job=job_id), sent)
    html = Html(answer.text)

    assert answer.status_code == 400
    assert html.all("input", name=name, **{"aria-invalid": "true"})
    assert [text for text in html.texts if words in text]
    assert html.all("input", name="reason", value=sent["reason"])
    assert html.all("input", name="next", value="/jobs?task_id=report")
    assert "Nightly" in html.texts
    assert await pool.fetchval("SELECT is_active FROM onthedot.jobs")


async def test_a_job_is_deleted_after_a_question(ada: httpx.AsyncClient, pool: Pool) -> None:
    job_id, other = await _runnable(pool, name="Nightly"), await _runnable(pool)
    await make_execution(pool, job_id=job_id, status="RUNNING", due_in_seconds=-1)
    asked = Html((await ada.get(f"/jobs/{job_id}/delete")).text)
    answer = await send(ada, f"/jobs/{job_id}/delete", {"next": "/jobs?task_id=report"})
    left = await pool.fetch("SELECT job_id FROM onthedot.jobs")

    assert "Nightly" in asked.texts
    assert asked.all("button", type="submit", **{"class": "button button-danger"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?task_id=report")
    assert [row[0] for row in left] == [other]
    assert "Deleted. 1 of its executions had begun and go on." in Html((await ada.get("/jobs")).text).texts


@pytest.mark.parametrize(("headers", "leads"), [({}, "location"), ({"HX-Request": "true"}, "hx-redirect")])
async def test_from_the_page_of_a_deleted_job_it_goes_to_the_list(
    ada: httpx.AsyncClient, pool: Pool, headers: dict[str, str], leads: str
) -> None:
    job_id = await _runnable(pool)
    answer = await send(ada, f"/jobs/{job_id}/delete", {"next": f"/jobs/{job_id}/changes"}, **headers)

    assert answer.headers[leads] == "/jobs"
    assert "Deleted." in Html((await ada.get("/jobs")).text).texts


async def test_selected_jobs_are_deleted_after_a_question(ada: httpx.AsyncClient, pool: Pool) -> None:
    ids = [await _runnable(pool, name=f"job-{n}") for n in range(3)]
    await _runnable(pool, name="kept")
    chosen = {"ids": [str(one) for one in ids]}
    asked = await send(ada, "/jobs/actions/delete", chosen)
    untouched = await pool.fetchval("SELECT count(*) FROM onthedot.jobs")
    await send(ada, "/jobs/actions/delete", chosen | {"confirmed": "1"})

    assert "Delete 3 jobs?" in Html(asked.text).texts
    assert untouched == 4
    assert await pool.fetchval("SELECT name FROM onthedot.jobs") == "kept"


@pytest.mark.parametrize("path", ["run", "pause", "resume", "delete"])
async def test_an_action_on_a_job_that_is_gone_says_so(ada: httpx.AsyncClient, path: str) -> None:
    answer = await send(ada, f"/jobs/{uuid4()}/{path}")

    assert answer.status_code == 404
    assert "there is no job" in Html(answer.text).text


async def test_who_acts_stands_in_the_audit_log(ada: httpx.AsyncClient, pool: Pool) -> None:
    job_id = await _runnable(pool)
    answers = [await send(ada, f"/jobs/{job_id}/{verb}") for verb in ("pause", "resume", "run", "delete")]
    found = await pool.fetch(
        "SELECT action, actor, client, request_id FROM onthedot.audit_log WHERE target_id = $1 ORDER BY audit_id",
        str(job_id),
    )

    actions = ("job.update", "job.update", "job.run", "job.delete")
    assert [tuple(row) for row in found if row["action"] != "job.create"] == [
        (action, "user:ada", "dashboard 127.0.0.1", answer.headers["x-request-id"])
        for action, answer in zip(actions, answers, strict=True)
    ]


VERBS = ["run", "pause", "resume", "delete"]
VIEWERS_MAY_NOT = [f"/jobs/{which}/{verb}" for which in ("{job}", "actions") for verb in VERBS]


@pytest.mark.parametrize("path", VIEWERS_MAY_NOT)
async def test_what_a_viewer_may_not_do_is_not_offered_and_is_refused(
    viv: httpx.AsyncClient, pool: Pool, path: str
) -> None:
    job_id = await _runnable(pool, name="Nightly")
    html = Html((await viv.get("/jobs")).text)
    its_page = Html((await viv.get(f"/jobs/{job_id}")).text)
    answer = await send(viv, path.format(job=job_id), {"ids": str(job_id), "confirmed": "1"})

    assert "Nightly" in html.texts
    assert [form["action"] for form in html.all("form", method="post")] == ["/logout"]
    assert [form["action"] for form in its_page.all("form", method="post")] == ["/logout"]
    assert not html.all("input", name="ids")
    assert not [
        link for link in (*html.all("a"), *its_page.all("a")) if link["href"].endswith(("/edit", "/new"))
    ]
    assert answer.status_code == 403
    assert await _executions_of(pool, job_id) == 0
    assert await pool.fetchval("SELECT is_active FROM onthedot.jobs WHERE job_id = $1", job_id)


@pytest.mark.parametrize("verb", ["pause", "delete"])
async def test_a_viewer_is_not_even_asked(viv: httpx.AsyncClient, pool: Pool, verb: str) -> None:
    assert (await viv.get(f"/jobs/{await _runnable(pool)}/{verb}")).status_code == 403


async def _runnable(pool: Pool, **columns: object) -> UUID:
    if not await pool.fetchval("SELECT true FROM onthedot.tasks WHERE task_id = 'report'"):
        await make_task(pool)
    return await make_job(pool, **columns)


async def _executions_of(pool: Pool, job_id: UUID) -> int:
    count: int = await pool.fetchval(
        "SELECT count(*) FROM onthedot.executions WHERE job_id = $1 AND trigger = 'manual'", job_id
    )
    return count
