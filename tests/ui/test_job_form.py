"""`/jobs/new` and `/jobs/{id}/edit`: the form of a job."""

import gzip
import json
import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.db.pools import Pool
from tests.factories import insert, make_job, make_task, task_row
from tests.ui.conftest import OpenPage, send
from tests.ui.hostile import HOSTILE
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCHEMA = {
    "type": "object",
    "required": ["version"],
    "additionalProperties": False,
    "properties": {
        "version": {"type": "string", "description": "What to roll out"},
        "share": {"type": "integer", "maximum": 100, "default": 25},
        "region": {"enum": ["eu", "us"]},
    },
}
DAILY = {
    "schedule.type": "RECURRING",
    "schedule.expression": "30 2 * * *",
    "schedule.timezone": "America/New_York",
}
FOLLOWING = {"updated_at", "version", "materialize_at", "materialized_until"}
"""Columns that change with every change."""
NIGHTLY: dict[str, Any] = {
    "schedule_type": "RECURRING",
    "expression": "0 2 * * *",
    "timezone": "Europe/Berlin",
    "timezone_requested": "Europe/Berlin",
    "every_seconds": None,
    "starts_at": None,
}


def fields_of(html: Html) -> dict[str, str]:
    """Return what a browser would send of the form, as it was opened."""
    found = {
        one["name"]: one.get("value", "")
        for one in html.all("input")
        if "name" in one and one.get("type") not in {"radio", "search", "checkbox"}
    }
    found |= {one["name"]: one["value"] for one in html.all("input", type="radio") if "checked" in one}
    return {
        name: value for name, value in found.items() if name not in {"csrf", "preset", "preview"}
    } | chosen(html)


def chosen(html: Html) -> dict[str, str]:
    """Return the values of selects and text areas."""
    found, select, area = {}, "", ""
    for tag, attributes in html.elements:
        if tag == "select":
            select = attributes["name"]
        elif tag == "option" and select and ("selected" in attributes or select not in found):
            found[select] = attributes.get("value", "")
        elif tag == "textarea":
            area = attributes["name"]
    if area:
        found[area] = next((text for text in html.texts if text.startswith("{")), "")
    return found


async def sent(client: httpx.AsyncClient, path: str, fields: dict[str, Any]) -> Html:
    """Send a form that is shown again, and return the page."""
    answer = await send(client, path, fields)
    assert answer.status_code in {200, 400, 412}, answer.text
    return Html(answer.text)


async def only_job(pool: Pool) -> dict[str, Any]:
    """Return the one job there is."""
    [row] = await pool.fetch("SELECT * FROM onthedot.jobs")
    return dict(row) | {"parameters": json.loads(row["parameters"])}


async def test_a_task_and_when_are_enough(ada: httpx.AsyncClient, pool: Pool, page: OpenPage) -> None:
    await make_task(pool, task_id="report")
    opened = fields_of(await page("/jobs/new?task=report"))
    answer = await send(ada, "/jobs/new", opened)

    job = await only_job(pool)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job['job_id']}")
    assert (job["task_id"], job["user_id"], job["expression"], job["timezone"]) == (
        "report",
        "ada",
        "0 2 * * *",
        "UTC",
    )
    assert (job["queue"], job["priority"], job["max_retries"], job["timeout_seconds"], job["name"]) == (
        None,
    ) * 5
    assert (job["misfire"], job["misfire_grace_seconds"], job["gap"], job["fold"]) == (
        "run_once",
        60,
        "run_after_gap",
        "first",
    )


async def test_all_that_a_job_can_say_can_be_said(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool, task_id="report")
    await send(
        ada,
        "/jobs/new",
        DAILY
        | {
            "task_id": " report ", "name": "Nightly", "tags": "ios, night  x",
            "parameters": '{"n": 9007199254740993}',
            "schedule.starts_at": "2030-01-01 00:00", "schedule.ends_at": "2031-01-01T00:00:00Z",
            "schedule.gap": "skip", "schedule.fold": "both", "schedule.misfire": "run_all",
            "schedule.misfire_grace_seconds": "1.5", "queue": "general", "priority": "0", "max_retries": "7",
            "timeout_seconds": "0.5", "schedule.every": "15", "schedule.scheduled_time": "left over",
        },
    )  # fmt: skip
    job = await only_job(pool)

    assert (job["name"], job["tags"], job["parameters"]) == (
        "Nightly",
        ["ios", "night", "x"],
        {"n": 9007199254740993},
    )
    assert (job["queue"], job["priority"], job["max_retries"], job["timeout_seconds"]) == (
        "general",
        0,
        7,
        0.5,
    )
    assert (job["gap"], job["fold"], job["misfire"], job["misfire_grace_seconds"]) == (
        "skip",
        "both",
        "run_all",
        1.5,
    )
    assert f"{job['starts_at']:%Y-%m-%d %H:%M}" == "2030-01-01 05:00"  # wall time in New York
    assert f"{job['ends_at']:%Y-%m-%d %H:%M}" == "2031-01-01 00:00"


