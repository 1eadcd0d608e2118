"""`/jobs`: the list."""

import gzip
from datetime import datetime, timedelta
from uuid import UUID

import httpx
import pytest

from app.db.pools import Pool
from app.db.reads import job_list
from app.domain.statuses import Status
from tests.factories import (
    Row,
    finished_row,
    insert,
    job_row,
    make_execution,
    make_finished,
    make_job,
    now_of,
)
from tests.ui.conftest import OpenPage
from tests.ui.hostile import HOSTILE
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONCE: Row = {"schedule_type": "IMMEDIATE", "every_seconds": None, "starts_at": None, "materialize_at": None}
CRON: Row = ONCE | {
    "schedule_type": "RECURRING",
    "expression": "0 2 * * TUE",
    "timezone": "America/Los_Angeles",
}
SCHEDULES = [
    (ONCE, "immediately"),
    (CRON, "every Tuesday at 02:00\nAmerica/Los_Angeles"),
    (CRON | {"expression": "*/7 * * * *"}, "every 7 minutes from minute 0 to 56 of every hour"),
    ({"every_seconds": 5400.0}, "every 90 minutes"),
]
MOST_HTML_BYTES = 15_000


async def test_without_jobs_the_page_says_how_to_begin(page: OpenPage) -> None:
    html = await page("/jobs")

    assert "No jobs yet" in html.text
    assert html.all("a", href="/")
    assert html.all("a", href="/jobs/new")


@pytest.mark.parametrize(("columns", "words"), SCHEDULES)
async def test_a_job_tells_its_schedule_in_words(
    page: OpenPage, pool: Pool, columns: Row, words: str
) -> None:
    await make_job(pool, **columns)

    assert words in (await page("/jobs?kind=all")).text


async def test_the_expression_itself_shows_when_pointed_at(page: OpenPage, pool: Pool) -> None:
    await make_job(pool, **CRON)

    assert (await page("/jobs")).all("span", title="0 2 * * TUE")


async def test_a_job_that_runs_once_tells_when(page: OpenPage, pool: Pool) -> None:
    at = await now_of(pool) + timedelta(hours=2, seconds=30)
    await make_job(pool, **ONCE | {"schedule_type": "ONCE", "scheduled_time": at})
    text = (await page("/jobs?kind=once")).text

    assert f"once at\n{at:%Y-%m-%d %H:%M:%S} UTC" in text
    assert "in 2 h" in text


async def test_a_paused_job_shows_no_next_run_but_why_and_until_when(page: OpenPage, pool: Pool) -> None:
    until = await now_of(pool) + timedelta(hours=3, seconds=30)
    reason = "Waiting for the migration"
    await make_job(pool, is_active=False, pause_reason=reason, paused_until=until, materialize_at=None)
    html = await page("/jobs")

    assert {"Paused", reason, "resumes", "in 3 h"} <= set(html.texts)
    assert html.all("bdi", title=reason)
    assert not [form for form in html.all("form") if form.get("action", "").endswith("/pause")]


async def test_a_job_without_a_name_goes_by_its_task(page: OpenPage, pool: Pool) -> None:
    unnamed = await make_job(pool, name=None, task_id="nightly_report")
    named = await make_job(pool, name="Nightly", task_id="nightly_report")
    html = await page("/jobs")

    assert html.all("a", href=f"/jobs/{unnamed}", title="nightly_report")
    assert html.all("a", href=f"/jobs/{named}", title="Nightly")
    assert html.all("span", title="nightly_report by ada")


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_stay_text(page: OpenPage, pool: Pool, name: str) -> None:
    paused = {"is_active": False, "materialize_at": None, "pause_reason": name}
    await make_job(
        pool, name=name, task_id=name, user_id=name, timezone_requested=name, tags=[name], **paused
    )
    html = await page("/jobs")

    assert html.texts.count(name) == 5  # its name, its task, its owner, its tag and why it is paused
    assert html.all("a", title=name)
    assert html.inline_code() == []
    assert not [tag for tag, found in html.elements if tag == "script" and "src" not in found]
    assert not [found for _, found in html.elements if found.get("hx-get") == "/logout"]
    assert [img["src"] for img in html.all("img")] == [img["src"] for img in html.all("img", alt="")]


# --- which jobs


