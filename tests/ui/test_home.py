"""The first page."""

import json
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TypeAlias

import httpx
import msgspec
import pytest

from app.db.pools import Pool
from app.domain.jobs import JobRequest
from app.domain.statuses import FINAL, Status
from app.domain.tasks import TaskRequest
from tests.factories import (
    Row,
    execution_row,
    finished_row,
    insert,
    job_row,
    make_execution,
    make_finished,
    make_job,
    now_of,
)
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")

OpenPage: TypeAlias = Callable[..., Awaitable[Html]]
"""Opens an address of the dashboard, `/` unless said, as ada."""

HOSTILE = [
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "'><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe",
    "تحديث قاعدة البيانات",
    "x" * 200,
    "&lt;b&gt;",
]


@pytest.fixture
def page(ada: httpx.AsyncClient) -> OpenPage:
    """Return a function that opens a page and parses it."""

    async def open_page(address: str = "/") -> Html:
        answer = await ada.get(address)
        assert answer.status_code == 200, answer.text
        return Html(answer.text)

    return open_page


async def test_an_empty_page_teaches_how_to_begin(page: OpenPage) -> None:
    text = (await page()).text
    bodies = re.findall(r"-d '(.*?)'", text, re.DOTALL)

    assert "No jobs yet" in text
    assert "Nothing has run yet" in text
    assert "http://onthedot.test/api/v1/jobs" in text
    assert msgspec.json.decode(bodies[0], type=TaskRequest).task_id == "hello"
    assert msgspec.json.decode(bodies[1], type=JobRequest).task_id == "hello"


async def test_the_header_says_who_and_when(page: OpenPage) -> None:
    text = (await page()).text

    assert "ada" in text
    assert re.search(r"As of\n\d\d:\d\d:\d\d\nUTC", text)


NOT_RECURRING: Row = {"every_seconds": None, "starts_at": None, "materialize_at": None}
SCHEDULES = [
    ({"schedule_type": "IMMEDIATE"}, "immediately"),
    (
        {"schedule_type": "RECURRING", "expression": "0 2 * * TUE", "timezone": "America/Los_Angeles"},
        "0 2 * * TUE\n(America/Los_Angeles)",
    ),
    ({"schedule_type": "INTERVAL", "every_seconds": 5400.0}, "every 1 h 30 min"),
]


@pytest.mark.parametrize(("columns", "words"), SCHEDULES)
async def test_a_job_tells_its_schedule_in_words(
    page: OpenPage, pool: Pool, columns: Row, words: str
) -> None:
    anchor = {"starts_at": await now_of(pool)} if "every_seconds" in columns else {}
    await make_job(pool, **(NOT_RECURRING | anchor | columns))

    assert words in (await page()).text


async def test_a_job_that_runs_once_tells_when(page: OpenPage, pool: Pool) -> None:
    at = await now_of(pool) + timedelta(hours=2, seconds=30)
    await make_job(pool, schedule_type="ONCE", scheduled_time=at, **NOT_RECURRING)
    text = (await page()).text

    assert f"once at\n{at:%Y-%m-%d %H:%M:%S} UTC" in text
    assert "in 2 h" in text


async def test_a_paused_job_shows_no_next_run_but_why(page: OpenPage, pool: Pool) -> None:
    await make_job(pool, is_active=False, pause_reason="Waiting for the migration", materialize_at=None)
    html = await page()

    assert "Paused" in html.texts
    assert html.all("span", title="Waiting for the migration")
    assert not [text for text in html.texts if text.startswith("in ")]


async def test_a_job_without_a_name_goes_by_its_task(page: OpenPage, pool: Pool) -> None:
    await make_job(pool, name=None, task_id="nightly_report", user_id="ada")
    await make_job(pool, name="Nightly", task_id="nightly_report", user_id="ada")
    texts = (await page()).texts

    assert "nightly_report" in texts
    assert "nightly_report · by ada" in texts


async def test_a_failed_execution_shows_what_happened(page: OpenPage, pool: Pool) -> None:
    error = {
        "type": "ValueError",
        "message": "no such region\nmore",
        "category": "unknown",
        "severity": "low",
        "fingerprint": "f",
    }
    await make_finished(
        pool,
        status=Status.FAILED,
        error=json.dumps(error),
        attempt_number=3,
        lateness_ms=12.3,
        task_id="deploy",
    )
    html = await page()

    assert {"Failed", "deploy", "12 ms", "3/4", "ValueError: no such region"} <= set(html.texts)
    assert html.all("use", href=html.all("use")[0]["href"])[0]["href"].endswith("#failed")


async def test_what_waits_says_how_late_it_is_already(page: OpenPage, pool: Pool) -> None:
    await make_execution(pool, due_in_seconds=-150)

    assert re.search(r"> 2 min 3\d s", (await page()).text)


