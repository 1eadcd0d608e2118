"""`POST /schedules/preview`."""

from typing import Any

import pytest

from tests.api.conftest import Site, pointers, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAILY = {"type": "RECURRING", "expression": "30 2 * * *", "timezone": "America/New_York"}
BAD: list[dict[str, Any]] = [
    {"type": "CRON"},
    {"type": "CRON", "expression": "61 * * * *"},
    {"type": "CRON", "expression": "0 0 30 2 *"},
    {"type": "CRON", "expression": "0 2 * * *", "timezone": "Mars/Olympus"},
    {"type": "CRON", "expression": "0 2 * * *", "ends_at": "2020-01-01T00:00:00Z"},
    {"type": "CRON", "expression": "0 2 * * *", "surprise": 1},
    {"type": "CRON", "expression": "0 2 * * *", "misfire_grace_seconds": -1},
    {"type": "INTERVAL", "every": "P1M"},
    {"type": "INTERVAL", "every": 0.5},
    {"type": "ONCE", "scheduled_time": "tomorrow"},
    {"type": "ONCE", "scheduled_time": "2027-01-01", "every": 5},
    {"type": "SOMETIMES"},
]


async def test_the_example_of_the_contract(site: Site) -> None:
    answer = await site.post(
        "/schedules/preview", {"schedule": DAILY, "after": "2025-03-08T12:00:00Z", "count": 2}, user="vera"
    )

    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "occurrences": ["2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"],
        "description": "every day at 02:30 (America/New_York)",
        "timezone": {"requested": "America/New_York", "resolved": "America/New_York"},
        "warnings": [
            {
                "code": "dst_gap",
                "detail": "02:30 on 2025-03-09 does not exist in America/New_York (the clock jumps from 02:00 to "
                "03:00): it runs once at 03:00 instead",
                "at": "2025-03-09T07:00:00Z",
            },
            {
                "code": "dst_gap",
                "detail": "02:30 on 2026-03-08 does not exist in America/New_York (the clock jumps from 02:00 to "
                "03:00): it runs once at 03:00 instead",
                "at": "2026-03-08T07:00:00Z",
            },
        ],
    }


async def test_a_link_is_shown_with_where_it_leads(site: Site) -> None:
    schedule = DAILY | {"timezone": "US/Pacific"}
    answer = await site.post("/schedules/preview", {"schedule": schedule})

    assert answer.json()["timezone"] == {
        "requested": "US/Pacific", "resolved": "US/Pacific", "target": "America/Los_Angeles",
    }  # fmt: skip


async def test_it_tells_five_instants_from_now_on_and_stores_nothing(site: Site) -> None:
    before = await site.counts()
    answer = await site.post("/schedules/preview", {"schedule": {"type": "INTERVAL", "every": 60}})

    assert len(answer.json()["occurrences"]) == 5
    assert answer.json()["description"].startswith("every minute, counted from ")
    assert await site.counts() == before


async def test_an_immediate_schedule_has_no_instants(site: Site) -> None:
    answer = await site.post("/schedules/preview", {"schedule": {"type": "IMMEDIATE"}})

    assert (answer.json()["occurrences"], answer.json()["description"]) == ([], "once, at once")


@pytest.mark.parametrize("schedule", BAD, ids=repr)
async def test_what_creating_a_job_refuses_is_refused_alike(site: Site, schedule: dict[str, Any]) -> None:
    await site.task("previewed")
    created = await site.post("/jobs", {"task_id": "previewed", "schedule": schedule})
    previewed = await site.post("/schedules/preview", {"schedule": schedule})

    refusal = problem(previewed, status=400, code=created.json()["code"])
    assert pointers(refusal) == pointers(created.json()) != []


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"count": 0}, "/count"),
        ({"count": 101}, "/count"),
        ({"count": "5"}, "/count"),
        ({"after": "soon"}, "/after"),
        ({"x": 1}, "/x"),
    ],
)
async def test_a_body_that_does_not_fit_is_pointed_at(
    site: Site, fields: dict[str, Any], pointer: str
) -> None:
    answer = await site.post("/schedules/preview", {"schedule": DAILY} | fields)

    assert answer.status_code == 400
    assert pointers(answer.json()) == [pointer]


async def test_what_a_preview_warns_of_saving_warns_of(site: Site) -> None:
    await site.task("linted")
    schedules: list[dict[str, Any]] = [
        DAILY,
        {"type": "CRON", "expression": "*/5 * * * * *"},
        {"type": "INTERVAL", "every": "P1D", "timezone": "Europe/Berlin"},
        {"type": "ONCE", "scheduled_time": "2001-01-01T00:00:00Z"},
        {"type": "CRON", "expression": "0 12 * * *"},
    ]
    for schedule in schedules:
        preview = (await site.post("/schedules/preview", {"schedule": schedule})).json()["warnings"]
        created = await site.job("linted", schedule=schedule)
        other = await site.job("linted", schedule={"type": "CRON", "expression": "0 0 1 1 *"})
        changed = await site.request(
            "PATCH", f"/jobs/{other['job_id']}", json={"schedule": schedule}, headers={"If-Match": '"1"'}
        )

        assert bool(preview) == (schedule is not schedules[-1])
        assert created["warnings"] == preview
        assert changed.json()["warnings"] == preview


async def test_it_needs_a_key(site: Site) -> None:
    problem(
        await site.post("/schedules/preview", {"schedule": DAILY}, user=None), status=401, code="unauthorized"
    )


async def test_a_job_may_have_several_expressions(site: Site) -> None:
    schedule = {"type": "CRON", "expression": "30 2 * * *; 0 12 * * MON", "timezone": "America/New_York"}
    asked = {"schedule": schedule, "after": "2025-03-08T12:00:00Z", "count": 3}
    preview = (await site.post("/schedules/preview", asked)).json()
    job = await site.job("several", schedule=schedule)

    assert preview["description"] == "every day at 02:30 and every Monday at 12:00 (America/New_York)"
    assert preview["occurrences"] == ["2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z", "2025-03-10T16:00:00Z"]
    assert [warning["code"] for warning in preview["warnings"]] == ["dst_gap", "dst_gap"]
    assert job["schedule"]["expression"] == "30 2 * * *; 0 12 * * MON"