async def test_jobs_that_run_once_do_not_drown_those_that_repeat(page: OpenPage, pool: Pool) -> None:
    now = await now_of(pool)
    await make_job(pool, name="repeats", created_at=now - timedelta(days=1))
    await insert(pool, "jobs", [_job(now, n, seconds_ago=n) | ONCE for n in range(60)])
    repeating, once, both = [await page(f"/jobs{query}") for query in ("", "?kind=once", "?kind=all")]

    assert _named(repeating) == ["repeats"]
    assert _named(once) == [f"job-{n:03}" for n in range(50)]
    assert _named(both) == [f"job-{n:03}" for n in range(50)]
    assert {link["href"] for link in repeating.all("a")} >= {"/jobs?kind=once", "/jobs?kind=all"}


async def test_where_no_job_repeats_the_page_leads_to_the_others(page: OpenPage, pool: Pool) -> None:
    await make_job(pool, name="once", **ONCE)
    html = await page("/jobs")

    assert "No job repeats" in html.texts
    assert html.all("a", href="/jobs?kind=all")


async def test_pages_reach_every_job_once(page: OpenPage, pool: Pool) -> None:
    now = await now_of(pool)
    # Some share their instant, as the jobs of a batch do.
    await insert(pool, "jobs", [_job(now, n, seconds_ago=n // 7) for n in range(120)])

    assert sorted(await _all(page, "/jobs")) == [f"job-{n:03}" for n in range(120)]


FILTERS = [
    ("task_id=mine", "task: mine"),
    ("user_id=viv", "owner: viv"),
    ("tag=night", "tag: night"),
    ("name=NIGHT%25", "name: NIGHT%"),
    ("state=paused", "state: paused"),
]


@pytest.mark.parametrize("kind", ["", "&kind=all"])
@pytest.mark.parametrize(("query", "chip"), FILTERS)
async def test_a_filter_narrows_the_list_and_stands_in_the_address(
    page: OpenPage, pool: Pool, query: str, chip: str, kind: str
) -> None:
    now = await now_of(pool)
    wanted = {
        "task_id": "mine",
        "user_id": "viv",
        "tags": ["x", "night"],
        "is_active": False,
        "materialize_at": None,
    }
    mine = [_job(now, n, seconds_ago=n) | wanted | {"name": f"at night% {n:03}"} for n in range(60)]
    others = [_job(now, n, seconds_ago=n) | {"name": f"by night {n}"} for n in range(60)]
    await insert(pool, "jobs", [*mine, *others])
    html = await page(f"/jobs?{query}{kind}&cursor=")
    found = await _all(page, f"/jobs?{query}{kind}")

    assert found == [f"at night% {n:03}" for n in range(60)]
    assert chip in html.text.replace("\n", " ")
    assert html.all("a", href=f"/jobs?{kind[1:]}".rstrip("?"), title="Remove this filter")


async def test_filters_narrow_the_list_together(page: OpenPage, pool: Pool) -> None:
    for name, columns in (
        ("both", {"task_id": "mine", "user_id": "viv"}),
        ("task", {"task_id": "mine"}),
        ("owner", {"user_id": "viv"}),
    ):
        await make_job(pool, name=name, **columns)

    for kind in ("", "&kind=all"):
        assert _named(await page(f"/jobs?task_id=mine&user_id=viv{kind}")) == ["both"]


async def test_enabled_jobs_are_those_that_are_not_paused(page: OpenPage, pool: Pool) -> None:
    await make_job(pool, name="paused", is_active=False, materialize_at=None)
    await make_job(pool, name="enabled")

    assert _named(await page("/jobs?state=enabled")) == ["enabled"]


async def test_a_filter_that_finds_nothing_says_which_and_offers_the_way_back(
    page: OpenPage, pool: Pool
) -> None:
    await make_job(pool)
    html = await page("/jobs?task_id=nothing")

    assert "No jobs match" in html.text
    assert {"task:", "nothing"} <= set(html.texts)
    assert html.all("a", href="/jobs")
    assert html.all("a", href="/jobs?kind=all&task_id=nothing")


@pytest.mark.parametrize(
    "query",
    ["cursor=garbage", "cursor=%00", "task_id=%00", "tag=%00", f"user_id={'x' * 300}", "kind=x", "state=x"],
)
async def test_a_query_that_is_none_of_ours_gets_a_page_that_says_so(
    ada: httpx.AsyncClient, query: str
) -> None:
    answer = await ada.get(f"/jobs?{query}")

    assert answer.status_code == 400
    assert Html(answer.text).all("a", href="/")


async def test_what_no_index_knows_is_looked_for_piece_by_piece(
    page: OpenPage, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_list, "MOST_LOOKED_AT", 10)
    now = await now_of(pool)
    rare = {3, 17, 24}
    tagged = [_job(now, n, seconds_ago=n) | {"tags": ["rare"] if n in rare else []} for n in range(25)]
    await insert(pool, "jobs", tagged)
    first = await page("/jobs?tag=rare")
    nothing = await page("/jobs?tag=none")

    assert _named(first) == ["job-003"]
    assert "Look further back" in first.texts
    assert "None so far" in nothing.text
    assert await _all(page, "/jobs?tag=rare") == [f"job-{n:03}" for n in sorted(rare)]


# --- how they are


async def test_a_job_shows_its_last_run_its_last_runs_and_how_they_went(page: OpenPage, pool: Pool) -> None:
    job_id = await make_job(pool, name="mixed")
    for ago in range(1, 41):
        await _ran(pool, job_id, ago=60 * ago, status="FAILED" if ago in {2, 35} else "COMPLETED")
    html = await page("/jobs")

    assert html.all("svg", **{"aria-label": "30 runs: 29 completed, 1 failed"})
    assert html.all("span", title="29 of the last 30 runs completed")
    assert {"Waiting", "96.7 %", "1.0 s"} <= set(html.texts)


@pytest.mark.parametrize(
    ("last", "word"),
    [("FAILED", "Failing"), ("COMPLETED", "Waiting"), ("CANCELLED", "Failing"), ("SKIPPED", "Failing")],
)
async def test_a_repeating_job_fails_if_its_last_run_that_ended_by_itself_failed(
    page: OpenPage, pool: Pool, last: str, word: str
) -> None:
    job_id = await make_job(pool)
    await _ran(pool, job_id, ago=60, status="FAILED")
    await _ran(pool, job_id, ago=30, status=last)

    assert word in (await page("/jobs")).texts
    assert len(_jobs(await page("/jobs?state=failing"))) == (word == "Failing")


LIVE = [
    ({"status": "RUNNING"}, "Running"),
    ({"status": "RETRYING"}, "Retrying"),
    ({"status": "PENDING"}, "Waiting"),
]


@pytest.mark.parametrize(("columns", "word"), LIVE)
async def test_a_job_shows_what_it_is_doing(page: OpenPage, pool: Pool, columns: Row, word: str) -> None:
    job_id = await make_job(pool)
    await make_execution(pool, job_id=job_id, due_in_seconds=-5, **columns)
    html = await page("/jobs")

    assert word in html.texts
    assert ("since" in html.texts) == (word == "Running")


@pytest.mark.parametrize(
    ("status", "word"), [("COMPLETED", "Completed"), ("FAILED", "Failed"), ("CANCELLED", "Cancelled")]
)
async def test_a_job_that_ran_once_is_as_its_run_was(
    page: OpenPage, pool: Pool, status: str, word: str
) -> None:
    await _ran(pool, await make_job(pool, **ONCE), ago=60, status=status)

    assert word in (await page("/jobs?kind=once")).texts


async def test_a_repeating_job_without_a_next_instant_has_ended(page: OpenPage, pool: Pool) -> None:
    await make_job(pool, ends_at=await now_of(pool) - timedelta(hours=1), materialize_at=None)

    assert "Ended" in (await page("/jobs")).texts


async def test_a_page_of_busy_jobs_stays_small(ada: httpx.AsyncClient, pool: Pool) -> None:
    now = await now_of(pool)
    jobs = [
        job_row(now, name=f"Nightly report {n}", task_id=f"task-{n}", tags=["release"]) for n in range(60)
    ]
    await insert(pool, "jobs", jobs)
    for row in jobs:
        await insert(pool, "execution_history", [_uneven(now, row["job_id"], n) for n in range(30)])
    answer = await ada.get("/jobs")

    assert len(Html(answer.text).all("svg", **{"class": "run-strip"})) == 50
    assert len(gzip.compress(answer.content)) <= MOST_HTML_BYTES


async def test_failing_jobs_come_by_their_last_failure_page_by_page(page: OpenPage, pool: Pool) -> None:
    now = await now_of(pool)
    jobs = [_job(now, n, seconds_ago=1000 - n) for n in range(60)]
    await insert(pool, "jobs", jobs)
    for n, job in enumerate(jobs):
        await _ran(pool, job["job_id"], ago=5000 + n, status="FAILED")
        await _ran(pool, job["job_id"], ago=9000 - n, status="COMPLETED")
    recovered = await make_job(pool, name="recovered")
    await _ran(pool, recovered, ago=60, status="FAILED")
    await _ran(pool, recovered, ago=30)

    assert await _all(page, "/jobs?state=failing") == [f"job-{n:03}" for n in range(60)]


async def test_failing_jobs_are_narrowed_as_others_are(page: OpenPage, pool: Pool) -> None:
    for name, columns in (("mine", {"task_id": "mine"}), ("once", ONCE | {"task_id": "mine"}), ("other", {})):
        await _ran(pool, await make_job(pool, name=name, **columns), ago=60, status="FAILED")

    assert _named(await page("/jobs?state=failing&task_id=mine")) == ["mine"]
    assert _named(await page("/jobs?state=failing&kind=once")) == ["once"]
    assert len(_jobs(await page("/jobs?state=failing&kind=all"))) == 3


async def test_of_many_failures_the_newest_are_looked_at_and_the_page_says_so(
    page: OpenPage, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_list, "MOST_FAILURES", 3)
    await _ran(pool, await make_job(pool, name="long ago"), ago=600, status="FAILED")
    often = await make_job(pool, name="often")
    for ago in (10, 20, 30):
        await _ran(pool, often, ago=ago, status="FAILED")
    html = await page("/jobs?state=failing")

    assert _named(html) == ["often"]
    assert "among the newest" in html.text


async def test_jobs_that_never_ran_are_found(page: OpenPage, pool: Pool) -> None:
    now = await now_of(pool)
    names = ("never", "ran", "runs", "skipped", "planned")
    rows = [
        job_row(now, name=name, created_at=now - timedelta(days=2, seconds=n)) for n, name in enumerate(names)
    ]
    ids = {row["name"]: row["job_id"] for row in rows}
    await insert(pool, "jobs", rows)
    await _ran(pool, ids["ran"], ago=60)
    await _ran(pool, ids["skipped"], ago=60, status="SKIPPED")
    await make_execution(pool, job_id=ids["runs"], status="RUNNING", due_in_seconds=-1)
    await make_execution(pool, job_id=ids["planned"], due_in_seconds=60)

    assert _named(await page("/jobs?state=never_run")) == ["never", "skipped", "planned"]


async def test_rows_are_answered_as_they_are_now(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    kept, deleted = await make_job(pool, name="kept"), await make_job(pool, name="deleted")
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


async def test_a_row_in_place_shows_what_its_job_is_doing_now(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    job_id = await make_job(pool)
    [rows] = [found["hx-get"] for found in (await page("/jobs?state=enabled")).all("tbody")]
    await make_execution(pool, job_id=job_id, status="RUNNING", due_in_seconds=-1)
    answer = Html((await ada.get(rows, headers={"HX-Request": "true"})).text)

    assert "Running" in answer.texts
    assert "0 new" in answer.texts


def _job(now: datetime, number: int, *, seconds_ago: int) -> Row:
    return job_row(now, name=f"job-{number:03}", created_at=now - timedelta(seconds=seconds_ago))


def _uneven(now: datetime, job_id: UUID, number: int) -> Row:
    """Return a run whose length looks like chance, as those of real jobs do."""
    chance = (job_id.int % 9973 * 31 + number * 7919) % 997 / 997
    status = Status.FAILED if chance > 0.9 else Status.COMPLETED
    ended = 60 * number
    row = finished_row(now, job_id=job_id, ended_seconds_ago=ended, status=status)
    return row | {"started_at": now - timedelta(seconds=ended + 40 * chance)}


async def _ran(pool: Pool, job_id: UUID, *, ago: float, status: str = "COMPLETED") -> UUID:
    """Make a run that ended so many seconds ago."""
    return await make_finished(pool, job_id=job_id, ended_seconds_ago=ago, status=Status(status))


async def _all(page: OpenPage, address: str) -> list[str]:
    """Return the names of all jobs of a list, page by page."""
    found: list[str] = []
    following: str | None = address
    while following:
        html = await page(following)
        found += _named(html)
        following = html.link("next")
    return found


def _named(html: Html) -> list[str]:
    return [link["title"] for link in html.all("a") if "data-open" in link]


def _jobs(html: Html) -> list[str]:
    return [row["id"] for row in html.all("tr") if row.get("id", "").startswith("row-")]
