"""`/executions`: the list."""

import json
import re

import httpx
import pytest

from app.db.pools import Pool
from app.domain.statuses import FINAL, Status
from tests.factories import (
    execution_row,
    finished_row,
    insert,
    make_execution,
    make_finished,
    make_job,
    make_task,
    now_of,
)
from tests.ui.conftest import OpenPage, send
from tests.ui.hostile import HOSTILE
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_before_anything_has_run_the_page_says_what_will_be_here(page: OpenPage) -> None:
    assert "Nothing has run yet" in (await page("/executions")).text


async def test_a_failed_execution_shows_what_happened(page: OpenPage, pool: Pool) -> None:
    error = _error(type="ValueError", message="no such region\nmore")
    await make_finished(
        pool, status=Status.FAILED, error=error, attempt_number=3, lateness_ms=12.3, task_id="deploy"
    )
    html = await page("/executions")

    assert {"Failed", "deploy", "12 ms", "3/4", "ValueError: no such region"} <= set(html.texts)
    assert [use for use in html.all("use") if use["href"].endswith("#failed")]


async def test_what_waits_says_how_late_it_is_already(page: OpenPage, pool: Pool) -> None:
    await make_execution(pool, due_in_seconds=-150)

    assert re.search(r"> 2 min 3\d s", (await page("/executions")).text)


@pytest.mark.parametrize("status", Status)
async def test_every_status_has_its_icon_and_its_filter(page: OpenPage, pool: Pool, status: Status) -> None:
    make = make_finished if status in FINAL else make_execution
    await make(pool, task_id="the_one", status=status)
    another = Status.SKIPPED if status != Status.SKIPPED else Status.FAILED
    await make_finished(pool, task_id="another", status=another)
    html = await page(f"/executions?status={status}")

    assert "the_one" in html.texts
    assert "another" not in html.texts
    assert [use for use in html.all("use") if use["href"].endswith(f"#{status.lower()}")]
    assert html.all("option", value=status, selected="")


async def test_what_is_still_to_come_is_not_listed(page: OpenPage, pool: Pool) -> None:
    await make_execution(pool, task_id="tomorrow", due_in_seconds=86_400)

    assert "tomorrow" not in (await page("/executions")).text


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_and_errors_stay_text(page: OpenPage, pool: Pool, name: str) -> None:
    job_id = await make_job(pool, name=name, task_id=name)
    await make_finished(pool, job_id=job_id, status=Status.FAILED, error=_error(type=name, message=name))
    html = await page("/executions")

    assert html.texts.count(name) == 1
    assert html.inline_code() == []
    assert not [tag for tag, found in html.elements if tag == "script" and "src" not in found]
    assert [img["src"] for img in html.all("img")] == [img["src"] for img in html.all("img", alt="")]


@pytest.mark.parametrize("status", [None, Status.FAILED])
async def test_pages_reach_every_execution_once(page: OpenPage, pool: Pool, status: Status | None) -> None:
    now = await now_of(pool)
    live = [execution_row(now, due_in_seconds=-(n // 7), task_id=f"run-{n:03}") for n in range(70)]
    finished = [
        finished_row(
            now,
            ended_seconds_ago=n // 7,
            task_id=f"run-{n:03}",
            status=Status.FAILED if n % 2 else Status.COMPLETED,
        )
        for n in range(70, 190)
    ]
    await insert(pool, "executions", live)
    for row in finished:  # FAILED ones have an error, others none
        await insert(pool, "execution_history", [row])
    wanted = [row["task_id"] for row in live + finished if status in {None, row["status"]}]
    found: list[str] = []
    address: str | None = f"/executions?status={status}" if status else "/executions"
    while address:
        html = await page(address)
        found += [text for text in html.texts if re.fullmatch(r"run-\d+", text)]
        address = html.link("next")

    assert sorted(found) == wanted


@pytest.mark.parametrize("query", ["status=LOST", "job_id=no-id", "queue=%00", "ids=1,2"])
async def test_a_query_that_is_none_of_ours_is_refused(ada: httpx.AsyncClient, query: str) -> None:
    path = "/executions/rows" if query.startswith("ids") else "/executions"

    assert (await ada.get(f"{path}?{query}")).status_code == 400


async def test_rows_that_had_not_ended_are_answered_as_they_are_now(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    """One ends, one is taken back, and what had ended before is not asked for: it cannot change."""
    ends = await make_execution(pool, status=Status.RUNNING, task_id="ends")
    vanishes = await make_execution(pool, task_id="vanishes", due_in_seconds=-1)
    ended = await make_finished(pool, task_id="ended")
    [rows] = [found["hx-get"] for found in (await page("/executions")).all("tbody")]
    await pool.execute("DELETE FROM onthedot.executions")
    await make_finished(pool, execution_id=ends, job_id=ends, task_id="ends")
    answer = Html((await ada.get(rows, headers={"HX-Request": "true"})).text)

    assert str(ended) not in rows
    assert {part["hx-target"] for part in answer.all("hx-partial")} == {
        f"#row-{ends}",
        f"#row-{vanishes}",
        "#news",
    }
    assert {"ends", "Completed"} <= set(answer.texts)
    assert [text for text in answer.texts if "taken back before it began" in text]


async def test_what_has_ended_can_be_run_again(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool)
    execution_id = await make_finished(pool, status=Status.FAILED, job_id=await make_job(pool))
    answer = await send(ada, f"/executions/{execution_id}/retry")
    row = await pool.fetchrow("SELECT retried_from, trigger FROM onthedot.executions")

    assert answer.status_code == 303
    assert tuple(row or ()) == (execution_id, "retry")


async def test_what_has_not_ended_cannot_be_run_again(ada: httpx.AsyncClient, pool: Pool) -> None:
    execution_id = await make_execution(pool)
    answer = await send(ada, f"/executions/{execution_id}/retry")

    assert answer.status_code == 409
    assert "only a finished execution" in answer.text


async def test_a_viewer_is_not_offered_to_run_again_and_is_refused(
    viv: httpx.AsyncClient, pool: Pool
) -> None:
    await make_task(pool)
    execution_id = await make_finished(pool, job_id=await make_job(pool))
    html = Html((await viv.get("/executions")).text)
    answer = await send(viv, f"/executions/{execution_id}/retry")

    assert [form["action"] for form in html.all("form", method="post")] == ["/logout"]
    assert answer.status_code == 403
    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions") == 0


def _error(**columns: str) -> str:
    return json.dumps({"category": "unknown", "severity": "low", "fingerprint": "f"} | columns)
