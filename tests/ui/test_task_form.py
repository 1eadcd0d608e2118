"""Making a task, changing one, trying one out."""

from typing import Any

import httpx
import msgspec
import pytest

from app.db.pools import Pool
from tests.factories import make_job, make_task
from tests.ui.conftest import OpenPage, send
from tests.ui.hostile import HOSTILE
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEW = {
    "task_id": "sync.customers",
    "name": " Customers ",
    "method": "POST",
    "execution_handler": "https://shop.example.com/run",
    "description": "From the shop",
    "parameter_schema": '{"type": "object", "required": ["since"]}',
    "failure_rules": '[{"match": {"http_status": 503}, "category": "network"}]',
    "queue": "bulk",
    "priority": "",
    "resource_requirements.max_retries": "",
    "resource_requirements.retry_policy": "linear",
    "resource_requirements.retry_delay_seconds": "0.5",
    "resource_requirements.retry_max_delay_seconds": "60",
    "resource_requirements.timeout_seconds": "90",
    "resource_requirements.cpu_cores": "0.5",
    "resource_requirements.memory_mb": "256",
}
SCHEMA = {
    "type": "object",
    "required": ["version"],
    "properties": {
        "version": {"type": "string"},
        "share": {"type": "integer", "minimum": 0, "maximum": 100},
        "region": {"enum": ["EU", "US", 3]},
        "dry": {"type": "boolean"},
        "hosts": {"type": "array", "items": {"type": "string"}},
    },
}


