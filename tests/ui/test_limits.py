"""What pages say of limits: how they are set by forms, what holds for a job, and what an execution waits for."""

from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest

from app.db.pools import Pool
from app.domain.ids import shard_of
from app.domain.limits import RateLimit
from app.domain.statuses import Status
from app.ui.limit_words import at_once_words, label_words, needs_words, rate_words
from tests.factories import insert, make_execution, make_job, make_task
from tests.ui.conftest import OpenPage, send
from tests.ui.parsed import Html
from tests.ui.test_job_form import fields_of
from tests.ui.test_task_form import NEW

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "tenant:{{parameters.tenant}}"
HOURLY = {
    "task_id": "report",
    "schedule.type": "RECURRING",
    "schedule.expression": "0 * * * *",
    "schedule.timezone": "UTC",
}
LIMITED = {
    "labels": "region=eu, gpu=a100",
    "concurrency": "3",
    "concurrency_key": KEY,
    "concurrency_limit": "2",
    "rate_limit.per_second": "0.5",
    "rate_limit.burst": "10",
}


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (RateLimit(per_second=1), "1 a second begins"),
        (RateLimit(per_second=2.5, burst=1), "2.5 a second begin"),
        (RateLimit(per_second=1000, burst=5000), "1,000 a second begin, 5,000 at once after a rest"),
        (RateLimit(per_second=0.1), "one begins every 10 s"),
    ],
)
async def test_a_rate_is_told_as_people_say_it(rate: RateLimit, words: str) -> None:
    assert rate_words(rate) == words


async def test_numbers_and_labels_are_told_as_people_say_them() -> None:
    assert [at_once_words(1), at_once_words(1200)] == ["one at a time", "at most 1,200 at once"]
    assert [needs_words(1, 0), needs_words(0.5, 2048), needs_words(0, 0)] == [
        "1 core",
        "0.5 cores, 2,048 MiB",
        "",
    ]
    assert label_words({"region": "eu", "gpu": "a100"}) == ["gpu=a100", "region=eu"]


async def test_a_new_job_offers_ways_to_overlap_and_the_default_is_chosen(page: OpenPage) -> None:
    html = await page("/jobs/new")
    ways = html.all("input", type="radio", name="overlap")

    assert [way["value"] for way in ways] == ["allow", "queue", "skip", "cancel_running"]
    assert [way["value"] for way in ways if "checked" in way] == ["allow"]
    assert "Both run. This is the default." in html.texts


async def test_a_job_is_made_with_its_limits_and_opened_with_them(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    await make_task(pool)
    limits = {
        "overlap": "skip",
        "concurrency_key": KEY,
        "concurrency_limit": "2",
        "expires_after_seconds": "5",
    }
    answer = await send(ada, "/jobs/new", HOURLY | limits)
    row = await pool.fetchrow("SELECT overlap, concurrency_key, concurrency_limit FROM onthedot.jobs")
    opened = fields_of(await page(f"{answer.headers['location']}/edit"))

    assert tuple(row or ()) == ("skip", KEY, 2)
    assert {name: opened[name] for name in limits} == limits


@pytest.mark.parametrize(
    ("changes", "stored"),
    [
        ({"name": "x"}, ("queue", "k", 2)),
        ({"overlap": "allow"}, ("allow", "k", 2)),
        ({"overlap": "cancel_running", "concurrency_limit": ""}, ("cancel_running", "k", None)),
        ({"concurrency_key": "", "concurrency_limit": ""}, ("queue", None, None)),
    ],
)
async def test_an_edit_changes_the_limits_that_were_changed(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage, changes: dict[str, str], stored: tuple[Any, ...]
) -> None:
    await make_task(pool)
    job_id = await make_job(pool, overlap="queue", concurrency_key="k", concurrency_limit=2)
    answer = await send(ada, f"/jobs/{job_id}/edit", fields_of(await page(f"/jobs/{job_id}/edit")) | changes)
    row = await pool.fetchrow("SELECT overlap, concurrency_key, concurrency_limit FROM onthedot.jobs")

    assert answer.status_code == 303
    assert tuple(row or ()) == stored


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("overlap", "both", "Invalid enum value"),
        ("concurrency_key", "tenant:{{tenant}}", "write {{parameters.NAME}}"),
        ("concurrency_limit", "0", "&gt;= 1"),
        ("concurrency_limit", "two", "is not a number"),
        ("expires_after_seconds", "-1", "&gt; 0"),
    ],
)
async def test_what_is_wrong_with_a_jobs_limits_stands_beside_its_field(
    ada: httpx.AsyncClient, pool: Pool, name: str, value: str, told: str
) -> None:
    await make_task(pool)
    answer = await send(ada, "/jobs/new", HOURLY | {"concurrency_key": "mine"} | {name: value})
    html = Html(answer.text)

    assert answer.status_code == 400
    assert html.all("a", href=f"#field-{name}")
    assert html.all("input", id=f"field-{name}", **{"aria-invalid": "true"})
    assert told in answer.text
    assert name == "overlap" or html.all("input", name=name, value=value)
    assert name == "concurrency_key" or html.all("input", name="concurrency_key", value="mine")


