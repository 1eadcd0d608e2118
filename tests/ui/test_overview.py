"""`/`: the verdict, tiles, lists and first steps."""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import httpx
import msgspec
import pytest

from app.db.pools import Pool
from app.db.stores.rollups import RollupStore
from app.domain.jobs import JobRequest
from app.domain.statuses import Status
from app.domain.tasks import TaskRequest
from app.tasks import handlers_in
from app.ui.house import House
from tests.factories import insert, job_row, make_execution, make_finished, make_job, make_task, now_of
from tests.ui.conftest import OpenPage, Site, send
from tests.ui.hostile import HOSTILE
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(autouse=True)
def nothing_remembered(site: Site) -> None:
    """Let each test read anew what the overview keeps for a moment."""
    house: House = site.house
    house._overview._begun = None
    for reads in (house._overview, house._rates, house._queues._paces):
        for kept in vars(reads).values():
            if hasattr(kept, "_answers"):
                kept._answers.clear()


async def test_a_new_house_is_not_called_broken_but_says_how_to_begin(page: OpenPage) -> None:
    html = await page("/")
    bodies = re.findall(r"-d '(.*?)'", html.text, re.DOTALL)

    assert "No worker is connected yet" in html.texts
    assert "0 of 4" in html.text
    assert "http://onthedot.test/api/v1/jobs" in html.text
    assert msgspec.json.decode(bodies[0], type=TaskRequest).task_id == "hello"
    assert msgspec.json.decode(bodies[1], type=JobRequest).task_id == "hello"


async def test_the_handler_that_is_shown_is_one(page: OpenPage) -> None:
    code = next(text for text in (await page("/")).texts if "async def hello" in text)
    module = type(json)("hello_tasks")
    exec(compile(code, "hello_tasks.py", "exec"), vars(module))  # noqa: S102 - ours

    assert set(handlers_in([module])) == {"hello"}


async def test_steps_that_were_taken_are_told_by_what_there_is(page: OpenPage, pool: Pool) -> None:
    await _worker(pool)
    await make_task(pool)
    two = await page("/")
    await make_finished(pool, job_id=await make_job(pool))
    all_taken = await page("/")

    assert "2 of 4" in two.text
    assert len([item for item in two.all("li") if item.get("class", "").startswith("step step-done")]) == 2
    assert "First steps" not in all_taken.texts


async def test_all_is_well(page: OpenPage, pool: Pool) -> None:
    await _begun(pool)
    html = await page("/")

    assert "All is well: nothing fails, nothing is late" in html.texts
    assert "1 worker live" in html.texts
    assert html.all("div", **{"data-level": "good"})


async def test_jobs_whose_last_run_failed_are_failing(page: OpenPage, pool: Pool) -> None:
    """One fails for the second time, one has recovered, one was deleted, one failed two days ago."""
    await _begun(pool)
    await _make_room_for_the_day_before_yesterday(pool)
    fails, recovers, long_ago = [
        await make_job(pool, name=name) for name in ("fails", "recovers", "long ago")
    ]
    for job_id, status, ago in (
        (fails, Status.COMPLETED, 900),
        (fails, Status.FAILED, 600),
        (fails, Status.FAILED, 300),
        (recovers, Status.FAILED, 300),
        (recovers, Status.COMPLETED, 60),
        (uuid4(), Status.FAILED, 30),
        (long_ago, Status.FAILED, 30 * 3600),
    ):
        await make_finished(pool, job_id=job_id, status=status, ended_seconds_ago=ago)
    html = await page("/")

    assert "1 job failing" in html.texts
    assert _tile(html, 1) == ["Failing", "1", "jobs, by their last run within a day"]
    assert [row["id"] for row in html.all("tr") if row.get("id", "").startswith("failing-")] == [
        f"failing-{fails}"
    ]
    assert {"fails", "RuntimeError: no", "2"} <= set(html.texts)
    assert html.all("a", href=f"/executions?status=FAILED&job_id={fails}")
    assert html.all("div", **{"data-level": "bad"})
    assert "(1) Overview · onthedot" in html.texts


