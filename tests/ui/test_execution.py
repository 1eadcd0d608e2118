"""`/executions/{id}`: one execution, what became of it, and what it printed."""

import json
import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from app.db.pools import Pool
from app.domain.ids import shard_of, uuid7
from app.domain.statuses import FINAL, LIVE, Status
from tests.factories import FAILURE, insert, make_execution, make_finished, make_job, make_task, now_of
from tests.ui.conftest import OpenPage, send
from tests.ui.hostile import HOSTILE
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")
POISON = FAILURE.replace('"unknown"', '"poison"')
UNKNOWN = "01900000-0000-7000-8000-000000000000"


@pytest.mark.parametrize("status", Status)
async def test_every_status_has_a_page_that_says_what_it_means(
    page: OpenPage, pool: Pool, status: Status
) -> None:
    make = make_finished if status in FINAL else make_execution
    html = await page(f"/executions/{await make(pool, status=status)}")

    assert status.capitalize() in html.texts
    assert [text for text in html.texts if text.startswith(("It ", "A worker", "Attempt "))]
    assert html.inline_code() == []
    assert bool(html.all("section", id="now", **{"hx-swap": "outerMorph"})) == (status in LIVE)


@pytest.mark.parametrize(
    ("columns", "meaning"),
    [
        ({"status": Status.PENDING, "due_in_seconds": 600}, "It waits for its instant."),
        ({"status": Status.PENDING, "due_in_seconds": -1}, "It is due, and waits for a worker"),
        ({"status": Status.PENDING, "held": True}, "its job is paused"),
        ({"status": Status.RETRYING, "due_in_seconds": 60}, "it waits for the next one"),
        ({"status": Status.RETRYING, "due_in_seconds": -1}, "It is due, and waits for a worker"),
        ({"status": Status.FAILED, "max_attempts": 1}, "Its only attempt failed"),
        ({"status": Status.FAILED, "max_attempts": 3, "attempt_number": 3}, "all 3 attempts did"),
        ({"status": Status.FAILED}, "at attempt 1 of 4: what fails like this (unknown)"),
        (
            {"status": Status.FAILED, "error": POISON, "worker_deaths": 4},
            "It is poison: 4 worker processes have ended",
        ),
        (
            {"status": Status.RETRYING, "worker_deaths": 2},
            "2 worker processes have ended while it ran; it runs alone",
        ),
        ({"status": Status.RETRYING, "worker_deaths": 2}, "If 2 more end, it is not tried again"),
        ({"worker_deaths": 2}, "What it does again was poison; it runs alone"),
        ({"status": Status.RUNNING, "worker_deaths": 3}, "If another one ends, it is not tried again"),
        ({"status": Status.RUNNING, "worker_deaths": 3, "max_attempts": 7}, "3 for workers that ended"),
        ({"status": Status.COMPLETED, "disposition": "late"}, "started later than its queue promises"),
        ({"status": Status.CANCELLED, "started_at": None}, "cancelled before it began"),
        ({"status": Status.CANCELLED}, "cancelled while it ran"),
        ({"status": Status.SKIPPED, "disposition": "skipped_misfire"}, "It never ran: skipped misfire"),
        (
            {"status": Status.SKIPPED, "disposition": "skipped_overlap"},
            "another run of its job was under way",
        ),
        ({"status": Status.SKIPPED, "disposition": "expired"}, "it had not begun by its start deadline"),
        ({"status": Status.SKIPPED, "disposition": "expired", "error": FAILURE}, "Why it was skipped"),
    ],
)
async def test_a_status_is_explained(
    page: OpenPage, pool: Pool, columns: dict[str, Any], meaning: str
) -> None:
    make = make_finished if columns.get("status") in FINAL else make_execution

    assert meaning in (await page(f"/executions/{await make(pool, **columns)}")).text


async def test_nothing_is_said_of_workers_that_ended_where_it_means_nothing(
    page: OpenPage, pool: Pool
) -> None:
    once = await make_execution(pool, status=Status.RETRYING, worker_deaths=1)
    over = await make_finished(pool, worker_deaths=2)

    for execution_id in (once, over):
        assert "it runs alone" not in (await page(f"/executions/{execution_id}")).text