async def test_a_task_is_made_as_the_form_says(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    answer = await send(ada, "/tasks/-/new?kind=http", NEW)
    row = await _task(pool, "sync.customers")

    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks/sync.customers")
    assert {name: row[name] for name in ("name", "execution_handler", "queue", "priority", "created_by")} == {
        "name": "Customers",
        "execution_handler": "http:POST https://shop.example.com/run",
        "queue": "bulk",
        "priority": 3,
        "created_by": "ada",
    }
    assert (row["max_retries"], row["retry_policy"], row["retry_delay_seconds"]) == (None, "linear", 0.5)
    assert (row["timeout_seconds"], row["cpu_cores"], row["memory_mb"]) == (90.0, 0.5, 256)
    assert msgspec.json.decode(row["parameter_schema"]) == {"type": "object", "required": ["since"]}
    assert msgspec.json.decode(row["failure_rules"]) == [
        {"match": {"http_status": 503}, "category": "network"}
    ]
    assert "Created. Try it, or make a job of it." in (await page("/tasks/sync.customers")).texts


@pytest.mark.parametrize(
    ("kind", "target", "stored"),
    [("builtin", "echo", "builtin:echo"), ("python", "sync.customers", "python:sync.customers")],
)
async def test_other_kinds_of_handlers_have_forms_of_their_own(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool, kind: str, target: str, stored: str
) -> None:
    html = await page(f"/tasks/-/new?kind={kind}")
    await send(ada, f"/tasks/-/new?kind={kind}", NEW | {"execution_handler": target})

    assert html.all("form", action=f"/tasks/-/new?kind={kind}", method="post")
    assert (await _task(pool, "sync.customers"))["execution_handler"] == stored


async def test_a_command_where_none_are_allowed_is_refused_beside_its_field(
    ada: httpx.AsyncClient, page: OpenPage
) -> None:
    html = await page("/tasks/-/new?kind=shell")

    answer = await send(ada, "/tasks/-/new?kind=shell", NEW | {"execution_handler": "true"})

    assert html.all("form", action="/tasks/-/new?kind=shell", method="post")
    assert answer.status_code == 400
    assert "ONTHEDOT_ALLOW_SHELL=true" in answer.text


WRONG: list[tuple[dict[str, str], list[str]]] = [
    ({"task_id": ""}, ["task_id"]),
    ({"task_id": "Not An Id"}, ["task_id"]),
    ({"execution_handler": ""}, ["execution_handler"]),
    ({"execution_handler": "http://127.0.0.1/x"}, ["execution_handler"]),
    ({"execution_handler": "https://exa mple.com"}, ["execution_handler"]),
    ({"queue": "nowhere"}, ["queue"]),
    ({"name": "x" * 201}, ["name"]),
    ({"description": "a\0b"}, ["description"]),
    ({"parameter_schema": "{"}, ["parameter_schema"]),
    ({"parameter_schema": "[]"}, ["parameter_schema"]),
    ({"parameter_schema": '{"type": 3}'}, ["parameter_schema"]),
    ({"failure_rules": "{}"}, ["failure_rules"]),
    ({"failure_rules": '[{"match": {}}]'}, ["failure_rules"]),
    ({"failure_rules": '[{"match": {"type": 3}, "retry": true}]'}, ["failure_rules"]),
    ({"resource_requirements.timeout_seconds": "0"}, ["resource_requirements.timeout_seconds"]),
    ({"resource_requirements.timeout_seconds": "inf"}, ["resource_requirements.timeout_seconds"]),
    ({"resource_requirements.memory_mb": "1.5"}, ["resource_requirements.memory_mb"]),
    ({"resource_requirements.retry_policy": "never"}, ["resource_requirements.retry_policy"]),
    ({"resource_requirements.retry_max_delay_seconds": "0.1"}, ["resource_requirements.retry_max_delay_seconds"]),
    (
        {"resource_requirements.cpu_cores": "much", "resource_requirements.max_retries": "often"},
        ["resource_requirements.cpu_cores", "resource_requirements.max_retries"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "places"), WRONG, ids=lambda value: str(value)[:60])
async def test_what_is_wrong_stands_beside_its_field_and_nothing_typed_is_lost(
    ada: httpx.AsyncClient, pool: Pool, fields: dict[str, str], places: list[str]
) -> None:
    sent = NEW | fields
    answer = await send(ada, "/tasks/-/new?kind=http", sent)
    html = Html(answer.text)
    marked = [found["name"] for _, found in html.elements if found.get("aria-invalid") == "true"]

    assert answer.status_code == 400
    assert sorted(marked) == sorted(places)
    assert {f"#field-{place}" for place in places} <= {a["href"] for a in html.all("a")}
    assert "Nothing was saved." in html.texts
    assert html.all("input", name="name", value=sent["name"])
    assert not await pool.fetchval("SELECT count(*) FROM onthedot.tasks")


async def test_an_id_that_is_taken_is_said_beside_the_id(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool, "sync.customers")
    answer = await send(ada, "/tasks/-/new?kind=http", NEW)
    html = Html(answer.text)

    assert answer.status_code == 409
    assert html.all("input", name="task_id", **{"aria-invalid": "true"})
    assert "there is a task sync.customers already" in html.texts


async def test_a_task_is_changed_by_what_its_form_shows(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    await send(ada, "/tasks/-/new?kind=http", NEW)
    before = dict(await _task(pool, "sync.customers"))
    html = await page("/tasks/sync.customers/edit")
    answer = await send(ada, "/tasks/sync.customers/edit?kind=http", _fields(html) | {"queue": "general"})
    after = dict(await _task(pool, "sync.customers"))
    unlike = {name for name in before if before[name] != after[name]}

    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks/sync.customers")
    assert unlike == {"queue", "version", "updated_at", "revision"}
    assert (after["queue"], after["version"]) == ("general", 2)


async def test_an_edit_that_missed_another_one_is_not_saved_and_says_what_was_changed(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    await make_task(pool)
    fields = _fields(await page("/tasks/report/edit"))
    await pool.execute("UPDATE onthedot.tasks SET queue = 'bulk' WHERE task_id = 'report'")
    answer = await send(ada, "/tasks/report/edit?kind=builtin", fields | {"description": "mine"})
    html = Html(answer.text)

    assert answer.status_code == 412
    assert {"general", "bulk"} <= set(html.texts)
    assert "mine" in html.texts
    assert html.all("a", href="/tasks/report/edit")
    assert (await _task(pool, "report"))["description"] == ""
    # Sent again as it stands there, it is refused again: nobody overwrites what they have not seen.
    assert (await send(ada, "/tasks/report/edit?kind=builtin", _fields(html))).status_code == 412


async def test_the_kind_of_handler_can_be_changed(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    await make_task(pool, execution_handler="http:GET https://example.com")
    html = await page("/tasks/report/edit?kind=python")
    await send(ada, "/tasks/report/edit?kind=python", _fields(html) | {"execution_handler": "report.run"})

    assert html.all("input", name="execution_handler", value="")
    assert (await _task(pool, "report"))["execution_handler"] == "python:report.run"


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_texts_survive_the_form(ada: httpx.AsyncClient, pool: Pool, name: str) -> None:
    answer = await send(
        ada, "/tasks/-/new?kind=http", NEW | {"name": name, "description": name, "queue": name}
    )
    html = Html(answer.text)

    assert answer.status_code == 400
    assert html.inline_code() == []
    assert html.all("input", name="name", value=name)
    assert await pool.fetchval("SELECT count(*) FROM onthedot.tasks") == 0


async def test_a_task_is_tried_with_fields_of_its_schema(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    await make_task(pool, parameter_schema=_json(SCHEMA))
    html = await page("/tasks/report/try")
    typed = {"version": "17.2", "share": "25", "region": '"EU"', "dry": "true", "hosts": '["a", "b"]'}
    given = {name: typed[label] for label, name in _names(html).items() if label in typed}
    answer = await send(ada, "/tasks/report/try", _fields(html) | given)
    job = await pool.fetchrow("SELECT parameters, schedule_type, tags, user_id FROM onthedot.jobs")
    execution = await pool.fetchval("SELECT execution_id FROM onthedot.executions")

    assert job is not None
    assert msgspec.json.decode(job["parameters"]) == {
        "version": "17.2", "share": 25, "region": "EU", "dry": True, "hosts": ["a", "b"]
    }  # fmt: skip
    assert (job["schedule_type"], job["tags"], job["user_id"]) == ("IMMEDIATE", ["try-it"], "ada")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/executions/{execution}")


async def test_what_is_left_empty_is_left_out(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    await make_task(pool, parameter_schema=_json(SCHEMA))
    html = await page("/tasks/report/try")
    names = _names(html)
    await send(ada, "/tasks/report/try", _fields(html) | {names["version"]: "17.2"})

    assert msgspec.json.decode(await pool.fetchval("SELECT parameters FROM onthedot.jobs")) == {
        "version": "17.2"
    }


TRIED_WRONGLY = [
    ({"share": "much"}, ["share"]),
    ({"share": "101"}, ["share"]),
    ({"hosts": "[1]"}, ["hosts"]),
    ({"hosts": "["}, ["hosts"]),
]


@pytest.mark.parametrize(("typed", "places"), TRIED_WRONGLY)
async def test_a_wrong_parameter_is_said_beside_its_field(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool, typed: dict[str, str], places: list[str]
) -> None:
    await make_task(pool, parameter_schema=_json(SCHEMA))
    html = await page("/tasks/report/try")
    names = _names(html)
    given = {names["version"]: "1"} | {names[label]: text for label, text in typed.items()}
    answer = await send(ada, "/tasks/report/try", _fields(html) | given)
    marked = [found["name"] for _, found in Html(answer.text).elements if found.get("aria-invalid") == "true"]

    assert answer.status_code == 400
    assert marked == [names[label] for label in places]
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 0


async def test_a_parameter_that_is_missing_is_named(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    await make_task(pool, parameter_schema=_json(SCHEMA))
    answer = await send(ada, "/tasks/report/try", _fields(await page("/tasks/report/try")))

    assert answer.status_code == 400
    assert '"version" is a required property' in Html(answer.text).text


async def test_parameters_can_be_written_as_json(ada: httpx.AsyncClient, page: OpenPage, pool: Pool) -> None:
    await make_task(pool, parameter_schema=_json(SCHEMA))
    html = await page("/tasks/report/try?as_json=true")
    wrong = await send(
        ada, "/tasks/report/try", _fields(html) | {"parameters": '{"version": 1, "share": 300}'}
    )
    right = await send(ada, "/tasks/report/try", _fields(html) | {"parameters": '{"version": "1"}'})
    refused = Html(wrong.text)

    assert wrong.status_code == 400
    assert refused.all("textarea", name="parameters", **{"aria-invalid": "true"})
    assert "/version: " in refused.text
    assert "/share: " in refused.text
    assert right.status_code == 303


@pytest.mark.parametrize("parameters", ["[]", "{", "1", '{"a": 1e400}', '{"a": 1, "a": 2}'])
async def test_json_that_cannot_be_kept_is_refused(
    ada: httpx.AsyncClient, pool: Pool, parameters: str
) -> None:
    await make_task(pool)
    answer = await send(ada, "/tasks/report/try", {"version": "1", "parameters": parameters})

    assert answer.status_code == 400
    assert Html(answer.text).all("textarea", name="parameters", **{"aria-invalid": "true"})


async def test_a_form_of_a_task_that_was_changed_meanwhile_is_shown_again(
    ada: httpx.AsyncClient, page: OpenPage, pool: Pool
) -> None:
    await make_task(pool, parameter_schema=_json(SCHEMA))
    fields = _fields(await page("/tasks/report/try"))
    changed = {"properties": {"share": {"type": "integer"}, "version": {"type": "string"}}}
    await pool.execute("UPDATE onthedot.tasks SET parameter_schema = $1", _json(changed))
    answer = await send(ada, "/tasks/report/try", fields | {"p0": "17.2"})

    assert answer.status_code == 412
    assert "the task was changed meanwhile" in Html(answer.text).text
    assert await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 0


async def test_trying_in_the_dialog_leads_to_the_execution(ada: httpx.AsyncClient, pool: Pool) -> None:
    await make_task(pool)
    asked = await ada.get("/tasks/report/try", headers={"HX-Request": "true"})
    answer = await send(
        ada, "/tasks/report/try", {"version": "1", "parameters": "{}"}, **{"HX-Request": "true"}
    )
    execution = await pool.fetchval("SELECT execution_id FROM onthedot.executions")

    assert "<html" not in asked.text
    assert Html(asked.text).all("form", **{"hx-post": "/tasks/report/try", "hx-target": "#dialog"})
    assert answer.headers["hx-redirect"] == f"/executions/{execution}"


async def test_the_same_script_cannot_send_a_form_for_another_session(
    ada: httpx.AsyncClient, pool: Pool
) -> None:
    await make_task(pool)
    await make_job(pool)
    answers = [
        await ada.post(path, data=NEW)
        for path in ("/tasks/-/new", "/tasks/report/edit", "/tasks/report/try", "/tasks/report/delete")
    ]

    assert [answer.status_code for answer in answers] == [403] * 4
    assert await pool.fetchval("SELECT string_agg(task_id, ',') FROM onthedot.tasks") == "report"


def _fields(html: Html) -> dict[str, str]:
    """Return what a browser would send of the page's main form as it stands."""
    found = {}
    for tag, attributes in html.elements:
        if tag == "input" and attributes.get("name") not in {None, "csrf", "text"}:
            found[attributes["name"]] = attributes.get("value", "")
    return found | html.typed


def _names(html: Html) -> dict[str, str]:
    """Return the names of fields by their labels."""
    labels = html.labels
    return {label: place.removeprefix("field-") for place, label in labels.items()}


async def _task(pool: Pool, task_id: str) -> Any:
    row = await pool.fetchrow("SELECT * FROM onthedot.tasks WHERE task_id = $1", task_id)
    assert row is not None
    return row


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
