"""What is done to executions from their pages: cancelled, run again, one by one and together."""

from typing import Any

import httpx
import pytest

from app.db.pools import Pool
from app.domain.statuses import FINAL, LIVE, Status
from tests.factories import make_execution, make_finished, make_job, make_task
from tests.ui.conftest import send
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")


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


async def test_running_again_leads_to_the_new_execution(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool)
    execution_id = await make_finished(pool, status=Status.FAILED, job_id=await make_job(pool))
    from_list = await send(ada, f"/executions/{execution_id}/retry", {"next": "/executions?status=FAILED"})
    listed = Html((await ada.get("/executions")).text)
    [first] = await pool.fetch("SELECT execution_id FROM onthedot.executions")
    followed = await send(ada, f"/executions/{execution_id}/retry?follow=1")
    [second] = await pool.fetch(
        "SELECT execution_id FROM onthedot.executions ORDER BY execution_id DESC LIMIT 1"
    )

    assert from_list.headers["location"] == "/executions?status=FAILED"
    assert listed.all("a", href=f"/executions/{first[0]}")
    assert followed.headers["location"] == f"/executions/{second[0]}"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status.PENDING, "will never run"),
        (Status.RETRYING, "will never run"),
        (Status.SCHEDULED, "is taken back"),
        (Status.RUNNING, "asked to stop it"),
    ],
)
async def test_before_cancelling_it_is_said_what_that_does(
    ada: httpx.AsyncClient, pool: Pool, status: Status, said: str
) -> None:
    execution_id = await make_execution(pool, status=status)
    html = Html((await ada.get(f"/executions/{execution_id}/cancel")).text)

    assert said in html.text
    assert html.all("input", name="reason")
    assert html.all("form", action=f"/executions/{execution_id}/cancel")


@pytest.mark.parametrize("status", LIVE)
async def test_what_has_not_ended_can_be_cancelled(
    ada: httpx.AsyncClient, pool: Pool, status: Status
) -> None:
    execution_id = await make_execution(pool, status=status)
    fields = {"reason": "wrong region", "next": "/executions?status=WAITING"}
    answer = await send(ada, f"/executions/{execution_id}/cancel", fields)
    said = await ada.get("/executions")
    entry = await pool.fetchrow(
        "SELECT actor, reason, client FROM onthedot.audit_log WHERE target_id = $1", str(execution_id)
    )

    assert (answer.status_code, answer.headers["location"]) == (303, "/executions?status=WAITING")
    assert entry is not None
    assert tuple(entry)[:2] == ("user:ada", "wrong region")
    if status is Status.RUNNING:
        row = await pool.fetchrow("SELECT cancel_requested_at, error ->> 'message' FROM onthedot.executions")
        assert row is not None
        assert row[0] is not None
        assert row[1] == "cancelled by ada: wrong region"
        assert "Its worker was asked to stop it." in said.text
        assert "Stopping" in said.text
    else:
        assert await pool.fetchval("SELECT status FROM onthedot.execution_history") == "CANCELLED"
        assert "Cancelled: it will never run." in said.text


async def test_what_is_being_stopped_says_so_when_cancelled_again(ada: httpx.AsyncClient, pool: Pool) -> None:
    execution_id = await make_execution(pool, status=Status.RUNNING)
    await send(ada, f"/executions/{execution_id}/cancel")

    assert "asked to stop it already" in (await ada.get(f"/executions/{execution_id}/cancel")).text


@pytest.mark.parametrize("status", FINAL)
async def test_what_has_ended_cannot_be_cancelled(ada: httpx.AsyncClient, pool: Pool, status: Status) -> None:
    execution_id = await make_finished(pool, status=status)
    asked = await ada.get(f"/executions/{execution_id}/cancel")
    sent = await send(ada, f"/executions/{execution_id}/cancel")

    assert (asked.status_code, sent.status_code) == (409, 409)
    assert f"had ended already: {status}" in sent.text


@pytest.mark.parametrize("action", ["retry", "cancel"])
async def test_what_does_not_exist_is_not_found(ada: httpx.AsyncClient, action: str) -> None:
    unknown = "01900000-0000-7000-8000-000000000000"

    assert (await send(ada, f"/executions/{unknown}/{action}")).status_code == 404
    assert (await ada.get(f"/executions/{unknown}/cancel")).status_code == 404


async def test_selected_executions_are_cancelled_after_a_question(ada: httpx.AsyncClient, pool: Pool) -> None:
    waiting = await make_execution(pool, task_id="waits")
    ended = await make_finished(pool, task_id="ended")
    ids: dict[str, Any] = {"ids": [str(waiting), str(ended)]}
    question = Html((await send(ada, "/executions/actions/cancel", ids)).text)
    still = await pool.fetchval("SELECT count(*) FROM onthedot.executions")
    answer = await send(ada, "/executions/actions/cancel", ids | {"confirmed": "1", "reason": "why not"})
    said = (await ada.get("/executions")).text

    assert "Cancel 2 executions?" in question.texts
    assert [text for text in question.texts if text.startswith("waits, pending")]
    assert {field["value"] for field in question.all("input", name="ids")} == {str(waiting), str(ended)}
    assert still == 1
    assert answer.status_code == 303
    assert "1 execution cancelled. 1 not: it had ended already" in said


async def test_selected_executions_are_run_again(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool)
    ids = [await make_finished(pool, job_id=await make_job(pool)) for _ in range(2)]
    await send(ada, "/executions/actions/retry", {"ids": [str(one) for one in ids], "confirmed": "1"})
    rows = await pool.fetch("SELECT retried_from FROM onthedot.executions")

    assert {row[0] for row in rows} == set(ids)


@pytest.mark.parametrize("ids", [[], ["x"], ["01900000-0000-7000-8000-000000000000"] * 201])
async def test_a_selection_that_is_none_is_refused(ada: httpx.AsyncClient, ids: list[str]) -> None:
    assert (await send(ada, "/executions/actions/cancel", {"ids": ids})).status_code == 400


@pytest.mark.parametrize("path", ["retry", "cancel"])
async def test_without_the_token_nothing_is_done(ada: httpx.AsyncClient, pool: Pool, path: str) -> None:
    execution_id = await make_execution(pool)
    for address in (f"/executions/{execution_id}/{path}", f"/executions/actions/{path}"):
        assert (await ada.post(address, data={"ids": str(execution_id), "confirmed": "1"})).status_code == 403

    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions") == 1


async def test_a_viewer_may_do_none_of_it(viv: httpx.AsyncClient, pool: Pool) -> None:
    execution_id = await make_execution(pool)
    for action in ("cancel", "retry"):
        fields = {"ids": str(execution_id), "confirmed": "1"}
        assert (await send(viv, f"/executions/actions/{action}", fields)).status_code == 403
    assert (await viv.get(f"/executions/{execution_id}/cancel")).status_code == 403
    assert (await send(viv, f"/executions/{execution_id}/cancel")).status_code == 403

    assert await pool.fetchval("SELECT status FROM onthedot.executions") == "PENDING"