@pytest.mark.parametrize("status", Status)
async def test_every_status_has_its_icon_and_its_filter(page: OpenPage, pool: Pool, status: Status) -> None:
    make = make_finished if status in FINAL else make_execution
    await make(pool, task_id="the_one", status=status)
    await make_finished(
        pool, task_id="another", status=Status.SKIPPED if status != Status.SKIPPED else Status.FAILED
    )
    html = await page(f"/?status={status}")
    icons = {use["href"].partition("#")[2] for use in html.all("use")}
    current = [a["href"] for a in html.all("a", **{"aria-current": "true"})]

    assert "the_one" in html.texts
    assert "another" not in html.texts
    assert icons == {status.lower()}
    assert current == [f"/?status={status}#executions"]


async def test_a_filter_that_finds_nothing_offers_the_way_back(page: OpenPage, pool: Pool) -> None:
    await make_finished(pool)
    html = await page("/?status=FAILED")

    assert "No execution is failed now." in html.text
    assert html.all("a", href="/#executions")


async def test_what_is_still_to_come_is_not_listed(page: OpenPage, pool: Pool) -> None:
    await make_execution(pool, task_id="tomorrow", due_in_seconds=86_400)

    assert "tomorrow" not in (await page()).text


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_stay_text(page: OpenPage, pool: Pool, name: str) -> None:
    error = {"type": name, "message": name, "category": "unknown", "severity": "low", "fingerprint": "f"}
    job_id = await make_job(pool, name=name, task_id=name, user_id=name, timezone_requested=name)
    await make_finished(pool, job_id=job_id, status=Status.FAILED, error=json.dumps(error), user_id=name)
    html = await page()

    assert html.texts.count(name) == 2  # the job's, the execution's
    assert len(html.all("bdi", title=name)) == 2
    assert html.inline_code() == []
    assert {tag for tag, _ in html.elements if tag in {"script", "img", "b"}} == {"img"}  # the logo
    assert [img["src"] for img in html.all("img")] == [img["src"] for img in html.all("img", alt="")]


async def test_job_pages_reach_every_job_once(page: OpenPage, pool: Pool) -> None:
    now = await now_of(pool)
    # Some share their instant, as the jobs of a batch do.
    jobs = [_job(now, n, seconds_ago=n // 7) for n in range(60)]
    await insert(pool, "jobs", jobs)

    assert sorted(await _walk(page, "jobs", r"job-\d+")) == [f"job-{n:03}" for n in range(60)]


@pytest.mark.parametrize("status", [None, Status.FAILED])
async def test_execution_pages_reach_every_execution_once(
    page: OpenPage, pool: Pool, status: Status | None
) -> None:
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
    found = await _walk(page, "executions", r"run-\d+", f"/?status={status}" if status else "/")

    assert sorted(found) == wanted


async def test_one_list_goes_on_without_moving_the_other(page: OpenPage, pool: Pool) -> None:
    now = await now_of(pool)
    await insert(pool, "jobs", [_job(now, n, seconds_ago=n) for n in range(30)])
    await insert(
        pool, "executions", [execution_row(now, due_in_seconds=-n, task_id=f"run-{n:03}") for n in range(60)]
    )
    first = await page()
    older_jobs = await page(first.link("next", within="jobs"))
    both_older = await page(older_jobs.link("next", within="executions"))
    jobs_newest = await page(both_older.link("first", within="jobs"))

    assert _words(first, "job") == _words(jobs_newest, "job") != _words(older_jobs, "job")
    assert _words(first, "run") == _words(older_jobs, "run") != _words(both_older, "run")
    assert _words(both_older, "job") == _words(older_jobs, "job")


@pytest.mark.parametrize("query", ["jobs_cursor=garbage", "executions_cursor=%00", "status=LOST", "status="])
async def test_a_query_that_is_none_of_ours_gets_a_page_that_says_so(
    ada: httpx.AsyncClient, query: str
) -> None:
    answer = await ada.get(f"/?{query}")

    assert answer.status_code == 400
    assert Html(answer.text).all("a", href="/")


async def test_a_cursor_of_another_filter_is_refused(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    now = await now_of(pool)
    await insert(pool, "executions", [execution_row(now, due_in_seconds=-n) for n in range(60)])
    older = (await page()).link("next", within="executions")
    assert older is not None

    assert (await ada.get(older.replace("/?", "/?status=FAILED&"))).status_code == 400


def _job(now: datetime, number: int, *, seconds_ago: int) -> Row:
    return job_row(now, name=f"job-{number:03}", created_at=now - timedelta(seconds=seconds_ago))


async def _walk(page: OpenPage, within: str, pattern: str, address: str | None = "/") -> list[str]:
    found: list[str] = []
    while address:
        html = await page(address)
        found += [text for text in html.texts if re.fullmatch(pattern, text)]
        address = html.link("next", within=within)
    return found


def _words(html: Html, prefix: str) -> list[str]:
    return [text for text in html.texts if text.startswith(f"{prefix}-")]
