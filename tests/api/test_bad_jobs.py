"""Requests for jobs that do not hold together: each thing wrong gets its code and its pointer; nothing is stored."""

from typing import Any

import pytest

from tests.api.conftest import IMMEDIATE, Site, pointers, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

Case = tuple[dict[str, Any], str, str]
"""Fields that replace those of a good request, the code, and the pointer."""

GOOD: dict[str, Any] = {"task_id": "checked", "schedule": IMMEDIATE}
SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 1},
        "region": {"enum": ["eu", "us"]},
        "list": {"type": "array", "items": {"type": "string", "maxLength": 3}},
        "a/b~c": {"type": "boolean"},
    },
    "additionalProperties": False,
}


def fields(
    name: str, values: list[Any], *, code: str = "invalid_input", pointer: str | None = None
) -> dict[str, Case]:
    """Return a case for each bad value of a field."""
    where = f"/{name}" if pointer is None else pointer
    return {f"{name} {value!r:.60}": ({name: value}, code, where) for value in values}


def schedules(bad: list[dict[str, Any]], *, code: str, pointer: str) -> dict[str, Case]:
    """Return a case for each bad schedule."""
    return {f"schedule {schedule!r:.120}": ({"schedule": schedule}, code, pointer) for schedule in bad}


def cron(expression: object, **more: Any) -> dict[str, Any]:
    return {"type": "CRON", "expression": expression} | more


def once(scheduled_time: object, **more: Any) -> dict[str, Any]:
    return {"type": "ONCE", "scheduled_time": scheduled_time} | more


def every(interval: object, **more: Any) -> dict[str, Any]:
    return {"type": "INTERVAL", "every": interval} | more