async def test_an_attempt_that_was_interrupted_has_not_failed(page: OpenPage, pool: Pool) -> None:
    now = await now_of(pool)
    execution_id = await make_execution(
        pool, status=Status.RETRYING, attempt_number=1, lease_epoch=2, due_in_seconds=-1, error=None
    )
    await _attempts(pool, execution_id, [("interrupted", 1, 1, 2)], since=now - timedelta(seconds=5))
    html = await page(f"/executions/{execution_id}")

    assert "It gave its slot to more urgent work" in html.text
    assert "Attempt 1 was interrupted" in html.texts
    assert "Interrupted" in html.texts
    assert "Failed" not in html.texts
    assert "What went wrong" not in html.text


async def test_what_does_not_exist_is_not_found(ada: httpx.AsyncClient) -> None:
    for path in ("", "/now", "/log", "/log.txt"):
        assert (await ada.get(f"/executions/{UNKNOWN}{path}")).status_code == 404


async def test_the_way_of_one_that_was_tried_again(page: OpenPage, pool: Pool) -> None:
    """Due, two attempts that failed, due again, claimed, started, completed: each with its time, in this order."""
    now = await now_of(pool)
    due = now - timedelta(seconds=100)
    planned = uuid7(int(due.timestamp() - 5) * 1_000_000)
    execution_id = await make_finished(
        pool,
        execution_id=planned,
        job_id=planned,
        scheduled_time=due,
        first_due_at=due,
        due_at=due + timedelta(seconds=60),
        claimed_at=due + timedelta(seconds=61),
        started_at=due + timedelta(seconds=62),
        completed_at=due + timedelta(seconds=65),
        attempt_number=3,
        lease_epoch=5,
        lateness_ms=10.0,
    )
    await _attempts(pool, execution_id, [("failed", 1, 10, 11), ("lost", 3, 20, 30)], since=due)
    html = await page(f"/executions/{execution_id}")

    assert _path(html) == [
        "Planned",
        "Due",
        "Attempt 1 failed",
        "Attempt 2 was lost",
        "Due again",
        "Claimed",
        "Started",
        "Completed",
    ]
    assert {"+11.0 s", "+19.0 s", "+30.0 s", "+1.0 s", "+3.0 s", "ran 1.0 s", "ran 10.0 s"} <= set(html.texts)
    assert "handed back" not in html.text
    assert {"Lost", "Failed", "Its log"} <= set(html.texts)


@pytest.mark.parametrize(
    ("columns", "steps", "here"),
    [
        ({"due_in_seconds": 600}, ["Planned", "Due", "Claimed", "Started", "Ended"], "Planned"),
        ({"due_in_seconds": -1}, ["Due", "Planned", "Claimed", "Started", "Ended"], "Planned"),
        (
            {"status": Status.SCHEDULED, "due_in_seconds": 2},
            ["Planned", "Claimed ahead", "Due", "Started", "Ended"],
            "Claimed ahead",
        ),
        (
            {"status": Status.RUNNING, "due_in_seconds": -1},
            ["Due", "Planned", "Claimed", "Started", "Ended"],
            "Started",
        ),
    ],
)
async def test_only_what_lies_behind_is_lit(
    page: OpenPage, pool: Pool, columns: dict[str, Any], steps: list[str], here: str
) -> None:
    html = await page(f"/executions/{await make_execution(pool, **columns)}")
    stages = [found["class"] for found in html.all("li") if found.get("class", "").startswith("stop ")]

    assert sorted(_path(html)) == sorted(steps)
    assert [stage for stage in stages if "stop-here" in stage] == [stages[_path(html).index(here)]]
    assert all("stop-next" in stage for stage in stages[_path(html).index(here) + 1 :])


async def test_one_that_was_cancelled_before_it_began_shows_no_steps_that_never_come(
    page: OpenPage, pool: Pool
) -> None:
    now = await now_of(pool)
    due = now + timedelta(hours=1)
    execution_id = await make_finished(
        pool,
        status=Status.CANCELLED,
        due_at=due,
        first_due_at=due,
        started_at=None,
        worker_id=None,
        attempt_number=0,
        lease_epoch=1,
    )

    assert _path(await page(f"/executions/{execution_id}")) == ["Planned", "Cancelled"]


async def test_leases_that_were_handed_back_are_told(page: OpenPage, pool: Pool) -> None:
    execution_id = await make_execution(pool, status=Status.RUNNING, lease_epoch=5)

    assert "leased 2 times and handed back" in (await page(f"/executions/{execution_id}")).text


