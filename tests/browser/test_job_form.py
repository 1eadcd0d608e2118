"""The form of a job in a browser: by mouse, by keyboard, without a script."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import House, Watched, serious_flaws

OpenAs = Callable[..., Page]
SCHEMA = {
    "type": "object",
    "required": ["version"],
    "additionalProperties": False,
    "properties": {
        "version": {"type": "string"},
        "share": {"type": "integer", "maximum": 100, "default": 25},
    },
}
CRON = "Cron expression"


def deploy(house: House) -> str:
    """Make a task whose parameters have fields."""
    return house.task(parameter_schema=SCHEMA)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_form_has_no_serious_flaw(house: House, open_as: OpenAs, width: int, theme: str) -> None:
    job = house.job(deploy(house), parameters={"version": "1"}, tags=["x" * 60, "y"])
    for path in (f"/jobs/new?task={deploy(house)}", f"/jobs/{job['job_id']}/edit"):
        page = open_as("ada", path, theme=theme, width=width)
        page.get_by_text("Bounds, changes of the clock").click()
        page.get_by_label("Name").fill("x" * 150)
        page.get_by_text("curl", exact=True).click()
        expect(page.locator("#preview pre").first).to_contain_text("x" * 150)

        assert serious_flaws(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_preview_follows_what_is_typed_and_moves_nothing(house: House, open_as: OpenAs) -> None:
    page = open_as("ada", "/jobs/new")
    expect(page.locator("#preview")).to_contain_text("Every day at 02:00 (UTC)")
    place = page.get_by_label("Time zone").bounding_box()
    page.get_by_label(CRON).fill("61 2 * * *")

    beside = page.locator("[id='help-schedule.expression']")
    expect(beside).to_have_text("field 1 (minute): 61 is not in 0-59")
    expect(page.get_by_label(CRON)).to_have_attribute("aria-invalid", "true")
    assert page.get_by_label("Time zone").bounding_box() == place
    page.get_by_label(CRON).fill("30 2 * * *")
    page.get_by_label("Time zone").fill("America/New_York")
    expect(page.locator("#preview")).to_contain_text("Every day at 02:30 (America/New_York)")
    expect(page.locator(".warnings")).to_contain_text("does not exist in America/New_York")
    expect(page.get_by_label(CRON)).not_to_have_attribute("aria-invalid", "true")
    expect(page.locator(".instants tbody tr")).to_have_count(10)
    page.get_by_label("Task", exact=True).fill(house.task())
    page.locator(".commands summary").first.click()
    page.get_by_label(CRON).fill("30 3 * * *")
    expect(page.locator(".commands pre").first).to_contain_text("30 3 * * *")
    expect(page.locator(".commands pre").first).to_be_visible()  # it stays open


def test_a_job_is_made_by_keyboard_alone(house: House, open_as: OpenAs) -> None:
    task_id = deploy(house)
    page = open_as("ada", "/jobs/new")
    expect(page.get_by_label("Task", exact=True)).to_be_focused()
    page.keyboard.type(task_id)
    expect(page.get_by_label("version")).to_be_visible()  # the fields of the task's schema
    page.get_by_label("version").focus()
    page.keyboard.type("17.2")
    page.get_by_label("Cron", exact=True).focus()
    for _ in range(3):  # Cron, interval, once, now
        page.keyboard.press("ArrowRight")
    expect(page.locator("#preview")).to_contain_text("Once, at once")
    page.keyboard.press("Control+Enter")

    expect(page).to_have_url(re.compile(r"/executions/[0-9a-f-]{36}$"))
    [job] = house.api.get("/jobs", params={"task_type": task_id}).json()["items"]
    assert (job["parameters"], job["schedule"]["type"]) == ({"version": "17.2", "share": 25}, "IMMEDIATE")


def test_a_preset_and_the_mouse_make_a_recurring_job(house: House, open_as: OpenAs) -> None:
    task_id = house.task()
    page = open_as("ada", f"/jobs/new?task={task_id}")
    page.get_by_role("button", name="Weekdays 09:00").click()
    expect(page.locator("#preview")).to_contain_text("Monday to Friday at 09:00 (UTC)")
    page.get_by_role("button", name="Create the job").click()

    expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    [job] = house.api.get("/jobs", params={"task_type": task_id}).json()["items"]
    assert job["schedule"]["expression"] == "0 9 * * MON-FRI"


def test_what_a_run_does_beside_an_earlier_one_is_chosen_in_words(house: House, open_as: OpenAs) -> None:
    task_id = house.task()
    page = open_as("ada", f"/jobs/new?task={task_id}")
    ways = page.get_by_role("group", name="If an earlier run is still under way")
    expect(ways.get_by_role("radio", name="Run beside it")).to_be_checked()
    ways.get_by_text("Skip the new run").click()
    page.get_by_text("onthedot", exact=True).last.click()
    expect(page.locator(".commands pre").last).to_contain_text("--overlap skip")
    page.get_by_role("button", name="Create the job").click()

    expect(page.locator(".rules")).to_contain_text("skipped while an earlier run is under way")
    [job] = house.api.get("/jobs", params={"task_type": task_id}).json()["items"]
    assert job["overlap"] == "skip"


def test_what_is_wrong_is_told_and_led_to(house: House, open_as: OpenAs, watched: Watched) -> None:
    watched.expect("400")
    page = open_as("ada", f"/jobs/new?task={house.task()}")
    page.get_by_label("Time-out").fill("soon")
    page.get_by_role("button", name="Create the job").click()
    expect(page.get_by_role("alert")).to_be_focused()
    page.get_by_role("link", name="Time-out: 'soon' is not a number").click()

    expect(page.get_by_label("Time-out")).to_be_focused()
    assert serious_flaws(page) == []


def test_leaving_unsaved_changes_is_asked_about(open_as: OpenAs) -> None:
    page = open_as("ada", "/jobs/new")
    asked: list[str] = []

    def stay(dialog: object) -> None:
        asked.append(dialog.type)  # type: ignore[attr-defined]
        dialog.dismiss()  # type: ignore[attr-defined]

    page.on("dialog", stay)
    page.get_by_label("Name").fill("Typed")
    page.get_by_role("link", name="Cancel").click(no_wait_after=True)
    expect(page.get_by_label("Name")).to_have_value("Typed")
    assert asked == ["beforeunload"]
    page.get_by_label("Name").fill("")
    page.get_by_role("link", name="Cancel").click()
    expect(page).to_have_url(re.compile(r"/jobs$"))


def test_of_two_editors_the_later_sees_the_difference(
    house: House, open_as: OpenAs, watched: Watched
) -> None:
    watched.expect("412")
    job_id = house.job(name="Nightly")["job_id"]
    page = open_as("ada", f"/jobs/{job_id}/edit")
    page.get_by_label("Name").fill("Mine")
    assert house.api.patch(f"/jobs/{job_id}", json={"name": "Theirs", "priority": 1}).is_success
    page.get_by_role("button", name="Save").click()
    alert = page.get_by_role("alert")
    expect(alert).to_be_focused()
    expect(alert).to_contain_text("Theirs")
    expect(page.get_by_label("Name")).to_have_value("Mine")
    expect(page.get_by_label("Priority")).to_have_value("1")
    assert serious_flaws(page) == []
    page.get_by_role("button", name="Save").click()

    expect(page).to_have_url(re.compile(f"/jobs/{job_id}$"))
    assert house.api.get(f"/jobs/{job_id}").json()["name"] == "Mine"


def test_without_a_script_preview_and_saving_work(house: House, open_as: OpenAs) -> None:
    task_id = house.task()
    page = open_as("ada", f"/jobs/new?task={task_id}", java_script_enabled=False)
    page.get_by_label("Name").fill("Typed")
    page.get_by_label("Once", exact=True).check()
    page.get_by_label("Time", exact=True).fill("2030-01-31 09:00")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("Once at 2030-01-31 09:00 (UTC)")
    expect(page.get_by_label("Name")).to_have_value("Typed")
    page.get_by_label("Name").press("Enter")  # saves; it presses no preset

    expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    [job] = house.api.get("/jobs", params={"task_type": task_id}).json()["items"]
    assert (job["name"], job["schedule"]["scheduled_time"]) == ("Typed", "2030-01-31T09:00:00Z")
