"""`/jobs/{job_id}`: one job, with its runs, its definition, its changes, and other ways to it."""

import gzip
import shlex
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import click
import httpx
import msgspec
import pytest
from click.testing import CliRunner
from sqlalchemy import text

from app.cli.job import job as job_command
from app.db.pools import Pool
from app.domain.statuses import Status
from tests.factories import (
    Row,
    finished_row,
    insert,
    make_execution,
    make_finished,
    make_job,
    make_task,
    now_of,
)
from tests.ui.conftest import OpenPage, Site, send
from tests.ui.hostile import HOSTILE
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")

TABS = ("", "/definition", "/changes", "/api")
CRON: Row = {
    "schedule_type": "RECURRING",
    "expression": "30 2 * * *",
    "timezone": "America/New_York",
    "every_seconds": None,
    "starts_at": None,
}
MOST_HTML_BYTES = 15_000


@pytest.mark.parametrize("tab", TABS)
async def test_every_tab_tells_which_job_it_is_of_and_leads_somewhere(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool, tab: str
) -> None:
    job_id = await _job(pool, name="Nightly", tags=["release"])
    await _ran(pool, job_id, ago=60)
    html = await page(f"/jobs/{job_id}{tab}")
    found = {link["href"] for link in html.all("a") if not link["href"].startswith("#")}

    assert html.texts[0] == "Nightly · Jobs · onthedot"
    assert {"Nightly", "report", "release"} <= set(html.texts)
    assert {f"/jobs/{job_id}{one}" for one in TABS} <= found
    assert {link: (await ada.get(link)).status_code for link in found} == dict.fromkeys(found, 200)
    assert html.inline_code() == []


@pytest.mark.parametrize("path", [*TABS, "/state", "/rows"])
async def test_there_is_no_page_of_a_job_that_is_not_there(ada: httpx.AsyncClient, path: str) -> None:
    answer = await ada.get(f"/jobs/{uuid4()}{path}")

    assert answer.status_code == (200 if path == "/rows" else 404)


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("name", HOSTILE)
async def test_what_people_choose_stays_text(page: OpenPage, pool: Pool, name: str, tab: str) -> None:
    job_id = await make_job(
        pool,
        name=name,
        task_id=name,
        user_id=name,
        tags=[name],
        timezone_requested=name,
        parameters=_json({name: name}),
        is_active=False,
        materialize_at=None,
        pause_reason=name,
    )
    await pool.execute(
        "UPDATE onthedot.jobs SET parameters = $2 WHERE job_id = $1", job_id, _json({"x": name})
    )
    await make_finished(pool, job_id=job_id, status=Status.FAILED, error=_json(_error(name)))
    html = await page(f"/jobs/{job_id}{tab}")

    assert name in html.texts
    assert html.inline_code() == []
    assert not [found for _, found in html.elements if found.get("hx-get") == "/logout"]
    assert not [
        tag for tag, found in html.elements if tag == "img" and "src" in found and found["src"] == "x"
    ]


# --- its head and cards


async def test_a_schedule_is_told_in_words_with_its_next_runs_in_its_zone_and_the_pages(
    ada: httpx.AsyncClient, pool: Pool
) -> None:
    job_id = await _job(pool, **CRON)
    ada.cookies.set("onthedot_zone", "Asia/Kolkata")
    html = Html((await ada.get(f"/jobs/{job_id}")).text)
    in_new_york = [text for text in html.texts if text.endswith((" 02:30:00 EST", " 02:30:00 EDT"))]
    in_kolkata = [text for text in html.texts if text.endswith((" 13:00:00", " 12:00:00"))]

    assert "every day at 02:30" in html.texts
    assert "30 2 * * *" in html.texts
    assert "Asia/Kolkata" in html.texts
    assert len(in_new_york) == len(in_kolkata) == 5
    assert html.all("body", **{"data-schedule-zone": "America/New_York"})


async def test_a_policy_is_told_in_words_and_whose_it_is(page: OpenPage, pool: Pool) -> None:
    backoff = {"retry_delay_seconds": 30.0, "max_retries": 3, "timeout_seconds": 3600.0}
    await make_task(pool, task_id="deploy", queue="critical", priority=1, **backoff)
    from_task = (await page(f"/jobs/{await make_job(pool, task_id='deploy', **CRON)}")).text
    own = {"max_retries": 0, "timeout_seconds": 5.0, "queue": "bulk", "priority": 3}
    of_job = (await page(f"/jobs/{await make_job(pool, task_id='deploy', **own)}")).text

    assert "3 retries, after 30 s, 1 min, 2 min\nfrom the task" in from_task
    assert "after 1 h\nfrom the task" in from_task
    assert "critical\nfrom the task" in from_task
    assert "1 high\nfrom the task" in from_task
    assert "later than 1 min: one run makes up for all" in from_task
    assert "times it skips run right after, times it repeats run the first time" in from_task
    assert {"not retried", "after 5 s", "bulk", "3 low"} <= set(of_job.splitlines())
    assert "from the task" not in of_job
    assert "Clock changes" not in of_job