@pytest.mark.parametrize(
    ("count", "unit", "seconds"),
    [
        ("15", "minutes", 900),
        ("1.5", "hours", 5400),
        ("2", "days", 172_800),
        ("0.5", "minutes", 30),
        ("2.5", "seconds", 2.5),
        ("PT1H30M", "days", 5400),
    ],
)
async def test_an_interval_is_a_count_of_units(
    ada: httpx.AsyncClient, pool: Pool, count: str, unit: str, seconds: float
) -> None:
    await make_task(pool, task_id="report")
    fields = {"task_id": "report", "schedule.type": "INTERVAL", "schedule.every": count, "every_unit": unit}
    assert (await send(ada, "/jobs/new", fields)).status_code == 303

    assert (await only_job(pool))["every_seconds"] == seconds


async def test_what_runs_now_leads_to_its_execution(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool, task_id="report")
    answer = await send(
        ada,
        "/jobs/new",
        DAILY | {"task_id": "report", "schedule.type": "IMMEDIATE"},
    )
    execution_id = await pool.fetchval("SELECT execution_id FROM onthedot.executions")

    assert answer.headers["location"] == f"/executions/{execution_id}"


async def test_a_form_that_is_sent_twice_makes_one_job(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    await make_task(pool, task_id="report")
    opened = fields_of(await page("/jobs/new?task=report"))
    first, second = [await send(ada, "/jobs/new", opened) for _ in range(2)]

    assert first.headers["location"] == second.headers["location"]
    assert (await only_job(pool))["task_id"] == "report"
    await send(ada, "/jobs/new", opened | {"name": "Another, after the back button"})
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 2


ERRORS: list[tuple[dict[str, str], str, str]] = [
    ({"schedule.expression": "61 * * * *"}, "schedule.expression", "field 1 (minute): 61 is not in 0-59"),
    ({"schedule.expression": ""}, "schedule.expression", "needs expression"),
    ({"schedule.expression": "0 0 30 2 *"}, "schedule.expression", "never fires"),
    ({"schedule.ends_at": "2020-01-01 00:00"}, "schedule.expression", "has no instant after"),
    ({"schedule.timezone": "Europe/Berlín"}, "schedule.timezone", "is not an IANA time zone"),
    ({"schedule.starts_at": "soon"}, "schedule.starts_at", "is not a time such as"),
    ({"schedule.misfire_grace_seconds": "a while"}, "schedule.misfire_grace_seconds", "is not a number"),
    ({"schedule.misfire_grace_seconds": "-1"}, "schedule.misfire_grace_seconds", "Expected"),
    (
        {"schedule.type": "INTERVAL", "schedule.every": "0"},
        "schedule.every",
        "an interval lasts from 1 second",
    ),
    ({"schedule.type": "INTERVAL", "schedule.every": ""}, "schedule.every", "needs every"),
    ({"schedule.type": "ONCE"}, "schedule.scheduled_time", "needs scheduled_time"),
    ({"schedule.type": "SOMETIMES"}, "schedule.type", "Invalid enum value"),
    ({"task_id": ""}, "task_id", "choose what it runs"),
    ({"task_id": "none"}, "task_id", "there is no task 'none'"),
    ({"name": "x" * 201}, "name", "Expected"),
    ({"name": "a\0b"}, "name", "NUL"),
    ({"tags": "fine !bad"}, "tags", "'!bad' is no tag"),
    ({"parameters": "{"}, "parameters", "not JSON"),
    ({"parameters": "[]"}, "parameters", "Expected"),
    ({"parameters": '{"share": 101, "version": "1"}'}, "parameters", "share: 101 is greater"),
    ({"queue": "nowhere"}, "queue", "there is no queue 'nowhere'"),
    ({"priority": "9"}, "priority", "Expected"),
    ({"max_retries": "-1"}, "max_retries", "Expected"),
    ({"timeout_seconds": "soon"}, "timeout_seconds", "'soon' is not a number"),
    ({"user_id": "viv"}, "", "this needs the role admin"),
]


@pytest.mark.parametrize(("wrong", "name", "says"), ERRORS)
async def test_what_is_wrong_stands_beside_its_field_and_nothing_typed_is_lost(
    ada: httpx.AsyncClient, pool: Pool, wrong: dict[str, str], name: str, says: str
) -> None:
    await make_task(pool, task_id="report", parameter_schema=json.dumps(SCHEMA))
    typed = (
        DAILY
        | {"task_id": "report", "name": "Nightly", "parameters": '{"version": "1"}', "parameters_as": "json"}
        | wrong
    )
    answer = await send(ada, "/jobs/new", typed)
    if not name:
        assert answer.status_code == 403
        return
    html = Html(answer.text)

    assert answer.status_code == 400
    assert says in html.text
    assert [link["href"] for link in html.all("a") if link["href"].startswith("#field-")].count(
        f"#field-{name}"
    ) == 1
    assert [found for _, found in html.elements if found.get("id") == f"field-{name}"]
    shown = {
        one["name"]: one.get("value") for one in html.all("input") if one.get("type") in {"text", "hidden"}
    }
    for field, value in typed.items():
        assert shown.get(field, value) == value
    assert html.all("div", role="alert", **{"data-focus": ""})
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 0


async def test_several_things_wrong_are_all_told(ada: httpx.AsyncClient) -> None:
    html = await sent(
        ada, "/jobs/new", DAILY | {"schedule.expression": "x", "timeout_seconds": "soon", "tags": "!"}
    )
    links = [link["href"] for link in html.all("a") if link["href"].startswith("#field-")]

    assert set(links) == {
        "#field-task_id",
        "#field-schedule.expression",
        "#field-timeout_seconds",
        "#field-tags",
    }
    assert "Time-out: 'soon' is not a number" in html.text


async def test_fields_of_the_tasks_schema_become_parameters(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    await make_task(pool, task_id="deploy", parameter_schema=json.dumps(SCHEMA))
    html = await page("/jobs/new?task=deploy")
    opened = fields_of(html)
    names = {
        text: f"p{number}" for number, text in enumerate(t for t in html.texts if t in SCHEMA["properties"])
    }
    assert opened[names["share"]] == "25"  # the schema's default

    refused = await send(ada, "/jobs/new", opened | {names["share"]: "101"})
    assert refused.status_code == 400
    assert "101 is greater than the maximum of 100" in refused.text
    assert "this one is required" in refused.text
    await send(ada, "/jobs/new", opened | {names["version"]: "17.2", names["region"]: '"us"'})
    assert (await only_job(pool))["parameters"] == {"version": "17.2", "share": 25, "region": "us"}


async def test_parameters_go_from_fields_to_json_and_back(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    await make_task(pool, task_id="deploy", parameter_schema=json.dumps(SCHEMA))
    html = await page("/jobs/new?task=deploy")
    labels = [text for text in html.texts if text in SCHEMA["properties"]]
    version = f"p{labels.index('version')}"
    typed = fields_of(html) | {version: "17.2", "preview": "1"}

    as_json = await sent(ada, "/jobs/new", typed | {"parameters_as": "json"})
    text = chosen(as_json)["parameters"]
    assert json.loads(text) == {"version": "17.2", "share": 25}
    back = fields_of(as_json) | {"parameters": text, "preview": "1", "parameters_as": "fields"}
    assert fields_of(await sent(ada, "/jobs/new", back))[version] == "17.2"
    # What fields cannot hold stays JSON.
    other = back | {"parameters": '{"version": "1", "more": true}'}
    assert "more" in chosen(await sent(ada, "/jobs/new", other))["parameters"]


async def test_without_a_script_a_button_previews_with_all_that_was_typed(
    ada: httpx.AsyncClient, pool: Pool
) -> None:
    typed = DAILY | {"name": "<b>Nightly</b>", "schedule.expression": "30 2 13 * FRI", "preview": "1"}
    html = await sent(ada, "/jobs/new", typed)

    assert "On the 13th of every month and every Friday at 02:30 (America/New_York)" in html.text
    assert "a day needs to fit one of them only" in html.text
    assert html.all("input", name="name", value="<b>Nightly</b>")
    assert len(html.all("time")) >= 10
    assert not html.all("div", role="alert")
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 0


async def test_a_preset_fills_in_the_expression(ada: httpx.AsyncClient) -> None:
    html = await sent(ada, "/jobs/new", {"schedule.type": "ONCE", "name": "kept", "preset": "weekdays"})

    assert html.all("input", name="schedule.expression", value="0 9 * * MON-FRI")
    assert html.all("input", name="name", value="kept")
    assert "Monday to Friday at 09:00 (UTC)" in html.text


async def test_the_preview_tells_both_zones_and_the_commands(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool, task_id="report")
    ada.cookies.set("onthedot_zone", "Asia/Kolkata")
    answer = await send(
        ada, "/ui/schedule/preview", DAILY | {"task_id": "report", "name": "it's", "parameters": '{"n": 1}'}
    )
    html = Html(answer.text)

    assert {"America/New_York", "Asia/Kolkata"} <= set(html.texts)
    commands = [text for text in html.texts if text.startswith(("curl -X", "onthedot job"))]
    assert "POST http://onthedot.test/api/v1/jobs" in commands[0]
    document = json.loads(commands[0].split("-d '", 1)[1].removesuffix("'").replace("'\"'\"'", "'"))
    assert document == {
        "task_id": "report", "name": "it's", "parameters": {"n": 1},
        "schedule": {"type": "RECURRING", "expression": "30 2 * * *", "timezone": "America/New_York"},
    }  # fmt: skip
    assert "--cron '30 2 * * *'" in commands[1]
    assert "-p n=1" in commands[1]


async def test_while_somebody_types_errors_stand_beside_their_fields(
    ada: httpx.AsyncClient, pool: Pool
) -> None:
    await make_task(pool, task_id="report")
    fields = DAILY | {"task_id": "report", "schedule.expression": "61 * * * *", "parameters": "{1"}
    fields["parameters_task"] = "report"
    html = Html((await send(ada, "/ui/schedule/preview", fields)).text)
    targets = [one["hx-target"] for one in html.all("hx-partial")]

    assert "[id='help-schedule.expression']" in targets
    assert "#help-parameters" in targets
    assert (
        html.texts.count("field 1 (minute): 61 is not in 0-59") == 2
    )  # beside the field, and in the preview
    assert "This does not say when to run." in html.text


async def test_a_field_that_is_still_empty_is_no_error_yet(ada: httpx.AsyncClient) -> None:
    html = Html((await send(ada, "/ui/schedule/preview", {"schedule.type": "ONCE", "parameters": "{}"})).text)

    assert html.all("span", **{"class": "bad"}) == []
    assert "A schedule of type ONCE needs scheduled_time." in html.text


@pytest.mark.parametrize(
    "fields", [{}, {"job_id": "x"}, {"job_id": str(UUID(int=1))}, {"schedule.type": "\0"}, {"task_id": "a\0"}]
)
async def test_a_preview_of_nonsense_is_no_failure_of_the_server(
    ada: httpx.AsyncClient, fields: dict[str, str]
) -> None:
    assert (await send(ada, "/ui/schedule/preview", fields)).status_code < 500


@pytest.mark.parametrize("value", HOSTILE)
async def test_hostile_values_stay_text(ada: httpx.AsyncClient, pool: Pool, value: str) -> None:
    schema = {
        "type": "object",
        "properties": {value: {"type": "string", "description": value, "enum": [value]}},
    }
    await make_task(pool, task_id="report", name=value, parameter_schema=json.dumps(schema))
    hostile = dict.fromkeys(
        (
            "name",
            "tags",
            "schedule.expression",
            "schedule.timezone",
            "schedule.starts_at",
            "queue",
            "priority",
            "parameters",
        ),
        value,
    )
    for path, fields in (
        ("/jobs/new", hostile),
        ("/jobs/new", hostile | {"preview": "1"}),
        ("/ui/schedule/preview", hostile),
    ):
        html = Html(
            (await send(ada, path, {"task_id": "report", "schedule.type": "RECURRING"} | fields)).text
        )
        assert html.inline_code() == []
        assert not [found for _, found in html.elements if found.get("hx-get") == "/logout"]
        assert not [found for tag, found in html.elements if tag == "img" and found.get("alt") != ""]


async def test_a_viewer_is_refused(viv: httpx.AsyncClient, pool: Pool) -> None:
    job_id = await make_job(pool, task_id=await make_task(pool))
    for path in ("/jobs/new", f"/jobs/{job_id}/edit"):
        assert (await viv.get(path)).status_code == 403
        assert (await send(viv, path, DAILY)).status_code == 403


async def test_a_form_without_its_token_is_refused(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool, task_id="report")
    assert (await ada.post("/jobs/new", data=DAILY | {"task_id": "report"})).status_code == 403
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 0


# --- edit


async def nightly(pool: Pool, **columns: Any) -> UUID:
    task_id = await make_task(pool)
    return await make_job(
        pool, **(NIGHTLY | {"task_id": task_id, "name": "Nightly", "user_id": "ada"} | columns)
    )


async def test_only_what_was_changed_is_changed(ada: httpx.AsyncClient, pool: Pool, page: OpenPage) -> None:
    job_id = await nightly(pool)
    opened = fields_of(await page(f"/jobs/{job_id}/edit"))
    before = await only_job(pool)
    answer = await send(ada, f"/jobs/{job_id}/edit", opened | {"name": "Renamed", "priority": "1"})
    after = await only_job(pool)

    assert answer.headers["location"] == f"/jobs/{job_id}"
    changed = {name for name in after if after[name] != before[name]} - FOLLOWING
    assert changed == {"name", "priority"}
    noted = await pool.fetchrow(
        "SELECT actor, action FROM onthedot.audit_log WHERE target_id = $1 ORDER BY audit_id DESC",
        str(job_id),
    )
    assert tuple(noted or ()) == ("user:ada", "job.update")


async def test_an_interval_keeps_its_anchor_when_something_else_changes(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    job_id = await make_job(pool, task_id=await make_task(pool))
    before = await only_job(pool)
    opened = fields_of(await page(f"/jobs/{job_id}/edit"))
    await send(ada, f"/jobs/{job_id}/edit", opened | {"name": "Renamed"})
    assert (await only_job(pool))["starts_at"] == before["starts_at"]

    opened = fields_of(await page(f"/jobs/{job_id}/edit"))
    await send(ada, f"/jobs/{job_id}/edit", opened | {"schedule.every": "7", "every_unit": "hours"})
    after = await only_job(pool)
    assert (after["starts_at"], after["every_seconds"]) == (before["starts_at"], 25_200)


async def test_an_emptied_field_gives_its_override_back(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    job_id = await nightly(pool, priority=0, max_retries=3, timeout_seconds=5.0, tags=["a"])
    opened = fields_of(await page(f"/jobs/{job_id}/edit"))
    assert (opened["priority"], opened["max_retries"], opened["timeout_seconds"], opened["tags"]) == (
        "0",
        "3",
        "5",
        "a",
    )
    emptied = dict.fromkeys(("name", "priority", "max_retries", "timeout_seconds", "tags"), "")
    await send(ada, f"/jobs/{job_id}/edit", opened | emptied)
    job = await only_job(pool)

    assert (job["name"], job["priority"], job["max_retries"], job["timeout_seconds"], job["tags"]) == (
        None,
        None,
        None,
        None,
        [],
    )


async def test_a_form_that_changes_nothing_changes_nothing(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    job_id = await nightly(pool, parameters='{"b": 1, "a": [1.5, "ü"]}', ends_at=None)
    opened = fields_of(await page(f"/jobs/{job_id}/edit"))
    answer = await send(ada, f"/jobs/{job_id}/edit", opened)

    assert answer.status_code == 303
    assert (await only_job(pool))["version"] == 1


async def test_of_two_who_edit_the_later_one_sees_what_the_first_changed_and_loses_nothing(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    job_id = await nightly(pool, priority=2)
    address = f"/jobs/{job_id}/edit"
    opened = fields_of(await page(address))
    await send(ada, address, opened | {"name": "Theirs", "priority": "1"})
    answer = await send(ada, address, opened | {"name": "Mine", "tags": "mine"})
    html = Html(answer.text)

    assert answer.status_code == 412
    assert (await only_job(pool))["name"] == "Theirs"
    assert {"Theirs", "Mine", "yours: saving replaces what is saved now"} <= set(html.texts)
    assert "theirs, as you had not changed it" in html.texts
    assert "ada" in html.texts
    again = fields_of(html)
    assert (again["name"], again["tags"], again["priority"], again["version"]) == ("Mine", "mine", "1", "2")
    assert (await send(ada, address, again)).status_code == 303
    job = await only_job(pool)
    assert (job["name"], job["tags"], job["priority"]) == ("Mine", ["mine"], 1)


async def test_what_is_wrong_in_an_edit_stands_beside_its_field(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    job_id = await nightly(pool)
    opened = fields_of(await page(f"/jobs/{job_id}/edit"))
    answer = await send(
        ada, f"/jobs/{job_id}/edit", opened | {"schedule.expression": "61 * * * *", "name": "typed"}
    )
    html = Html(answer.text)

    assert answer.status_code == 400
    assert html.all("a", href="#field-schedule.expression")
    assert html.all("input", name="name", value="typed")
    assert (await only_job(pool))["expression"] == "0 2 * * *"


@pytest.mark.parametrize("version", ["", "x", "-1", "9" * 12])
async def test_an_edit_that_does_not_say_its_version_is_refused(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage, version: str
) -> None:
    job_id = await nightly(pool)
    opened = fields_of(await page(f"/jobs/{job_id}/edit"))
    answer = await send(ada, f"/jobs/{job_id}/edit", opened | {"version": version, "name": "x"})

    assert answer.status_code == 400
    assert (await only_job(pool))["name"] == "Nightly"


async def test_parameters_too_large_for_a_form_stay_as_they_are(
    ada: httpx.AsyncClient, pool: Pool, page: OpenPage
) -> None:
    job_id = await nightly(pool, parameters=json.dumps({"long": "x" * 70_000}))
    html = await page(f"/jobs/{job_id}/edit")
    assert "too large for a form" in html.text
    assert (await send(ada, f"/jobs/{job_id}/edit", fields_of(html) | {"name": "Renamed"})).status_code == 303
    job = await only_job(pool)

    assert (job["name"], len(job["parameters"]["long"])) == ("Renamed", 70_000)
    assert (await ada.get(f"/jobs/new?from={job_id}")).status_code == 409


async def test_a_job_is_duplicated(ada: httpx.AsyncClient, pool: Pool, page: OpenPage) -> None:
    job_id = await nightly(pool, tags=["x"], parameters='{"n": 1}')
    opened = fields_of(await page(f"/jobs/new?from={job_id}"))
    assert opened["name"] == "Nightly copy"
    await send(ada, "/jobs/new", opened)
    first, second = await pool.fetch("SELECT * FROM onthedot.jobs ORDER BY created_at, name")

    same = ("task_id", "tags", "parameters", "expression", "timezone", "misfire", "priority")
    assert [first[name] for name in same] == [second[name] for name in same]


async def test_times_come_back_as_wall_times_of_the_zone(page: OpenPage, pool: Pool) -> None:
    at = datetime(2027, 11, 7, 6, 30, tzinfo=UTC)  # the second 01:30 in New York
    columns = {"schedule_type": "ONCE", "expression": None, "scheduled_time": at, "materialize_at": None}
    job_id = await nightly(
        pool, **(columns | {"timezone": "America/New_York", "timezone_requested": "America/New_York"})
    )
    opened = fields_of(await page(f"/jobs/{job_id}/edit"))

    assert opened["schedule.scheduled_time"] == "2027-11-07 01:30:00-05:00"
    assert re.match(r"\d+$", opened["version"])


async def test_a_job_that_is_not_there(ada: httpx.AsyncClient) -> None:
    for address in (f"/jobs/{UUID(int=7)}/edit", f"/jobs/new?from={UUID(int=7)}"):
        assert (await ada.get(address)).status_code == 404
    assert (await ada.get("/jobs/new?from=x")).status_code == 400


async def test_the_page_stays_small_and_everything_on_it_leads_somewhere(
    ada: httpx.AsyncClient, pool: Pool
) -> None:
    properties = {
        f"parameter_{number}": {"type": "string", "description": "What it is for"} for number in range(30)
    }
    schema = json.dumps({"type": "object", "properties": properties})
    await insert(
        pool, "tasks", [task_row(task_id=f"task-{number}", name=f"Task {number}") for number in range(500)]
    )
    await make_task(pool, task_id="report", parameter_schema=schema)
    job_id = await make_job(pool, task_id="report")
    for address in ("/jobs/new?task=report", f"/jobs/{job_id}/edit"):
        answer = await ada.get(address)
        html = Html(answer.text)
        assert len(gzip.compress(answer.content)) <= 15_000
        assert html.inline_code() == []
        links = {link["href"] for link in html.all("a") if not link["href"].startswith("#")}
        assert {link: (await ada.get(link)).status_code for link in links} == dict.fromkeys(links, 200)
        styles = [link["href"] for link in html.all("link", rel="stylesheet")]
        scripts = [one["src"] for one in html.all("script") if "/js/" in one["src"]]
        for files, most in ((styles, 8_500), (scripts, 7_000)):
            assert sum([len(gzip.compress((await ada.get(file)).content)) for file in files]) <= most