NOT_TEXT: list[Any] = [1, True, [], {}]
NO_TIME: list[Any] = [True, [], {}]
NO_TAG: list[Any] = [
    None, *NOT_TEXT, "", " ", "a b", " a", "a ", "-a", ".a", "a\n", "ä", "a,b", 'a"b', "a\\b", "{a}", "a" * 65,
]  # fmt: skip
NO_TYPE: list[Any] = ["immediate", "HOURLY", "", "CRON ", None, *NOT_TEXT]
FIELDS = (
    fields("task_id", [*NOT_TEXT, None])
    | fields("task_id", ["", "nobody", "../x", "a/b", "x" * 200, "x" * 100_000, "Checked", "checked\n", "'; --"],
             code="unknown_task")
    | fields("user_id", NOT_TEXT)
    | fields("queue", NOT_TEXT)
    | fields("queue", ["", "nobody", "General", "general ", "x" * 100_000, "ü"], code="unknown_queue")
    | fields("name", [*NOT_TEXT, "", "x" * 201, "Ω" * 3_000])
    | fields("priority", ["2", True, 2.5, -1, 4, 2**62, [], {}])
    | fields("max_retries", ["3", False, 0.5, -1, 1001, 2**63 - 1, [], {}])
    | fields("timeout_seconds", ["10", True, 0, 0.0, -1, -1e-9, 31 * 86_400 + 1, 1e308, [], {}])
    | fields("expires_after_seconds", ["10", True, 0, -1, 366 * 86_400 + 1, 1e308, [], {}])
    | fields("unique_key", [*NOT_TEXT, "", "x" * 256])
    | fields("unique_for_seconds", ["10", True, 0, -1, 366 * 86_400 + 1, [], {}, 5])
    | fields("unique_policy", ["Keep", "", 1, None, "replace"])
    | fields("parameters", [None, [], "x", 1, True])
    | fields("tags", [None, {}, "a", 1, ["a"] * 51])
    | fields("tags", [["a", bad] for bad in NO_TAG], pointer="/tags/1")
    | fields("overlap", ["never", "Allow", "", 1, None])
    | fields("stauts", [1])
    | fields("job_id", ["01a2286f-8f81-7fe3-8426-ba3624ec9a73"])
    | fields("a/b~c", [1], pointer="/a~1b~0c")
    | fields("schedule", [None, "IMMEDIATE", [], 1])
)  # fmt: skip
SCHEDULES = (
    schedules([{}, {"expression": "* * * * *"}], code="invalid_input", pointer="/schedule/type")
    | schedules([{"type": bad} for bad in NO_TYPE],
                code="invalid_input", pointer="/schedule/type")
    | schedules([IMMEDIATE | {"cron": "* * * * *"}], code="invalid_input", pointer="/schedule/cron")
    | schedules([cron(bad) for bad in NOT_TEXT], code="invalid_input", pointer="/schedule/expression")
    | schedules([cron(bad) for bad in ("", " ", "* * * *", "* * * * * * *", "61 * * * *", "* 24 * * *", "a b c d e",
                                       "*/0 * * * *", "@reboot", "@every 5m", "@nope", "0 2 * * TUE\n",
                                       "0 2 * * TUES", "TZ=UTC 0 2 * * *", "0 2 * * *; rm -rf /", "\u0660 2 * * *",
                                       "-1 * * * *", "1-99999999999 * * * *", "* " * 5000)],
                code="invalid_cron", pointer="/schedule/expression")
    | schedules([cron(bad) for bad in ("0 0 30 2 *", "0 0 31 4,6,9,11 *")],
                code="never_fires", pointer="/schedule/expression")
    | schedules([cron("0 0 1 1 *", ends_at="2001-01-01T00:00:00Z"), every(60, ends_at=1),
                 cron("0 0 1 1 *", starts_at="2099-02-01T00:00:00Z", ends_at="2099-03-01T00:00:00Z")],
                code="never_fires", pointer="/schedule")
    | schedules([{"type": "CRON"}, cron(None)], code="invalid_schedule", pointer="/schedule/expression")
    | schedules([{"type": "ONCE"}, once(None)], code="invalid_schedule", pointer="/schedule/scheduled_time")
    | schedules([{"type": "INTERVAL"}, every(None)], code="invalid_schedule", pointer="/schedule/every")
    | schedules([IMMEDIATE | {"expression": "* * * * *"}, once(0, expression="* * * * *"),
                 every(60, expression="* * * * *")], code="invalid_schedule", pointer="/schedule/expression")
    | schedules([IMMEDIATE | {"scheduled_time": 0}, cron("* * * * *", scheduled_time=0)],
                code="invalid_schedule", pointer="/schedule/scheduled_time")
    | schedules([IMMEDIATE | {"every": 5}, once(0, every=5)], code="invalid_schedule", pointer="/schedule/every")
    | schedules([IMMEDIATE | {"starts_at": 0}, once(0, starts_at=0)],
                code="invalid_schedule", pointer="/schedule/starts_at")
    | schedules([once(bad) for bad in NO_TIME], code="invalid_input", pointer="/schedule/scheduled_time")
    | schedules([once(bad) for bad in ("", "tomorrow", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01",
                                       "2026-01-01T24:00:00Z", "2026-01-01T00:00:00+25:00", -1, 1e15, 2**62,
                                       1893456000000, "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "1" * 5000,
                                       "0001-01-01T00:00:00+14:00", "202\uff16-01-01T00:00:00Z")],
                code="invalid_schedule", pointer="/schedule/scheduled_time")
    | schedules([once("2025-03-09T02:30:00", timezone="America/New_York", gap="skip")],
                code="invalid_schedule", pointer="/schedule/scheduled_time")
    | schedules([every(bad) for bad in NO_TIME], code="invalid_input", pointer="/schedule/every")
    | schedules([every(bad) for bad in (0, 0.999, -1, 1e12, 1e308, "PT0S", "-PT5S", "P1M", "P1Y", "soon", "", "5m",
                                        "P", "PT", "PT1e5S", "9" * 400, "P99999999999999999999D")],
                code="invalid_schedule", pointer="/schedule/every")
    | schedules([every(60, starts_at=10, ends_at=9), cron("* * * * *", starts_at=10, ends_at=9)],
                code="invalid_schedule", pointer="/schedule/ends_at")
    | schedules([cron("* * * * *", starts_at="soon")], code="invalid_schedule", pointer="/schedule/starts_at")
    | schedules([IMMEDIATE | {"timezone": bad} for bad in (
                    "", "Mars/Olympus", "utc", "europe/berlin", "UTC+1", "../../etc/passwd", "/etc/localtime",
                    "Factory", "Europe", "tzdata.zi", "Europe/Berlin\n", " UTC", "x" * 100_000,
                    "America/cupertino", "ÜTC")],
                code="invalid_timezone", pointer="/schedule/timezone")
    | schedules([IMMEDIATE | {"timezone": bad} for bad in (None, *NOT_TEXT)],
                code="invalid_input", pointer="/schedule/timezone")
    | schedules([cron("* * * * *", gap="fill")], code="invalid_input", pointer="/schedule/gap")
    | schedules([cron("* * * * *", fold="third")], code="invalid_input", pointer="/schedule/fold")
    | schedules([cron("* * * * *", misfire="panic")], code="invalid_input", pointer="/schedule/misfire")
    | schedules([cron("* * * * *", misfire_grace_seconds=bad) for bad in (-1, "60", True, None, 1e308)],
                code="invalid_input", pointer="/schedule/misfire_grace_seconds")
)  # fmt: skip
CASES = FIELDS | SCHEDULES


