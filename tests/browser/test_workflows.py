"""Journeys over workflows and their runs."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import House, serious_flaws

OpenAs = Callable[..., Page]
PATIENCE_SECONDS = 20
DAILY = {"type": "RECURRING", "expression": "0 3 * * *", "timezone": "Europe/Berlin"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_state_of_the_pages_has_a_serious_flaw(
    house: House, open_as: OpenAs, width: int, theme: str
) -> None:
    workflow_id, run_id = _failed_run(house)
    paths = [f"/workflows/{workflow_id}", f"/workflows/{workflow_id}/steps", f"/workflow-runs/{run_id}"]
    paths += [f"/workflow-runs/{run_id}/steps/each", f"/workflow-runs/{run_id}/retry"]
    for path in ["/workflows", *paths]:
        page = open_as("ada", path, theme=theme, width=width)
        assert serious_flaws(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_the_keyboard_leads_from_the_list_to_a_run_and_its_steps_run_again(
    house: House, open_as: OpenAs
) -> None:
    workflow_id, run_id = _failed_run(house)
    page = open_as("ada", "/")
    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page).to_have_url(re.compile("/workflows$"))
    page.wait_for_load_state()
    page.locator(f"#row-{workflow_id}").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/workflows/{workflow_id}$"))
    page.wait_for_load_state()
    page.locator(f"#row-{run_id}").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#now")).to_contain_text("1 failed")
    house.api.patch(f"/tasks/{_task_of(house, workflow_id, 'fails')}", json=_MENDED)
    page.get_by_role("link", name="Run failed steps again…").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#dialog")).to_contain_text("Run 2 steps again?")
    expect(page.locator("#dialog")).to_contain_text("last, now skipped")
    page.locator("#dialog").get_by_role("button", name="Run again").press("Enter")

    expect(page.locator("#toasts")).to_contain_text("The run goes on.")
    expect(page.locator("#now h2").first).to_have_text("Completed")  # in place
    expect(page.locator("#step-last")).to_contain_text("Completed")
    expect(page.locator("#card-last")).to_contain_text("Completed")


def test_arrow_keys_go_from_card_to_card(house: House, open_as: OpenAs) -> None:
    _, run_id = _failed_run(house)
    page = open_as("viv", f"/workflow-runs/{run_id}")
    page.locator("#card-first").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#card-each:focus, #card-fails:focus")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(page.locator("#card-last")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#card-last")).to_be_focused()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")

    expect(page.locator("#card-first")).to_be_focused()


def test_a_run_is_followed_in_place_to_its_end_and_cancelled(house: House, open_as: OpenAs) -> None:
    task_id = house.task("builtin:sleep")
    steps = [
        {"key": "slow", "task_id": task_id, "parameters": {"seconds": 600}},
        {"key": "then", "task_id": task_id, "depends_on": ["slow"]},
    ]
    _, run_id = _begin(house, steps)
    page = open_as("ada", f"/workflow-runs/{run_id}")
    expect(page.locator("#step-slow")).to_contain_text("Running")
    expect(page.locator("#step-then")).to_contain_text("waits for slow")
    page.locator(".graph").evaluate("graph => graph.seen = true")
    page.locator("#now").get_by_role("link", name="Cancel…").first.click()
    page.get_by_label("Reason").fill("wrong day")
    page.locator("#dialog").get_by_role("button", name="Cancel").first.click()

    expect(page.locator("#step-slow")).to_contain_text("Cancelled")
    expect(page.locator("#now")).to_contain_text("cancelled by ada: wrong day")
    assert page.locator(".graph").evaluate("graph => graph.seen")  # it stays where it was scrolled to


def test_without_scripts_a_run_is_begun_and_read(house: House, open_as: OpenAs) -> None:
    workflow_id = _workflow(house, [{"key": "only", "task_id": house.task("builtin:noop")}])
    page = open_as("ada", f"/workflows/{workflow_id}", java_script_enabled=False)
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#toasts")).to_contain_text("Started.")
    run_id = str(page.get_by_role("link", name="Its run").get_attribute("href")).rpartition("/")[2]
    _wait_for(house, run_id, "COMPLETED")
    page.get_by_role("link", name="Its run").click()

    expect(page.locator("#step-only")).to_contain_text("Completed")
    page.locator("#card-only").click()
    expect(page).to_have_url(re.compile("/executions/"))
    expect(page.get_by_role("link", name="Run again from its run")).to_be_visible()


_MENDED = {"execution_handler": "builtin:noop"}


def _failed_run(house: House) -> tuple[str, str]:
    """Let a run fail; return its workflow and itself."""
    quick = house.task("builtin:noop")
    fails = house.task("builtin:fail", resource_requirements={"max_retries": 0})
    steps = [
        {"key": "first", "task_id": quick},
        {"key": "each", "task_id": quick, "depends_on": ["first"], "map": [1, 2, 3]},
        {"key": "fails", "task_id": fails, "depends_on": ["first"]},
        {"key": "last", "task_id": quick, "depends_on": ["each", "fails"]},
    ]
    workflow_id, run_id = _begin(house, steps)
    _wait_for(house, run_id, "FAILED")
    return workflow_id, run_id


def _workflow(house: House, steps: list[dict[str, Any]]) -> str:
    body = {"name": "Nightly report", "schedule": DAILY, "steps": steps}
    workflow_id: str = house.post("/workflows", body)["workflow_id"]
    return workflow_id


def _begin(house: House, steps: list[dict[str, Any]]) -> tuple[str, str]:
    workflow_id = _workflow(house, steps)
    run_id: str = house.post(f"/workflows/{workflow_id}/actions/run")["workflow_run_id"]
    _wait_for(house, run_id, None)
    return workflow_id, run_id


def _task_of(house: House, workflow_id: str, key: str) -> str:
    steps = house.api.get(f"/workflows/{workflow_id}").json()["steps"]
    return next(step["task_id"] for step in steps if step["key"] == key)


def _wait_for(house: House, run_id: str, status: str | None) -> None:
    """Wait until a run has a status; None: until it is there."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = house.api.get(f"/workflow-runs/{run_id}")
        if answer.is_success and status in {None, answer.json()["status"]}:
            return
        assert time.monotonic() < deadline, answer.text