@pytest.mark.parametrize(("lateness", "word"), [(150.0, "within"), (2500.0, "more than")])
async def test_lateness_is_held_against_what_the_queue_promises(
    page: OpenPage, pool: Pool, lateness: float, word: str
) -> None:
    html = await page(f"/executions/{await make_finished(pool, lateness_ms=lateness)}")

    assert [text for text in html.texts if text == f"{word} the 2.0 s that general promises"]


async def test_an_error_is_told_with_its_traceback_folded(page: OpenPage, pool: Pool) -> None:
    trace = "\n".join(f"frame {n}" for n in range(50))
    error = {"type": "ValueError", "message": "no such region", "category": "network", "severity": "high"}
    execution_id = await make_finished(
        pool, status=Status.FAILED, error=json.dumps(error | {"fingerprint": "abc", "traceback": trace})
    )
    html = await page(f"/executions/{execution_id}")

    assert {"ValueError", "no such region", "abc", "38 more lines"} <= set(html.texts)
    assert "network · severity high" in html.text
    assert next(text for text in html.texts if text.startswith("frame 0")).endswith("frame 11")


async def test_parameters_and_result_are_shown_and_long_ones_folded(page: OpenPage, pool: Pool) -> None:
    execution_id = await make_finished(
        pool, parameters=json.dumps({"region": "<b>eu</b>"}), result=json.dumps(list(range(200)))
    )
    html = await page(f"/executions/{execution_id}")

    assert '"region": "<b>eu</b>"' in html.text
    assert "182 more lines" in html.texts


async def test_a_megabyte_of_parameters_is_cut(ada: httpx.AsyncClient, pool: Pool) -> None:
    execution_id = await make_finished(pool, parameters=json.dumps({"blob": "x" * 1_000_000}))
    answer = await ada.get(f"/executions/{execution_id}")

    assert "984 kB more: the API has all of it." in Html(answer.text).texts
    assert len(answer.content) < 100_000


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_stays_text(page: OpenPage, pool: Pool, text: str) -> None:
    job_id = await make_job(pool, name=text, tags=[text])
    error = {
        "type": text,
        "message": text,
        "category": "unknown",
        "severity": "low",
        "fingerprint": "f",
        "traceback": text,
    }
    execution_id = await make_finished(
        pool,
        job_id=job_id,
        task_id=text,
        status=Status.FAILED,
        error=json.dumps(error),
        parameters=json.dumps({text: text}),
    )
    await _log(pool, execution_id, [text])
    html = await page(f"/executions/{execution_id}")

    assert html.inline_code() == []
    assert not [tag for tag, found in html.elements if tag == "hx-partial"]
    assert {img["alt"] for img in html.all("img")} == {""}
    assert text in html.texts or "\u202e" in text


