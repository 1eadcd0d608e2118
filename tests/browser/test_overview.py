"""The overview in a browser."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import House, listen, serious_flaws

OpenAs = Callable[..., Page]


def test_a_failure_turns_page_title_and_icon_red_and_a_success_back(house: House, open_as: OpenAs) -> None:
    task = house.task("builtin:fail", resource_requirements={"max_retries": 0})
    page = open_as("ada")
    job_id = house.job(task, name="breaks", parameters={"message": "the disk is full"})["job_id"]
    house.post(f"/jobs/{job_id}/actions/run")
    row = page.locator(f"#failing-{job_id}")
    expect(row).to_contain_text("the disk is full")

    expect(page).to_have_title(re.compile(r"^\(\d+\) Overview"))
    expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile("logo-bad.svg"))
    expect(page.locator("#trouble")).to_contain_text("failing")
    assert serious_flaws(page) == []
    house.api.patch(f"/tasks/{task}", json={"execution_handler": "builtin:noop"})
    row.get_by_role("button", name="Run again").click()
    page.mouse.move(0, 0)
    expect(row).to_have_count(0)


def test_what_is_under_the_pointer_stays(house: House, open_as: OpenAs) -> None:
    first = house.job(name="comes later", schedule={"type": "INTERVAL", "every": 1800})["job_id"]
    page = open_as("ada")
    button = page.locator(f"#upcoming form[action='/jobs/{first}/run'] button").first
    button.hover()
    place = button.bounding_box()
    until_told = listen(page)
    house.job(name="comes sooner", schedule={"type": "INTERVAL", "every": 1200})
    until_told()

    assert button.bounding_box() == place
    expect(page.locator("#upcoming")).not_to_contain_text("comes sooner")
    page.mouse.move(0, 0)
    expect(page.locator("#upcoming")).to_contain_text("comes sooner")


def test_run_now_from_the_overview(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="run from here", schedule={"type": "INTERVAL", "every": 900})["job_id"]
    page = open_as("ada")
    page.locator(f"#upcoming form[action='/jobs/{job_id}/run'] button").first.click()

    expect(page.locator("#toasts")).to_contain_text("Started.")
    runs = house.api.get(f"/jobs/{job_id}/executions").json()["items"]
    assert [run["trigger"] for run in runs] == ["manual"]


def test_a_queue_is_paused_from_the_overview_and_goes_on(house: House, open_as: OpenAs) -> None:
    page = open_as("ada")
    row = page.locator("#queue-maintenance")
    row.get_by_role("link", name="Pause…").click()
    page.get_by_label("Reason").fill("the warehouse is down")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("Paused")
    assert house.api.get("/queues/maintenance").json()["paused"]["reason"] == "the warehouse is down"
    row.get_by_role("button", name="Resume").click()
    expect(row).not_to_contain_text("Paused")


def test_tiles_are_opened_by_their_numbers(open_as: OpenAs) -> None:
    page = open_as("ada")
    page.keyboard.press("3")

    expect(page).to_have_url(re.compile(r"/executions\?status=RUNNING$"))


def test_the_chart_goes_from_an_hour_to_a_week_without_scripts(open_as: OpenAs) -> None:
    page = open_as("viv", java_script_enabled=False)
    page.get_by_role("link", name="7d").click()

    expect(page).to_have_url(re.compile(r"/\?span=7d$"))
    expect(page.locator("#throughput rect.hit")).to_have_count(84)
