"""Tasks in a browser: made, tried, changed; by mouse, by keyboard, without scripts."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import House, Watched, serious_flaws

OpenAs = Callable[..., Page]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["version"],
    "properties": {
        "version": {"type": "string", "description": "What to roll out"},
        "region": {"enum": ["EU", "US"], "default": "EU"},
        "share": {"type": "integer", "minimum": 0, "maximum": 100},
    },
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("path", ["", "/edit", "/try", "/delete"])
def test_no_page_of_a_task_has_a_serious_flaw(
    house: House, open_as: OpenAs, path: str, width: int, theme: str
) -> None:
    schema = SCHEMA | {"properties": SCHEMA["properties"] | {"p" * 150: {"type": "string"}}}
    task = house.task(name="x" * 200, description="long " * 300, parameter_schema=schema)
    house.job(task, name="y" * 200, parameters={"version": "1"})
    page = open_as("ada", f"/tasks/{task}{path}", theme=theme, width=width)

    assert serious_flaws(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("kind", ["http", "python", "builtin"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_form_of_a_new_task_has_a_serious_flaw(open_as: OpenAs, kind: str, width: int) -> None:
    page = open_as("ada", f"/tasks/-/new?kind={kind}", theme="dark", width=width)

    assert serious_flaws(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_task_is_made_by_a_form_and_tried_in_a_dialog(house: House, open_as: OpenAs) -> None:
    page = open_as("ada", "/tasks")
    page.get_by_role("link", name="New task").click()
    page.get_by_role("link", name="Try a built-in one").click()
    page.get_by_label("Id").fill("made.by.hand")
    page.get_by_role("button", name="Create the task").click()
    expect(page.get_by_role("heading", name="made.by.hand")).to_be_visible()
    page.get_by_role("link", name="Try it").click()
    expect(page.get_by_role("dialog")).to_contain_text("Try made.by.hand")
    assert serious_flaws(page) == []
    page.get_by_role("textbox", name="Parameters").fill('{"greeting": "hello"}')
    page.get_by_role("button", name="Run it once").click()

    expect(page).to_have_url(re.compile(r"/executions/[0-9a-f-]{36}$"))
    [job] = house.api.get("/jobs", params={"task_type": "made.by.hand"}).json()["items"]
    assert (job["parameters"], job["tags"]) == ({"greeting": "hello"}, ["try-it"])


def test_without_scripts_a_task_is_tried_by_a_page(house: House, open_as: OpenAs, watched: Watched) -> None:
    watched.expect("400")
    task = house.task(parameter_schema=SCHEMA)
    page = open_as("ada", f"/tasks/{task}", java_script_enabled=False)
    page.get_by_role("link", name="Try it").click()
    page.get_by_role("button", name="Run it once").click()
    expect(page.get_by_role("alert")).to_contain_text('"version" is a required property')
    page.get_by_label("version").fill("17.2")
    page.get_by_role("button", name="Run it once").click()

    expect(page).to_have_url(re.compile(r"/executions/[0-9a-f-]{36}$"))
    [job] = house.api.get("/jobs", params={"task_type": task}).json()["items"]
    assert job["parameters"] == {"version": "17.2", "region": "EU"}


def test_a_wrong_parameter_is_mended_in_the_dialog(house: House, open_as: OpenAs, watched: Watched) -> None:
    watched.expect("400")
    task = house.task(parameter_schema=SCHEMA)
    page = open_as("ada", f"/tasks/{task}")
    page.get_by_role("link", name="Try it").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("version").fill("17.2")
    dialog.get_by_label("share").fill("101")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("101 is greater than the maximum of 100")
    expect(dialog.get_by_label("version")).to_have_value("17.2")
    dialog.get_by_label("share").fill("50")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"/executions/"))


def test_a_task_is_changed_by_keyboard_alone(house: House, open_as: OpenAs) -> None:
    task = house.task(name="Before")
    page = open_as("ada", f"/tasks?text={task}")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/tasks/{task}$"))
    page.wait_for_load_state()  # its scripts listen from then on
    page.keyboard.press("e")
    name = page.get_by_label("Name")
    name.focus()
    name.press("Control+a")
    page.keyboard.type("After")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="After")).to_be_visible()
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    expect(page.locator(".audit").first).to_contain_text("After")


def test_somebody_elses_change_is_not_overwritten(house: House, open_as: OpenAs, watched: Watched) -> None:
    watched.expect("412")
    task = house.task()
    page = open_as("ada", f"/tasks/{task}/edit")
    assert house.api.patch(f"/tasks/{task}", json={"queue": "bulk"}).is_success
    page.get_by_label("Description").fill("mine")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("changed meanwhile")
    expect(page.locator(".audit")).to_contain_text("bulk")
    expect(page.get_by_label("Description")).to_have_value("mine")
    page.get_by_role("link", name="begin anew").click()

    expect(page.get_by_label("Queue")).to_have_value("bulk")


def test_the_list_is_kept_up_to_date_where_it_stands(house: House, open_as: OpenAs) -> None:
    task = house.task(name="watched")
    page = open_as("viv", f"/tasks?text={task}")
    row = page.locator(f"#row-{task}")
    expect(row.locator(".last")).to_have_text("never")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    house.api.patch(f"/tasks/{task}", json={"name": "renamed"})
    expect(row).to_contain_text("renamed")
    house.job(task, schedule={"type": "IMMEDIATE"})

    expect(row.locator(".last")).to_contain_text("ago")
    expect(row.locator(".jobs")).to_have_text("1")


def test_a_task_shows_what_fails_as_it_happens(house: House, open_as: OpenAs) -> None:
    task = house.task("builtin:fail")
    page = open_as("viv", f"/tasks/{task}")
    expect(page.locator("#activity")).to_contain_text("It has not run yet.")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    house.job(task, schedule={"type": "IMMEDIATE"}, parameters={"message": "no such host"}, max_retries=0)

    expect(page.locator("#activity")).to_contain_text("RuntimeError: no such host")


def test_a_task_is_deleted_after_a_question(house: House, open_as: OpenAs) -> None:
    used, unused = house.task(), house.task()
    house.job(used)
    page = open_as("ada", f"/tasks/{used}")
    page.get_by_role("link", name="Delete…").click()
    expect(page.get_by_role("dialog")).to_contain_text("It cannot be deleted yet")
    page.goto(f"/tasks/{unused}")
    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    expect(page).to_have_url(re.compile(r"/tasks$"))
    expect(page.locator("#toasts")).to_contain_text(f"The task {unused} was deleted.")