@pytest.mark.parametrize("name", CASES)
async def test_a_request_that_does_not_hold_together_is_refused(site: Site, name: str) -> None:
    await site.task("checked", parameter_schema=SCHEMA)
    before = await site.counts()
    changes, code, pointer = CASES[name]

    answer = await site.post("/jobs", GOOD | changes)

    document = problem(answer, status=400, code=code)
    assert pointers(document) == [pointer]
    assert await site.counts() == before


@pytest.mark.parametrize("missing", ["task_id", "schedule"])
async def test_what_a_job_cannot_be_without_is_asked_for(site: Site, missing: str) -> None:
    body = {name: value for name, value in GOOD.items() if name != missing}
    document = problem(await site.post("/jobs", body), status=400, code="invalid_input")
    assert pointers(document) == [f"/{missing}"]
    assert missing in document["detail"]


async def test_everything_that_does_not_fit_a_type_of_schedule_is_named_at_once(site: Site) -> None:
    schedule = {"type": "IMMEDIATE", "every": 5, "expression": "* * * * *", "ends_at": 1}
    document = problem(
        await site.post("/jobs", GOOD | {"schedule": schedule}), status=400, code="invalid_schedule"
    )
    assert pointers(document) == ["/schedule/ends_at", "/schedule/every", "/schedule/expression"]


async def test_an_unknown_zone_gets_the_names_that_may_have_been_meant(site: Site) -> None:
    schedule = {"type": "IMMEDIATE", "timezone": "Europe/Berln"}
    document = problem(
        await site.post("/jobs", GOOD | {"schedule": schedule}), status=400, code="invalid_timezone"
    )
    assert "Europe/Berlin" in document["detail"]


@pytest.mark.parametrize(
    ("parameters", "wrong"),
    [
        ({"n": 0}, {"/parameters/n": "minimum"}),
        ({"n": "1"}, {"/parameters/n": "type"}),
        ({"n": 1.5}, {"/parameters/n": "type"}),
        ({"n": True}, {"/parameters/n": "type"}),
        ({"other": 1}, {"/parameters": "additionalProperties"}),
        ({"a/b~c": 1}, {"/parameters/a~1b~0c": "type"}),
        (
            {"n": "one", "region": "mars", "list": ["abc", "abcd", 5]},
            {
                "/parameters/n": "type",
                "/parameters/region": "enum",
                "/parameters/list/1": "maxLength",
                "/parameters/list/2": "type",
            },
        ),
    ],
)
async def test_each_parameter_that_does_not_satisfy_the_schema_is_pointed_at(
    site: Site, parameters: dict[str, Any], wrong: dict[str, str]
) -> None:
    await site.task("checked", parameter_schema=SCHEMA)
    before = await site.counts()

    answer = await site.post("/jobs", GOOD | {"parameters": parameters})

    document = problem(answer, status=400, code="invalid_parameters")
    assert {error["pointer"]: error["code"] for error in document["errors"]} == wrong
    assert all(error["detail"] for error in document["errors"])
    assert await site.counts() == before


async def test_no_more_errors_are_listed_than_somebody_would_read(site: Site) -> None:
    await site.task("strings", parameter_schema={"additionalProperties": {"type": "string"}})
    parameters = {f"k{number}": [number] * 1000 for number in range(100)}
    answer = await site.post("/jobs", GOOD | {"task_id": "strings", "parameters": parameters})
    assert len(problem(answer, status=400, code="invalid_parameters")["errors"]) == 20
    assert len(answer.content) < 20_000


async def test_legal_extremes_are_taken(site: Site) -> None:
    await site.task("checked", parameter_schema=SCHEMA)
    for changes in (
        {"max_retries": 1000, "priority": 0, "timeout_seconds": 31 * 86_400, "name": "Ω" * 200},
        {"max_retries": 0, "priority": 3, "timeout_seconds": 5e-324, "name": " "},
        {"tags": [f"tag-{number}" for number in range(50)]},
        {"tags": ["a" * 64, "0:/@._-"], "name": None, "queue": None, "priority": None},
        {"schedule": once("9999-12-30T00:00:00Z")},
        {"schedule": every(3653 * 86_400)},
        {"schedule": every("1.5", starts_at=0)},
        {"schedule": cron("* * * * * *", misfire_grace_seconds=0)},
        {"schedule": cron("0 0 29 2 *", starts_at="2096-03-01T00:00:00Z")},
        {"parameters": {"n": 2**63 - 1, "list": ["abc"] * 100_000}},
    ):
        answer = await site.post("/jobs", GOOD | changes)
        assert answer.status_code == 201, (changes, answer.text)
        read = await site.get(f"/jobs/{answer.json()['job_id']}")
        assert read.status_code == 200