async def test_what_waits_longer_than_promised_is_late(page: OpenPage, pool: Pool) -> None:
    await _begun(pool)
    await make_execution(pool, task_id="overdue", due_in_seconds=-125)
    await make_execution(pool, task_id="just_due", due_in_seconds=-0.5)
    await make_execution(pool, task_id="critical_one", queue="critical", due_in_seconds=-0.7)
    html = await page("/")

    assert "2 late" in html.texts
    assert _tile(html, 2)[1] == "2"
    assert {"overdue", "critical_one"} <= set(html.texts)
    assert "just_due" not in html.texts
    assert [text for text in html.texts if text.startswith("2 min")]
    assert html.all("div", **{"data-level": "warn"})


async def test_what_waits_for_a_limit_or_in_a_paused_queue_is_not_late(page: OpenPage, pool: Pool) -> None:
    """Of what a limit leaves room for as much is late as it would let begin."""
    await _begun(pool)
    await insert(
        pool, "users", [{"user_id": "eve", "name": "eve", "role": "operator", "max_concurrent_jobs": 3}]
    )
    await pool.execute("UPDATE onthedot.queues SET paused_at = now() WHERE queue = 'bulk'")
    late = {"due_in_seconds": -60, "limited": True}
    for columns in [{"user_id": "eve", "queue": "critical"}] * 5 + [{"concurrency_key": "k"}] * 3:
        await make_execution(pool, **late | columns)
    await make_execution(pool, queue="bulk", due_in_seconds=-60)
    for key, count in (("user:eve", 2), ("key:k", 1)):
        rows = [{"key": key, "execution_id": uuid4(), "shard": 0, "lease_epoch": 1} for _ in range(count)]
        await insert(pool, "limit_holders", rows)
    html = await page("/")

    assert "1 late" in html.texts


async def test_without_a_worker_nothing_runs_and_that_is_said(page: OpenPage, pool: Pool) -> None:
    await make_finished(pool, job_id=await make_job(pool))

    assert "No worker is alive: nothing runs" in (await page("/")).texts


async def test_a_worker_that_got_lost_is_told_of(page: OpenPage, pool: Pool) -> None:
    await _begun(pool)
    await _worker(pool, heartbeat_ago=timedelta(minutes=5))

    assert "Nothing fails and nothing is late, but 1 worker got lost" in (await page("/")).texts


