"""Expressions from the field through the API: a preview tells what creating and changing a job makes of them."""

from typing import Any

import pytest

from tests.api.conftest import Site
from tests.domain.test_cron_cases import CASES, RANGES_WRAP, Case

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIRST = {"type": "RECURRING", "expression": "0 0 1 1 *"}
REFUSAL = ("code", "detail", "errors")


def schedule_of(case: Case) -> dict[str, Any]:
    """Return the case as people write it."""
    return {"type": "CRON", "expression": case.expr, "timezone": case.tz}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_preview_from_the_base_of_the_case(site: Site, case: Case) -> None:
    ours = case.alt[0].expect if case.id in RANGES_WRAP else case.expect
    answer = await site.post(
        "/schedules/preview", {"schedule": schedule_of(case), "after": case.base.isoformat()}
    )

    assert (answer.status_code == 200) == (ours != "invalid"), case.why
    if answer.status_code == 200:
        assert answer.json()["occurrences"] == ours, case.why


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_creating_and_changing_a_job_tell_the_same(site: Site, case: Case) -> None:
    await site.task("cases")
    schedule = schedule_of(case)
    preview = (await site.post("/schedules/preview", {"schedule": schedule})).json()
    created = await site.post("/jobs", {"task_id": "cases", "schedule": schedule})
    other = await site.job("cases", schedule=FIRST)
    changed = await site.request(
        "PATCH", f"/jobs/{other['job_id']}", json={"schedule": schedule}, headers={"If-Match": '"1"'}
    )

    later = (await site.post("/schedules/preview", {"schedule": schedule})).json()

    if "occurrences" in preview:
        told = [preview["occurrences"], later["occurrences"]]  # an instant may have passed in between
        assert created.json()["next_occurrences"] in told
        assert changed.json()["next_occurrences"] in told
    else:
        refusals = [{name: body.json().get(name) for name in REFUSAL} for body in (created, changed)]
        assert refusals == [{name: preview.get(name) for name in REFUSAL}] * 2
        assert created.status_code == changed.status_code == 400
