"""Journeys over the list of jobs and the page of one."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import House, Watched, serious_flaws

OpenAs = Callable[..., Page]
PATIENCE_SECONDS = 20


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_state_of_the_pages_has_a_serious_flaw(
    house: House, open_as: OpenAs, width: int, theme: str
) -> None:
    failing, paused = _failing(house), _paused(house)
    paths = ["/jobs?state=paused", "/jobs?task_id=none", "/jobs?kind=all&tag=night"]
    paths += [
        f"/jobs/{failing}",
        f"/jobs/{failing}?status=FAILED",
        f"/jobs/{paused}",
        f"/jobs/{paused}/delete",
    ]
    paths += [f"/jobs/{paused}/{tab}" for tab in ("definition", "changes", "api")]
    for path in paths:
        page = open_as("ada", path, theme=theme, width=width)
        assert serious_flaws(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_the_keyboard_leads_from_the_list_to_a_job_and_its_tabs(house: House, open_as: OpenAs) -> None:
    house.job(name="reached by keyboard")
    page = open_as("ada", "/jobs?name=reached by keyboard")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="reached by keyboard")).to_be_visible()
    page.get_by_role("link", name="Changes", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".audit")).to_contain_text("created")
    page.keyboard.press("e")

    expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}/edit$"))


def test_a_job_is_found_by_a_part_of_its_name(house: House, open_as: OpenAs) -> None:
    for name in ("compact the telemetry", "rotate the keys"):
        house.job(name=name)
    page = open_as("viv", "/jobs")
    page.keyboard.press("/")
    page.keyboard.type("TELEMETRY")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"/jobs\?name=TELEMETRY$"))
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_title("Remove this filter").click()
    expect(page).to_have_url(re.compile(r"/jobs$"))


def test_running_a_job_shows_its_run_where_one_looks(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="run from its page")["job_id"]
    page = open_as("ada", f"/jobs/{job_id}")
    expect(page.locator("#runs-title")).to_have_text("Runs")
    page.get_by_role("button", name="Run now").click()

    expect(page.locator("#toasts")).to_contain_text("Started.")
    expect(page.locator("#runs-title")).to_have_text("Last run")
    expect(page.locator("#job .run-strip .good")).to_have_count(1)
    page.locator("#news").click()
    expect(page.locator("tbody tr[id]").first).to_contain_text("Completed")
    expect(page.locator("tbody tr[id]").first).to_contain_text("by ada")


def test_pausing_and_resuming_change_the_head_in_place(
    house: House, open_as: OpenAs, watched: Watched
) -> None:
    watched.expect("400")
    job_id = house.job(name="paused from its page")["job_id"]
    page = open_as("ada", f"/jobs/{job_id}")
    page.get_by_role("link", name="Pause…").click()
    page.get_by_label("Reason").fill("the migration")
    page.get_by_label("Until").fill("2001-01-31T09:00")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("#dialog")).to_contain_text("lies in the past")
    assert serious_flaws(page) == []
    page.get_by_label("Until").fill("2130-01-31T09:00")
    page.get_by_role("button", name="Pause", exact=True).click()

    expect(page.locator("#job .notice")).to_contain_text("Paused by ada")
    expect(page.locator("#job .notice")).to_contain_text("2130-01-31 09:00:00 UTC")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#job .notice")).to_have_count(0)
    expect(page.locator("#job .state").first).to_have_text("Waiting")


def test_what_others_do_shows_in_place(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="watched")["job_id"]
    page = open_as("viv", f"/jobs/{job_id}")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    house.post(f"/jobs/{job_id}/actions/pause", {"reason": "elsewhere"})

    expect(page.locator("#job .notice")).to_contain_text("elsewhere")
    expect(page.locator("#job form")).to_have_count(0)


def test_a_job_is_deleted_from_the_menu_of_its_row(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="deleted from the list")["job_id"]
    page = open_as("ada", "/jobs?name=deleted from the list")
    row = page.locator(f"#row-{job_id}")
    row.get_by_label("More").click()
    row.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()

    expect(row).to_have_text("This job was deleted.")


def test_a_job_is_deleted_from_its_page_which_then_is_left(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="deleted from its page")["job_id"]
    page = open_as("ada", f"/jobs/{job_id}/definition")
    page.locator("#job").get_by_label("More").click()
    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()

    expect(page).to_have_url(re.compile(r"/jobs$"))
    expect(page.locator("#toasts")).to_contain_text("Deleted.")


def test_without_scripts_everything_is_a_page(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="without scripts", tags=["plain"])["job_id"]
    page = open_as("ada", "/jobs", java_script_enabled=False)
    page.get_by_label("Tag").fill("plain")
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("link", name="without scripts").click()
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#toasts")).to_contain_text("Started.")
    page.get_by_role("link", name="Pause…").click()
    page.get_by_label("Until").fill("2130-01-31T09:00")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page).to_have_url(re.compile(rf"/jobs/{job_id}$"))
    expect(page.locator("#job .notice")).to_contain_text("Paused by ada")
    page.get_by_role("button", name="Resume").click()
    page.get_by_label("Status").select_option("COMPLETED")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile(rf"/jobs/{job_id}\?status=COMPLETED$"))
    page.locator("#job").get_by_label("More").click()
    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()

    expect(page).to_have_url(re.compile(r"/jobs$"))


def test_the_zone_goes_round_by_way_of_the_schedules(house: House, open_as: OpenAs) -> None:
    schedule = {"type": "CRON", "expression": "30 2 * * *", "timezone": "Australia/Eucla"}
    job_id = house.job(name="zoned", schedule=schedule)["job_id"]
    page = open_as("viv", f"/jobs/{job_id}", timezone_id="Asia/Tokyo")
    for zone in ("UTC", "Asia/Tokyo +09:00", "Australia/Eucla +08:45", "UTC"):
        expect(page.locator("#zone")).to_have_text(zone)
        expect(page.locator(".instants tbody tr").first).to_contain_text("02:30:00 +0845")
        page.keyboard.press("z")


def _failing(house: House) -> str:
    """Make a job that repeats and has failed."""
    task = house.task("builtin:fail", resource_requirements={"max_retries": 0})
    job_id: str = house.job(task, name="fails", tags=["night", "release"])["job_id"]
    house.post(f"/jobs/{job_id}/actions/run")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not house.api.get(f"/jobs/{job_id}/executions", params={"status": "FAILED"}).json()["items"]:
        assert time.monotonic() < deadline
    return job_id


def _paused(house: House) -> str:
    schedule = {"type": "CRON", "expression": "*/15 9-17 * * 1-5", "timezone": "Europe/Berlin"}
    job_id: str = house.job(name="x" * 200, schedule=schedule, parameters={"long": "y" * 3000})["job_id"]
    house.post(f"/jobs/{job_id}/actions/pause", {"reason": "z" * 500, "until": "2130-01-31T09:00:00Z"})
    return job_id