async def test_what_comes_next_counts_down_and_can_be_run_now(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    await _begun(pool)
    job_id = await make_job(pool, name="soon")
    for seconds in (200, 100, 300):
        await make_execution(pool, job_id=job_id, due_in_seconds=seconds)
    html = await page("/")
    answer = await send(ada, f"/jobs/{job_id}/run", {"next": "/"})

    assert [text for text in html.texts if text.startswith("in ")][:3] == ["in 1 min", "in 3 min", "in 4 min"]
    assert html.all("form", action=f"/jobs/{job_id}/run")
    assert len(html.all("a", href=f"/jobs/{job_id}")) == 3
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_what_belongs_to_a_deleted_job_is_not_offered_to_run(page: OpenPage, pool: Pool) -> None:
    await _begun(pool)
    execution_id = await make_execution(pool, status=Status.RETRYING, due_in_seconds=100)
    html = await page("/")

    assert html.all("a", href=f"/executions/{execution_id}")
    assert [form["action"] for form in html.all("form", method="post") if "jobs" in form["action"]] == []


async def test_what_ended_is_drawn_and_counted(page: OpenPage, pool: Pool) -> None:
    await _begun(pool)
    since: datetime = await pool.fetchval(
        "UPDATE onthedot.rollup_state SET rolled_until = date_bin('15 min', now() - interval '3 h', '2000-01-01Z')"
        " RETURNING rolled_until"
    )
    job_id, store = await make_job(pool), RollupStore(pool)
    for i in range(40):
        status = Status.FAILED if i % 10 == 0 else Status.COMPLETED
        await make_finished(pool, job_id=job_id, status=status, ended_seconds_ago=60 + 200 * i)
    while (await store.roll_up(longest_seconds=3600, behind_seconds=15)).more:  # type: ignore[union-attr]
        pass
    day, hour = await page("/?span=24h"), await page("/?span=1h")

    assert since
    assert _tile(day, 5)[:2] == ["Success", "90.0 %"]
    assert {"36 completed", "4 failed"} <= set(day.texts)
    assert len(day.all("rect", **{"class": "hit"})) == 96
    assert len(hour.all("rect", **{"class": "hit"})) == 60
    assert {"15 completed"} <= set(hour.texts) or {"16 completed"} <= set(hour.texts)


async def test_queues_tell_what_runs_and_waits(page: OpenPage, pool: Pool) -> None:
    await _begun(pool)
    for _ in range(3):
        await make_execution(pool, status=Status.RUNNING, queue="bulk")
    await make_execution(pool, queue="bulk", due_in_seconds=-90)
    html = await page("/")

    assert _tile(html, 3)[1:] == ["3", "of 10 slots"]
    assert _tile(html, 4)[1] == "1"
    assert html.all("svg", **{"aria-label": "3 of 10 slots"})


async def test_a_queue_is_paused_with_a_reason_and_goes_on(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    asked = await page("/queues/bulk/pause")
    paused = await send(ada, "/queues/bulk/pause", {"reason": "the warehouse is down"})
    html = await page("/")
    resumed = await send(ada, "/queues/bulk/resume")

    assert asked.all("input", name="reason")
    assert (paused.status_code, resumed.status_code) == (303, 303)
    assert html.all("span", title="the warehouse is down")
    assert "The queue bulk is paused." in html.texts
    assert await pool.fetchval("SELECT paused_at IS NULL FROM onthedot.queues WHERE queue = 'bulk'")


@pytest.mark.parametrize("path", ["/queues/bulk/pause", "/queues/bulk/resume"])
async def test_a_viewer_pauses_no_queue(viv: httpx.AsyncClient, path: str) -> None:
    assert (await send(viv, path)).status_code == 403


async def test_a_viewer_sees_no_buttons(viv: httpx.AsyncClient, pool: Pool) -> None:
    await _begun(pool)
    await make_finished(pool, job_id=await make_job(pool), status=Status.FAILED)
    html = Html((await viv.get("/")).text)

    assert [form["action"] for form in html.all("form", method="post")] == ["/logout"]
    assert not [link for link in html.all("a") if "hx-get" in link]


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_and_errors_stay_text(page: OpenPage, pool: Pool, name: str) -> None:
    await _begun(pool)
    job_id = await make_job(pool, name=name, task_id=name)
    error = {"type": name, "message": name, "category": "unknown", "severity": "low", "fingerprint": "f"}
    await make_finished(pool, job_id=job_id, status=Status.FAILED, error=json.dumps(error))
    await make_execution(pool, job_id=job_id, due_in_seconds=-60)
    await make_execution(pool, job_id=job_id, due_in_seconds=60)
    html = await page("/")

    assert html.texts.count(name) == 3
    assert html.inline_code() == []
    assert not [tag for tag, found in html.elements if tag == "script" and "src" not in found]


async def test_scripts_are_answered_with_what_the_page_shows_as_it_is_now(
    ada: httpx.AsyncClient, pool: Pool
) -> None:
    await _begun(pool)
    answer = await ada.get("/overview/now?span=1h", headers={"HX-Request": "true"})
    html = Html(answer.text)

    assert html.all("div", id="overview", **{"hx-get": "/overview/now?span=1h"})
    assert not html.all("html")


@pytest.mark.parametrize("path", ["/", "/jobs", "/executions", "/tasks"])
async def test_the_bar_of_every_page_says_what_is_wrong(page: OpenPage, pool: Pool, path: str) -> None:
    await _begun(pool)
    await make_finished(pool, job_id=await make_job(pool), status=Status.FAILED)
    await make_execution(pool, due_in_seconds=-60)
    html = await page(path)

    assert {"/jobs?state=failing", "/executions?late=1"} <= {link["href"] for link in html.all("a")}
    assert html.all("div", id="trouble", **{"data-level": "bad", "data-failing": "1"})
    assert any(text.startswith("(1) ") for text in html.texts)


async def test_the_bar_says_nothing_where_nothing_is_wrong(ada: httpx.AsyncClient, pool: Pool) -> None:
    await _begun(pool)
    html = Html((await ada.get("/ui/trouble", headers={"HX-Request": "true"})).text)

    assert html.all("div", id="trouble", **{"data-level": "good", "data-failing": ""})
    assert not html.all("a")


async def test_what_was_remembered_is_forgotten_with_a_change(site: Site, page: OpenPage, pool: Pool) -> None:
    await _begun(pool)
    before = _tile(await page("/"), 2)[1]
    await make_execution(pool, due_in_seconds=-60)
    remembered = _tile(await page("/"), 2)[1]
    site.change_feed.version += 1
    after = _tile(await page("/"), 2)[1]

    assert (before, remembered, after) == ("0", "0", "1")


async def test_a_span_that_is_none_is_refused(ada: httpx.AsyncClient) -> None:
    assert (await ada.get("/?span=1y")).status_code == 400


async def test_it_stays_small_however_much_there_is(ada: httpx.AsyncClient, pool: Pool) -> None:
    await _begun(pool)
    now = await now_of(pool)
    jobs = [job_row(now, name=f"A job with quite a long name {n}") for n in range(30)]
    await insert(pool, "jobs", jobs)
    for job in jobs:
        await make_finished(pool, job_id=job["job_id"], status=Status.FAILED)
        for seconds in (-100, 100):
            await make_execution(pool, job_id=job["job_id"], due_in_seconds=seconds)
    html = Html((await ada.get("/")).text)

    assert _tile(html, 1)[1] == _tile(html, 2)[1] == "30"
    assert len([row for row in html.all("tr") if row.get("id", "").startswith("failing-")]) == 8
    assert len([item for item in html.all("li") if item.get("id", "").startswith("next-")]) == 10


def _tile(html: Html, number: int) -> list[str]:
    """Return name, number and note of a tile."""
    names = {1: "Failing", 2: "Late", 3: "Running", 4: "Waiting", 5: "Success"}
    at = html.texts.index(names[number])
    return html.texts[at : at + 3]


async def _begun(pool: Pool) -> None:
    """Take the first steps."""
    await _worker(pool)
    await make_task(pool)
    await make_finished(pool, job_id=await make_job(pool))


async def _worker(pool: Pool, *, heartbeat_ago: timedelta = timedelta()) -> None:
    columns: Mapping[str, object] = {"host": "here", "pid": 1, "version": "0", "queues": [], "slots": 10}
    heartbeat = {"heartbeat_at": await now_of(pool) - heartbeat_ago}
    await insert(pool, "workers", [{"worker_id": UUID(int=uuid4().int)} | dict(columns) | heartbeat])


async def _make_room_for_the_day_before_yesterday(pool: Pool) -> None:
    """Make the partition that a new database has no use for."""
    today = await pool.fetchval("SELECT (now() AT TIME ZONE 'UTC')::date")
    first, last = today - timedelta(days=2), today - timedelta(days=1)
    table = "onthedot.execution_history"
    await pool.execute(
        f"CREATE TABLE IF NOT EXISTS {table}_{first:%Y%m%d} PARTITION OF {table}"
        f" FOR VALUES FROM ('{first} 00:00+00') TO ('{last} 00:00+00')"
    )
