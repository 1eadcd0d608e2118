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
    assert f"status={status}" in html.all("tbody")[0]["hx-get"]
    tab = {Status.PENDING: "pending", Status.SCHEDULED: "scheduled", Status.BLOCKED: "blocked"}
    if status in {*tab, Status.RETRYING}:
        assert status.lower() in html.texts  # no tab has it alone: a chip says it
    else:
        assert [link["href"] for link in html.all("a", **{"aria-current": "page"})][1:] == [
            f"/executions?status={status}"
        ]


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


@pytest.mark.parametrize(
    "query",
    [
        "status=LOST",
        "job_id=no-id",
        "queue=%00",
        "priority=9",
        "late=2",
        "range=2d",
        "since=soon",
        "until=1x",
        "ids=1,2",
    ],
)
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
        "#tabs",
    }
    assert {"ends", "Completed"} <= set(answer.texts)
    assert [text for text in answer.texts if "taken back before it began" in text]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ("task_id=one", {"one"}),
        ("queue=bulk", {"one"}),
        ("priority=0", {"one"}),
        ("user_id=viv", {"one"}),
        ("task_id=one&queue=general", set()),
        ("task_id=one&status=COMPLETED", {"one"}),
        ("user_id=viv&status=FAILED", set()),
        ("range=1h", {"one", "other"}),
        ("range=24h", {"one", "other", "earlier"}),
        ("since=2000-01-01T00:00&until=2000-01-02T00:00", set()),
    ],
)
async def test_the_list_is_narrowed(page: OpenPage, pool: Pool, filters: str, found: set[str]) -> None:
    await make_finished(pool, task_id="one", queue="bulk", priority=0, user_id="viv")
    await make_finished(pool, task_id="other")
    await make_finished(pool, task_id="earlier", ended_seconds_ago=7200)
    html = await page(f"/executions?{filters}")

    assert set(_listed(html)) == found


async def test_each_filter_is_a_chip_that_takes_it_away(page: OpenPage, pool: Pool) -> None:
    job_id = await make_job(pool)
    await make_finished(pool, job_id=job_id)
    html = await page(
        f"/executions?status=FAILED&task_id=report&priority=2&range=24h&job_id={job_id}&include=future"
    )
    chips = {link["href"] for link in html.all("a", **{"class": "chip"})}

    assert len(chips) == 5
    assert all(link.startswith("/executions?status=FAILED&") for link in chips)
    assert {"2 normal", "last 24 hours", "future runs", str(job_id)} <= set(html.texts)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"status": Status.COMPLETED, "disposition": "late", "lateness_ms": 2500.0}, ["the_one"]),
        ({"status": Status.COMPLETED, "lateness_ms": 1999.0}, []),
        ({"status": Status.FAILED, "lateness_ms": 2500.0}, ["the_one"]),
        ({"status": Status.FAILED, "lateness_ms": 150.0}, []),
        ({"status": Status.FAILED, "lateness_ms": 150.0, "queue": "critical"}, ["the_one"]),
        ({"status": Status.CANCELLED, "lateness_ms": 2500.0}, ["the_one"]),
    ],
)
@pytest.mark.parametrize("beside", ["", "&user_id=ada", "&task_id=the_one"])
async def test_late_is_what_started_later_than_its_queue_promises(
    page: OpenPage, pool: Pool, columns: dict[str, object], found: list[str], beside: str
) -> None:
    await make_finished(pool, task_id="the_one", **columns)

    assert _listed(await page(f"/executions?late=1{beside}")) == found


@pytest.mark.parametrize(("due", "found"), [(-3.0, ["report"]), (-1.0, [])])
async def test_what_should_have_started_is_late_already(
    page: OpenPage, pool: Pool, due: float, found: list[str]
) -> None:
    await make_execution(pool, due_in_seconds=due)

    assert _listed(await page("/executions?late=1")) == found


async def test_waiting_leaves_out_what_is_planned_unless_asked(page: OpenPage, pool: Pool) -> None:
    await make_execution(pool, task_id="due", due_in_seconds=-1)
    await make_execution(pool, task_id="tomorrow", due_in_seconds=86_400)
    waiting = await page("/executions?status=WAITING")
    all_of_it = await page("/executions?status=WAITING&include=future")
    pending = await page("/executions?status=PENDING")

    assert _listed(waiting) == ["due"]
    assert (
        _listed(all_of_it) == _listed(pending) == ["tomorrow", "due"]
    )  # one status is all of it, as in the API