async def test_what_belongs_together_is_linked(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    await make_task(pool)
    batch_id, job_id = uuid4(), await make_job(pool, tags=["team-a"], name="Nightly")
    execution_id = await make_finished(pool, job_id=job_id, batch_id=batch_id)
    await send(ada, f"/executions/{execution_id}/retry?follow=1")
    new_id = await pool.fetchval("SELECT execution_id FROM onthedot.executions")
    old, new = await page(f"/executions/{execution_id}"), await page(f"/executions/{new_id}")

    assert old.all("a", href=f"/executions/{new_id}")
    assert new.all("a", href=f"/executions/{execution_id}")
    assert old.all("a", href=f"/jobs/{job_id}")
    assert old.all("a", href="/tasks/report")
    assert {"team-a", "Nightly", "ada"} <= set(old.texts)
    assert old.all("span", title=str(batch_id))
    assert {"retry", "by", "ada"} <= set(new.texts)
    assert "Who did what" in old.texts


async def test_where_job_and_task_are_gone_there_are_no_links_to_them(page: OpenPage, pool: Pool) -> None:
    html = await page(f"/executions/{await make_finished(pool)}")

    assert html.texts.count("is gone") == 2
    assert not [link for link in html.all("a") if link["href"].startswith(("/jobs/", "/tasks/"))]
    assert "Run again" not in html.text  # without its job it cannot be


async def test_lines_to_copy_name_the_execution(page: OpenPage, pool: Pool) -> None:
    execution_id = await make_finished(pool)
    copied = [
        button["data-copy"]
        for button in (await page(f"/executions/{execution_id}")).all("button", type="button")
        if "data-copy" in button
    ]

    assert f"onthedot exec get {execution_id}\nonthedot exec logs -f {execution_id}" in copied
    assert [one for one in copied if one.endswith(f"/api/v1/executions/{execution_id}")]
    [statement] = [one for one in copied if one.startswith("SELECT")]
    assert len(await pool.fetch(statement)) == 1


async def test_a_viewer_sees_it_and_may_do_nothing(viv: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool)
    job_id = await make_job(pool)
    for execution_id in (await make_finished(pool, job_id=job_id), await make_execution(pool)):
        html = Html((await viv.get(f"/executions/{execution_id}")).text)
        assert [form["action"] for form in html.all("form", method="post")] == ["/logout"]
        assert not [link for link in html.all("a") if "cancel" in link["href"]]


async def test_the_part_that_changes_answers_for_itself(ada: httpx.AsyncClient, pool: Pool) -> None:
    execution_id = await make_execution(pool, status=Status.RUNNING)
    before = Html((await ada.get(f"/executions/{execution_id}/now", headers={"HX-Request": "true"})).text)
    await pool.execute("DELETE FROM onthedot.executions")
    await make_finished(pool, execution_id=execution_id, job_id=execution_id)
    after = Html((await ada.get(f"/executions/{execution_id}/now", headers={"HX-Request": "true"})).text)

    assert before.all("section", id="now")[0]["hx-get"] == f"/executions/{execution_id}/now"
    assert "Running" in before.texts
    assert "hx-get" not in after.all("section", id="now")[0]
    assert "Completed" in after.texts


async def test_a_log_shows_its_last_lines_first_and_earlier_ones_on_demand(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    execution_id = await make_finished(pool)
    await _log(pool, execution_id, [f"line {n}" for n in range(1, 1202)])
    html = await page(f"/executions/{execution_id}")
    [more] = [link for link in html.all("a") if "before=" in link["href"]]
    by_script = Html((await ada.get(more["hx-get"], headers={"HX-Request": "true"})).text)
    by_link = await page(more["href"])

    assert _numbers(html) == list(range(702, 1202))
    assert _numbers(by_script) == _numbers(by_link) == list(range(202, 702))
    assert [link for link in by_script.all("a") if "before=" in link["href"]]
    assert not [link for link in by_script.all("a") if "after=" in link.get("hx-get", "")]
    assert [link for link in by_link.all("a") if "after=" in link.get("hx-get", "")]


async def test_a_line_has_an_address_of_its_own(page: OpenPage, pool: Pool) -> None:
    execution_id = await make_finished(pool)
    await _log(pool, execution_id, [f"line {n}" for n in range(1, 1202)])
    html = await page(f"/executions/{execution_id}?attempt=1&line=300")
    [address] = [link["href"] for link in html.all("a") if link["href"].endswith("#L300")]

    assert address == f"/executions/{execution_id}?attempt=1&line=300#L300"
    assert _numbers(html) == list(range(250, 801))
    assert html.all("li", id="L300")
    assert _numbers(await page(f"/executions/{execution_id}?line=9999")) == list(range(702, 1202))


@pytest.mark.parametrize(("level", "shown"), [("", 4), ("INFO", 3), ("WARNING", 2), ("ERROR", 1)])
async def test_a_log_is_narrowed_to_a_level(page: OpenPage, pool: Pool, level: str, shown: int) -> None:
    execution_id = await make_finished(pool)
    levels = ["DEBUG", "INFO", "WARNING", "ERROR"]
    await _log(pool, execution_id, levels, levels=levels)
    html = await page(f"/executions/{execution_id}?level={level}")

    assert [text for text in html.texts if text in levels] == levels[4 - shown :]
    assert [option["value"] for option in html.all("option", selected="")] == [level] * bool(level)


async def test_streams_and_levels_are_marked(page: OpenPage, pool: Pool) -> None:
    execution_id = await make_finished(pool)
    await _log(pool, execution_id, ["out", "err"], streams=["stdout", "stderr"])
    html = await page(f"/executions/{execution_id}")

    assert html.texts[html.texts.index("out") - 1] == "stdout"
    assert html.texts[html.texts.index("err") - 1] == "stderr"
    assert html.all("li", **{"class": "line-stderr"})


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m text", "red text"),
        ("\x1b]8;;https://evil.test\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("bell \x07 rings", "bell ␇ rings"),
        ("a \u202egnp.exe", "a <U+202E>gnp.exe"),
        ("x" * 5000, f"{'x' * 2000} … 3,000 more characters"),
        ("emoji 👩‍🚀 and تحديث", "emoji 👩‍🚀 and تحديث"),
    ],
)
async def test_output_for_a_terminal_is_shown_as_text(
    page: OpenPage, pool: Pool, message: str, shown: str
) -> None:
    execution_id = await make_finished(pool)
    await _log(pool, execution_id, [message])

    assert shown in (await page(f"/executions/{execution_id}")).texts


async def test_each_attempt_has_its_log(page: OpenPage, pool: Pool) -> None:
    execution_id = await make_finished(pool, attempt_number=2)
    await _log(pool, execution_id, ["of the first"])
    await _log(pool, execution_id, ["of the second"], attempt_number=2)
    latest, first = (
        await page(f"/executions/{execution_id}"),
        await page(f"/executions/{execution_id}?attempt=1"),
    )

    assert ("of the second" in latest.texts, "of the first" in latest.texts) == (True, False)
    assert ("of the second" in first.texts, "of the first" in first.texts) == (False, True)
    assert "Log of attempt 2" in latest.texts
    assert latest.all("a", href=f"/executions/{execution_id}?attempt=1#log")


async def test_a_run_that_was_given_back_is_told_from_the_next(page: OpenPage, pool: Pool) -> None:
    """Both have the same number and count their lines from 1; only the last run's lines have addresses."""
    execution_id = await make_finished(pool)
    await _log(pool, execution_id, ["old 1", "old 2", "old 3"], seconds_ago=60)
    await _log(pool, execution_id, ["new 1", "new 2"])
    html = await page(f"/executions/{execution_id}")

    assert [text for text in html.texts if re.match(r"old|new|Its worker gave", text)] == [
        "old 1",
        "old 2",
        "old 3",
        "Its worker gave it back, and it was started again:",
        "new 1",
        "new 2",
    ]
    assert _numbers(html) == [1, 2]


async def test_the_raw_log_is_text_for_the_session(
    ada: httpx.AsyncClient, viv: httpx.AsyncClient, visitor: httpx.AsyncClient, pool: Pool
) -> None:
    execution_id = await make_finished(pool)
    await _log(pool, execution_id, ["<script>\x1b[31m", *(f"line {n}" for n in range(1200))])
    address = f"/executions/{execution_id}/log.txt"
    answer = await ada.get(address)

    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text.splitlines() == ["<script>\x1b[31m", *(f"line {n}" for n in range(1200))]
    assert (await viv.get(address)).text == answer.text
    assert (await visitor.get(address)).status_code == 303


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"status": Status.PENDING, "due_in_seconds": 60}, "No output yet: it has not started."),
        ({"status": Status.RUNNING}, "No output yet (started"),
        ({"status": Status.COMPLETED}, "It printed and logged nothing."),
        ({"status": Status.SKIPPED}, "No output: it never ran."),
    ],
)
async def test_an_empty_log_says_why(page: OpenPage, pool: Pool, columns: dict[str, Any], said: str) -> None:
    make = make_finished if columns.get("status") in FINAL else make_execution

    assert [
        text
        for text in (await page(f"/executions/{await make(pool, **columns)}")).texts
        if text.startswith(said)
    ]