async def test_the_commands_of_a_form_say_its_limits(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool)
    limits = {"overlap": "skip", "concurrency_key": "a b", "concurrency_limit": "2"}
    answer = await send(ada, "/ui/schedule/preview", HOURLY | limits)
    usual = await send(ada, "/ui/schedule/preview", HOURLY | {"overlap": "allow"})

    for text in ("--overlap skip", "--concurrency-key &#39;a b&#39;", "--concurrency-limit 2"):
        assert text in answer.text
    assert "overlap" not in usual.text


async def test_a_jobs_policy_tells_all_limits_that_its_runs_come_under(pool: Pool, page: OpenPage) -> None:
    await pool.execute(
        "UPDATE onthedot.users SET max_concurrent_jobs = 2, max_jobs_per_hour = 1000 WHERE user_id = 'ada'"
    )
    await insert(pool, "queues", [{"queue": "narrow", "max_concurrency": 1, "rate_per_second": 2.0}])
    await make_task(
        pool, queue="narrow", concurrency=3, concurrency_key=KEY, rate_per_second=0.5, labels='{"gpu": "a100"}',
        cpu_cores=1.0, memory_mb=512,
    )  # fmt: skip
    shared = (await page(f"/jobs/{await make_job(pool)}")).text
    own = (
        await page(f"/jobs/{await make_job(pool, overlap='queue', concurrency_key='x', concurrency_limit=4)}")
    ).text

    assert f"Concurrency key\n{KEY}: one at a time\nfrom the task" in shared
    assert "Runs of its task\nat most 3 at once; one begins every 2 s, of each key" in shared
    assert "Runs in its queue\none at a time; 2 a second begin" in shared
    assert "Runs of its owner\nat most 2 at once; 1,000 an hour" in shared
    assert "Takes\n1 core, 512 MiB\nfrom the task" in shared
    assert "Runs where\ngpu=a100\nfrom the task" in shared
    assert "Overlap\nwaits until the earlier run has ended" in own
    assert "Concurrency key\nx: at most 4 at once\nWhen" not in own
    assert "Concurrency key\nx: at most 4 at once\nRuns of its task" in own


async def test_of_what_is_not_limited_nothing_is_said(pool: Pool, page: OpenPage) -> None:
    await make_task(pool)
    html = await page(f"/jobs/{await make_job(pool)}")

    assert not {"Concurrency key", "Runs of its task", "Runs in its queue", "Takes", "Runs where"} & set(
        html.texts
    )