async def test_a_paused_job_says_who_paused_it_when_why_and_until_when(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    job_id = await _job(pool)
    await send(ada, f"/jobs/{job_id}/pause", {"reason": "the migration", "until": "2130-01-31T09:00"})
    await send(ada, f"/jobs/{job_id}/run")
    html = await page(f"/jobs/{job_id}")

    assert "Paused by\nada\nnow" in html.text or "Paused by\nada\n1 s ago" in html.text
    assert "the migration" in html.texts
    assert "until 2130-01-31 09:00:00 UTC" in html.text
    assert html.all("form", action=f"/jobs/{job_id}/resume")
    assert not html.all("a", href=f"/jobs/{job_id}/pause")


async def test_a_job_that_never_ran_says_so_and_when_it_will(page: OpenPage, pool: Pool) -> None:
    html = await page(f"/jobs/{await _job(pool)}")

    assert html.texts.count("Never run") == 1
    assert "Never run." in html.texts
    assert "Next:" in html.text


async def test_the_last_runs_are_drawn_and_measured(page: OpenPage, pool: Pool) -> None:
    job_id = await _job(pool)
    now = await now_of(pool)
    seconds = {ago: 10.0 if ago == 3 else 1.0 for ago in range(1, 21)}
    rows = [
        finished_row(now, ended_seconds_ago=60 * ago, job_id=job_id)
        | {
            "started_at": now - timedelta(seconds=60 * ago + ran),
            "lateness_ms": 2_500.0 if ago in {4, 5} else 3.0,
        }
        for ago, ran in seconds.items()
    ]
    await insert(pool, "execution_history", rows)
    failed = await _ran(pool, job_id, ago=2000, status="FAILED")
    html = await page(f"/jobs/{job_id}")

    assert "Last 21 runs" in html.texts
    assert html.all("svg", **{"aria-label": "21 runs: 20 completed, 1 failed"})
    assert html.all("a", href=f"/executions/{failed}", tabindex="-1")
    figures = html.texts[html.texts.index("Success") :]
    assert figures[:8] == [
        "Success",
        "95.2 %",
        "Half took up to",
        "1.0 s",
        "95 % took up to",
        "1.5 s",
        "Began late",
        "2",
    ]


async def test_the_head_asks_for_itself_anew(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    job_id = await _job(pool)
    [head] = (await page(f"/jobs/{job_id}/changes")).all("section", id="job")
    await make_execution(pool, job_id=job_id, status="RUNNING", due_in_seconds=-1)
    answer = await ada.get(head["hx-get"], headers={"HX-Request": "true"})

    assert answer.text.lstrip().startswith('<section id="job"')
    assert "Running" in Html(answer.text).texts
    assert "1 running since" in Html(answer.text).texts


# --- its runs


async def test_runs_are_listed_newest_first_page_by_page(page: OpenPage, pool: Pool) -> None:
    job_id = await _job(pool)
    now = await now_of(pool)
    rows = [finished_row(now, ended_seconds_ago=n // 7, job_id=job_id) for n in range(120)]
    await insert(pool, "execution_history", rows)
    await _ran(pool, await _job(pool), ago=1)
    found: list[str] = []
    address: str | None = f"/jobs/{job_id}"
    while address:
        html = await page(address)
        found += _runs(html)
        address = html.link("next")

    assert len(found) == 120
    assert set(found) == {f"row-{row['execution_id']}" for row in rows}


STATUSES = ("COMPLETED", "FAILED", "CANCELLED", "SKIPPED", "RUNNING", "RETRYING", "PENDING")


@pytest.mark.parametrize("status", STATUSES)
async def test_runs_are_narrowed_by_status(page: OpenPage, pool: Pool, status: str) -> None:
    job_id = await _job(pool)
    made = {}
    for one in STATUSES:
        if one in {"COMPLETED", "FAILED", "CANCELLED", "SKIPPED"}:
            made[one] = await _ran(pool, job_id, ago=60, status=one)
        else:
            due = 600 if one == "PENDING" else -5
            made[one] = await make_execution(pool, job_id=job_id, status=one, due_in_seconds=due)
    html = await page(f"/jobs/{job_id}?status={status}")
    everything = _runs(await page(f"/jobs/{job_id}"))

    assert _runs(html) == [f"row-{made[status]}"]
    assert html.all("a", href=f"/jobs/{job_id}", title="Remove this filter")
    assert set(everything) == {f"row-{one}" for name, one in made.items() if name != "PENDING"}


async def test_late_runs_are_found(page: OpenPage, pool: Pool) -> None:
    job_id = await _job(pool)
    await _ran(pool, job_id, ago=60)
    late = await make_finished(pool, job_id=job_id, lateness_ms=2_500.0, disposition="late")

    assert _runs(await page(f"/jobs/{job_id}?status=LATE")) == [f"row-{late}"]


async def test_a_status_without_runs_says_so_and_leads_back(page: OpenPage, pool: Pool) -> None:
    job_id = await _job(pool)
    html = await page(f"/jobs/{job_id}?status=FAILED")

    assert "No runs match" in html.texts
    assert html.all("a", href=f"/jobs/{job_id}")


async def test_a_failed_run_shows_its_error_and_can_be_run_again(page: OpenPage, pool: Pool) -> None:
    job_id = await _job(pool)
    failed = await _ran(pool, job_id, ago=60, status="FAILED")
    html = await page(f"/jobs/{job_id}")

    assert "RuntimeError: no" in html.texts
    assert html.all("form", action=f"/executions/{failed}/retry")


async def test_who_started_a_run_by_hand_is_named(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    job_id = await _job(pool)
    answer = await send(ada, f"/jobs/{job_id}/run", {"next": f"/jobs/{job_id}"})
    execution_id = await pool.fetchval(
        "SELECT execution_id FROM onthedot.executions WHERE job_id = $1", job_id
    )
    html = await page(f"/jobs/{job_id}")

    assert answer.headers["location"] == f"/jobs/{job_id}"
    assert html.all("a", href=f"/executions/{execution_id}")
    assert {"manual", "by ada", "Started."} <= set(html.texts)


async def test_runs_in_place_show_how_they_are_now(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    job_id = await _job(pool)
    await _ran(pool, job_id, ago=60)
    kept = await make_execution(pool, job_id=job_id, due_in_seconds=-1)
    gone = await make_execution(pool, job_id=job_id, due_in_seconds=-2)
    [rows] = [found["hx-get"] for found in (await page(f"/jobs/{job_id}")).all("tbody") if "hx-get" in found]
    await pool.execute("DELETE FROM onthedot.executions WHERE execution_id = $1", gone)
    await pool.execute(
        "UPDATE onthedot.executions SET cancel_requested_at = now() WHERE execution_id = $1", kept
    )
    await make_execution(pool, job_id=job_id, status="RUNNING")
    answer = Html((await ada.get(rows, headers={"HX-Request": "true"})).text)

    targets = {part["hx-target"] for part in answer.all("hx-partial")}
    assert targets == {f"#row-{kept}", f"#row-{gone}", "#news"}
    assert "Stopping" in answer.texts
    assert "1 new" in answer.texts
    assert "taken back before it began" in answer.text


@pytest.mark.parametrize("query", ["status=LOST", "cursor=x", "status=FAILED&cursor=%00"])
async def test_a_query_that_is_none_of_ours_gets_a_page_that_says_so(
    ada: httpx.AsyncClient, pool: Pool, query: str
) -> None:
    assert (await ada.get(f"/jobs/{await _job(pool)}?{query}")).status_code == 400


async def test_a_full_page_stays_small(ada: httpx.AsyncClient, pool: Pool) -> None:
    job_id = await _job(pool)
    now = await now_of(pool)
    rows = [
        finished_row(
            now,
            ended_seconds_ago=61.7 * n,
            job_id=job_id,
            status=Status.FAILED if n % 7 else Status.COMPLETED,
        )
        | {"started_at": now - timedelta(seconds=61.7 * n + n * n % 97)}
        for n in range(120)
    ]
    await insert(pool, "execution_history", rows)
    answer = await ada.get(f"/jobs/{job_id}")

    assert len(gzip.compress(answer.content)) <= MOST_HTML_BYTES


# --- its definition and changes


async def test_a_definition_shows_what_the_job_is_and_its_parameters(page: OpenPage, pool: Pool) -> None:
    columns = CRON | {"timezone": "America/Los_Angeles", "timezone_requested": "America/Cupertino"}
    job_id = await _job(pool, parameters=_json({"version": "17.2.1", "percentage": 25}), **columns)
    html = await page(f"/jobs/{job_id}/definition")

    assert '{\n  "version": "17.2.1",\n  "percentage": 25\n}' in html.texts
    assert {"America/Los_Angeles, asked for as", "America/Cupertino", str(job_id)} <= set(html.texts)


async def test_large_parameters_are_cut_and_the_page_says_where_they_are_whole(
    ada: httpx.AsyncClient, pool: Pool
) -> None:
    job_id = await _job(pool, parameters=_json({"blob": "x" * 900_000}))
    answer = await ada.get(f"/jobs/{job_id}/definition")
    html = Html(answer.text)

    assert len(answer.content) < 60_000
    assert "more characters are not shown:" in html.text
    assert f"onthedot job get {job_id}" in html.texts


async def test_changes_tell_who_did_what_and_from_what_to_what(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    job_id = await _job(pool, parameters=_json({"version": 1, "region": "west"}))
    parameters = _json({"version": 2, "region": "west"})
    await pool.execute("UPDATE onthedot.jobs SET parameters = $2 WHERE job_id = $1", job_id, parameters)
    await send(ada, f"/jobs/{job_id}/pause", {"reason": "the migration"})
    await send(ada, f"/jobs/{job_id}/resume")
    text = (await page(f"/jobs/{job_id}/changes")).text

    assert "parameters.version\n1\n2" in text
    assert "region" not in text
    assert "ada\npaused\npause reason\nnone\nthe migration" in text
    assert "ada\nresumed\npause reason\nthe migration\nnone" in text
    assert "created" in text


async def test_changes_are_read_page_by_page(page: OpenPage, pool: Pool) -> None:
    job_id = await _job(pool)
    for n in range(70):
        await pool.execute("UPDATE onthedot.jobs SET name = $2 WHERE job_id = $1", job_id, f"name {n}")
    found: list[str] = []
    address: str | None = f"/jobs/{job_id}/changes"
    while address:
        html = await page(address)
        found += [text for text in html.texts if text == "name"]
        address = html.link("next")

    assert len(found) == 70


async def test_a_job_that_runs_once_and_was_never_changed_says_so(page: OpenPage, pool: Pool) -> None:
    once = {"schedule_type": "IMMEDIATE", "every_seconds": None, "starts_at": None, "materialize_at": None}
    html = await page(f"/jobs/{await _job(pool, **once)}/changes")

    assert "Never changed" in html.texts


# --- other ways to it


async def test_the_queries_run_as_they_stand(page: OpenPage, pool: Pool, site: Site) -> None:
    job_id = await _job(pool)
    await _ran(pool, job_id, ago=60)
    queries = [code for code in (await page(f"/jobs/{job_id}/api")).texts if code.startswith("SELECT")]
    async with site.engine.connect() as connection:
        counts = [len((await connection.execute(text(query.replace(":", r"\:")))).all()) for query in queries]

    assert counts == [1, 1, 1]


async def test_the_commands_exist(page: OpenPage, pool: Pool) -> None:
    html = await page(f"/jobs/{await _job(pool)}/api")
    commands = [shlex.split(code) for code in html.texts if code.startswith("onthedot job ")]

    assert len(commands) == 6
    for _, noun, verb, *arguments in commands:
        assert noun == "job"
        command = job_command.commands[verb]
        command.make_context(verb, arguments, parent=click.Context(job_command, obj=None))
        assert CliRunner().invoke(job_command, [verb, "--help"]).exit_code == 0


async def test_the_requests_are_answered(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    job_id = await _job(pool)
    html = await page(f"/jobs/{job_id}/api")
    requests = [shlex.split(code) for code in html.texts if code.startswith("curl")]
    statuses = []
    for words in requests:
        url = words[-1]
        method = "POST" if "POST" in words else "GET"
        body = words[words.index("-d") + 1] if "-d" in words else None
        headers = {"Authorization": "Bearer a key of ada's, an operator", "Content-Type": "application/json"}
        answer = await ada.request(method, url, content=body, headers=headers)
        statuses.append(answer.status_code)

    assert statuses == [200, 201, 200, 200, 200]
    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions WHERE trigger = 'manual'") == 1


async def _job(pool: Pool, **columns: Any) -> UUID:
    if not await pool.fetchval("SELECT true FROM onthedot.tasks WHERE task_id = 'report'"):
        await make_task(pool)
    return await make_job(pool, **columns)


async def _ran(pool: Pool, job_id: UUID, *, ago: float, status: str = "COMPLETED") -> UUID:
    return await make_finished(pool, job_id=job_id, ended_seconds_ago=ago, status=Status(status))


def _runs(html: Html) -> list[str]:
    return [row["id"] for row in html.all("tr") if row.get("id", "").startswith("row-")]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _error(message: str) -> Row:
    return {
        "type": "RuntimeError",
        "message": message,
        "category": "unknown",
        "severity": "low",
        "fingerprint": "f",
        "traceback": None,
    }