async def test_a_log_goes_on_while_the_execution_runs(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    """Each answer has the lines that are new, and where to ask for the next; the last one has neither."""
    execution_id = await make_execution(pool, status=Status.RUNNING)
    [tail] = (await page(f"/executions/{execution_id}")).all("li", id="log-tail")
    await _log(pool, execution_id, ["first", "second"])
    first = Html((await ada.get(tail["hx-get"], headers={"HX-Request": "true"})).text)
    [tail] = first.all("li", id="log-tail")
    nothing = Html((await ada.get(tail["hx-get"], headers={"HX-Request": "true"})).text)
    await pool.execute("DELETE FROM onthedot.executions")
    await make_finished(pool, execution_id=execution_id, job_id=execution_id)
    await _log(pool, execution_id, ["third"], first=3)
    last = Html((await ada.get(tail["hx-get"], headers={"HX-Request": "true"})).text)

    assert _numbers(first) == [1, 2]
    assert _numbers(nothing) == []
    assert nothing.all("li", id="log-tail")[0]["hx-get"] == tail["hx-get"]
    assert _numbers(last) == [3]
    assert not last.all("li", id="log-tail")


@pytest.mark.parametrize(
    "query",
    ["level=LOUD", "line=-1", "line=x", "before=1", "after=x.y", "attempt=0", "before=" + "9" * 20 + ".1"],
)
async def test_a_log_query_that_is_none_is_refused(ada: httpx.AsyncClient, pool: Pool, query: str) -> None:
    execution_id = await make_finished(pool)

    assert (await ada.get(f"/executions/{execution_id}?{query}")).status_code == 400


async def _log(
    pool: Pool,
    execution_id: UUID,
    messages: list[str],
    *,
    attempt_number: int = 1,
    first: int = 1,
    seconds_ago: float = 0,
    levels: list[str] | None = None,
    streams: list[str] | None = None,
) -> None:
    begins = await now_of(pool) - timedelta(seconds=seconds_ago)
    rows = [
        {
            "shard": shard_of(execution_id),
            "execution_id": execution_id,
            "attempt_number": attempt_number,
            "sequence": first + i,
            "time": begins + timedelta(milliseconds=i),
            "level": levels[i] if levels else "INFO",
            "stream": streams[i] if streams else "log",
            "message": message.replace("\0", "␀"),
        }
        for i, message in enumerate(messages)
    ]
    await insert(pool, "execution_logs", rows)


async def _attempts(
    pool: Pool, execution_id: UUID, attempts: list[tuple[str, int, float, float]], *, since: Any
) -> None:
    """Insert attempts: outcome, lease epoch, and when they began and ended, in seconds."""
    rows = [
        {
            "shard": shard_of(execution_id),
            "execution_id": execution_id,
            "attempt_number": number,
            "lease_epoch": epoch,
            "worker_id": uuid4(),
            "started_at": since + timedelta(seconds=began),
            "ended_at": since + timedelta(seconds=ended),
            "outcome": outcome,
            "error": json.dumps(
                {"type": "E", "message": "m", "category": "unknown", "severity": "low", "fingerprint": "f"}
            ),
        }
        for number, (outcome, epoch, began, ended) in enumerate(attempts, 1)
    ]
    await insert(pool, "attempts", rows)


def _path(html: Html) -> list[str]:
    words = {
        "Planned",
        "Due",
        "Due again",
        "Claimed",
        "Claimed ahead",
        "Started",
        "Ended",
        "Completed",
        "Failed",
        "Cancelled",
    }
    begins = (
        html.texts.index(
            next(text for text in html.texts if text.startswith(("It ", "A worker", "Attempt ")))
        )
        + 1
    )
    ends = html.texts.index("Started late by")
    return [text for text in html.texts[begins:ends] if text in words or re.fullmatch(r"Attempt \d .*", text)]


def _numbers(html: Html) -> list[int]:
    return [int(line["id"][1:]) for line in html.all("li") if re.fullmatch(r"L\d+", line.get("id", ""))]


async def test_what_it_waits_for_is_said_with_where_to_go(page: OpenPage, pool: Pool) -> None:
    job_id = await make_job(pool, is_active=False, pause_reason="<i>the migration</i>", materialize_at=None)
    execution_id = await make_execution(pool, job_id=job_id, held=True, due_in_seconds=60)
    html = await page(f"/executions/{execution_id}")

    assert html.all("ul", **{"class": "why"})
    assert "is paused by sql:onthedot: <i>the migration</i>" in html.text, [
        t for t in html.texts if "paused" in t
    ]
    assert "No live worker serves the queue general." in html.texts
    assert html.all("a", href=f"/jobs/{job_id}")
    assert not (await page(f"/executions/{await make_finished(pool)}")).all("ul", **{"class": "why"})


async def test_a_picture_has_words_or_is_hidden_from_those_who_hear_the_page(
    page: OpenPage, pool: Pool
) -> None:
    job_id = await make_job(pool)
    done = [await make_finished(pool, job_id=job_id, ended_seconds_ago=n) for n in range(20)]
    pictures = (await page(f"/executions/{done[0]}")).all("svg")

    assert any("meter" in picture.get("class", "") for picture in pictures)
    assert [one for one in pictures if not one.get("aria-label") and one.get("aria-hidden") != "true"] == []