async def test_a_task_is_made_with_its_limits_and_opened_with_them(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    answer = await send(ada, "/tasks/-/new?kind=http", NEW | LIMITED)
    row = dict(await pool.fetchrow("SELECT * FROM onthedot.tasks") or {})
    shown, opened = await page("/tasks/sync.customers"), fields_of(await page("/tasks/sync.customers/edit"))

    assert answer.status_code == 303
    assert msgspec.json.decode(row["labels"]) == {"region": "eu", "gpu": "a100"}
    assert [row[name] for name in ("concurrency", "concurrency_key", "concurrency_limit")] == [3, KEY, 2]
    assert [row["rate_per_second"], row["rate_burst"]] == [0.5, 10]
    assert {name: opened[name] for name in LIMITED} == LIMITED | {"labels": "gpu=a100, region=eu"}
    for text in (
        "gpu=a100",
        "at most 3 at once",
        KEY,
        "one begins every 2 s, 10 at once after a rest, of each key",
    ):
        assert text in shown.texts or f"\n{text}" in shown.text
    assert "0.5 cores, 256 MiB" in shown.texts


async def test_what_is_emptied_in_a_tasks_form_limits_no_more(ada: httpx.AsyncClient, pool: Pool) -> None:
    await send(ada, "/tasks/-/new?kind=http", NEW | LIMITED)
    emptied = NEW | {"priority": "2", "version": "1"} | dict.fromkeys(LIMITED, "")
    answer = await send(ada, "/tasks/sync.customers/edit?kind=http", emptied)
    row = dict(await pool.fetchrow("SELECT * FROM onthedot.tasks") or {})

    assert answer.status_code == 303
    assert row["labels"] == "{}"
    assert {row[name] for name in ("concurrency", "concurrency_key", "rate_per_second", "rate_burst")} == {
        None
    }


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"labels": "gpu"}, "labels"),
        ({"labels": "GPU=a100"}, "labels"),
        ({"labels": "gpu="}, "labels"),
        ({"concurrency": "0"}, "concurrency"),
        ({"concurrency": "few"}, "concurrency"),
        ({"concurrency_key": "{{tenant}}"}, "concurrency_key"),
        ({"concurrency_key": "x" * 201}, "concurrency_key"),
        ({"concurrency_limit": "1.5"}, "concurrency_limit"),
        ({"rate_limit.per_second": "0"}, "rate_limit.per_second"),
        ({"rate_limit.per_second": ""}, "rate_limit.per_second"),
        ({"rate_limit.burst": "0"}, "rate_limit.burst"),
    ],
    ids=str,
)
async def test_what_is_wrong_with_a_tasks_limits_stands_beside_its_field(
    ada: httpx.AsyncClient, fields: dict[str, str], place: str
) -> None:
    answer = await send(ada, "/tasks/-/new?kind=http", NEW | LIMITED | fields)
    html = Html(answer.text)

    assert answer.status_code == 400
    assert [one["name"] for one in html.all("input", **{"aria-invalid": "true"})] == [place]
    assert html.all("input", name=place, value=fields[place])


async def test_what_waits_for_a_limit_leads_to_those_who_hold_it(pool: Pool, page: OpenPage) -> None:
    await make_task(pool, concurrency=1)
    holder = await make_execution(pool, status=Status.RUNNING)
    await _hold(pool, "task:report", holder)
    html = await page(f"/executions/{await make_execution(pool, limited=True, due_in_seconds=-1)}")

    assert "It is due, and a limit keeps it waiting." in html.text
    assert "The task report has 1 of 1 under way:" in html.texts
    assert html.all("a", href=f"/executions/{holder}", title=str(holder))
    assert html.all("a", href="/tasks/report")


async def test_an_id_in_the_name_of_a_key_leads_nowhere(pool: Pool, page: OpenPage) -> None:
    key = "01900000-0000-7000-8000-000000000000"
    await make_task(pool)
    holder = await make_execution(pool, status=Status.RUNNING)
    await _hold(pool, f"key:{key}", holder)
    waits = await make_execution(pool, limited=True, concurrency_key=key, concurrency_limit=1)
    html = await page(f"/executions/{waits}")

    assert f"The concurrency key {key} has 1 of 1 under way:" in html.texts
    assert html.all("a", href=f"/executions/{holder}", title=str(holder))
    assert not html.all("a", href=f"/executions/{key}")


async def _hold(pool: Pool, key: str, execution_id: UUID) -> None:
    row = {"key": key, "execution_id": execution_id, "shard": shard_of(execution_id), "lease_epoch": 1}
    await insert(pool, "limit_holders", [row])