async def test_tabs_count_up_to_a_bound(page: OpenPage, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    now = await now_of(pool)
    owners = ("counted", "bounded")  # whom no other test asks for: answers are kept for a moment
    rows = [
        finished_row(now, ended_seconds_ago=n, status=Status.FAILED, user_id=owner)
        for owner in owners
        for n in range(12)
    ]
    await insert(pool, "execution_history", rows)
    await make_execution(pool, status=Status.RUNNING, user_id="counted")
    counted = _tabs(await page("/executions?user_id=counted"))
    monkeypatch.setattr("app.db.reads.execution_list.MOST_COUNTED", 10)
    bounded = _tabs(await page("/executions?user_id=bounded"))

    assert (counted["Failed"], counted["Running"], counted["Waiting"]) == ("12", "1", "0")
    assert bounded["Failed"] == "10+"
    assert "Completed" not in bounded


async def test_what_no_index_knows_is_looked_for_piece_by_piece(
    page: OpenPage, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says how far it looked, and the next one goes on from there: none is passed over."""
    monkeypatch.setattr("app.db.reads.execution_list.MOST_LOOKED_AT", 10)
    now = await now_of(pool)
    rows = [
        finished_row(
            now,
            ended_seconds_ago=n,
            task_id=f"rare-{n}" if n % 15 == 0 else "other",
            priority=0 if n % 15 == 0 else 2,
        )
        for n in range(50)
    ]
    await insert(pool, "execution_history", rows)
    await make_execution(pool, task_id="rare-live", priority=0, due_in_seconds=-22)
    address: str | None = "/executions?priority=0"
    found, pages = [], 0
    while address:
        html = await page(address)
        pages += 1
        found += _listed(html)
        address = html.link("next")

    assert found == ["rare-0", "rare-15", "rare-live", "rare-30", "rare-45"]
    assert pages == 6
    assert "No older executions" in html.text


async def test_who_started_it_by_hand_is_told(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    await make_task(pool)
    job_id = await make_job(pool)
    await send(ada, f"/jobs/{job_id}/run")
    html = await page("/executions")

    assert {"manual", "by ada"} <= set(html.texts)


async def test_a_run_is_measured_against_its_jobs_usual_ones(page: OpenPage, pool: Pool) -> None:
    job_id = await make_job(pool)
    now = await now_of(pool)
    usual = [finished_row(now, ended_seconds_ago=60 + n, job_id=job_id) for n in range(5)]
    await insert(pool, "execution_history", usual)
    html = await page("/executions")
    alone = await make_finished(pool, task_id="alone")
    single = await page("/executions?task_id=alone")

    meters = html.all("svg", role="img")
    assert len(meters) == 5
    assert {meter["aria-label"] for meter in meters} == {"95 of 100 runs took less than 1.0 s"}
    assert alone
    assert not single.all("svg", role="img")


async def test_the_strip_shows_what_ended_when_and_narrows_the_list(page: OpenPage, pool: Pool) -> None:
    job_id = await make_job(pool)
    await make_finished(pool, job_id=job_id, status=Status.FAILED)
    await make_finished(pool, job_id=job_id, disposition="late", lateness_ms=9000.0)
    html = await page(f"/executions?job_id={job_id}")
    text = " ".join(html.texts)
    [column] = [link["href"] for link in html.all("a", tabindex="-1")]
    narrowed = await page(column)

    assert "2 executions ended in the last 24 hours" in text
    assert "0 on time , 1 late , 1 failed ." in text
    assert f"job_id={job_id}" in column
    assert "since=" in column
    assert set(_listed(narrowed)) <= {"report"}


async def test_the_strip_of_the_whole_house_comes_from_rollups(page: OpenPage, pool: Pool) -> None:
    bucket = await pool.fetchval("SELECT date_bin('15 min', now() - interval '2 h', '2000-01-01Z')")
    row = {
        "grain_seconds": 900,
        "bucket": bucket,
        "queue": "bulk",
        "task_id": "report",
        "status": "COMPLETED",
    }
    await insert(
        pool, "rollups", [row | {"executions": 1234, "late": 34, "lateness_ms_sum": 1.0, "run_ms_sum": 1.0}]
    )
    await make_finished(pool)
    house, other, unknown = [
        " ".join((await page(f"/executions?range=7d{more}")).texts)
        for more in ("", "&queue=general", "&priority=1")
    ]
    await pool.execute("DELETE FROM onthedot.rollups")

    assert "1,234 executions ended in the last 7 days: 1,200 on time , 34 late ." in house
    assert "No execution ended in the last 7 days." in other
    assert "ended in the last" not in unknown  # rollups know no priorities


async def test_times_of_the_filter_are_the_zones_of_the_page(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    ada.cookies.set("onthedot_zone", "Asia/Kolkata")
    await make_finished(pool)
    html = await page("/executions?since=2026-01-31+09:00&until=2030-01-01T00:00:00Z")
    fields = {field["name"]: field["value"] for field in html.all("input", type="text")}

    assert fields == {"since": "2026-01-31 09:00", "until": "2030-01-01 05:30"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("status=FAILED", "Nothing has failed"),
        ("status=RUNNING", "Nothing is running"),
        ("late=1", "Nothing was late"),
        ("status=WAITING", "Show future runs too"),
        ("status=PENDING", "No executions match"),
        ("user_id=nobody", "No executions match"),
    ],
)
async def test_an_empty_list_says_what_is_missing(page: OpenPage, pool: Pool, query: str, said: str) -> None:
    await make_finished(pool)
    html = await page(f"/executions?{query}")

    assert said in html.texts
    assert html.all("a", href="/executions")


def _error(**columns: str) -> str:
    return json.dumps({"category": "unknown", "severity": "low", "fingerprint": "f"} | columns)


def _listed(html: Html) -> list[str]:
    """Return what the rows are called, from the top."""
    return [link["title"] for link in html.all("a", **{"data-open": ""})]


def _tabs(html: Html) -> dict[str, str]:
    """Return the counts of the tabs that have one."""
    names = ("Running", "Waiting", "Failed", "Late")
    return {
        word: count
        for word, count in zip(html.texts, html.texts[1:], strict=False)
        if word in names and count[0].isdigit()
    }
