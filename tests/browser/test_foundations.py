"""What every page does in a browser: live updates, actions, dialogs, selection, keyboard, theme, zone."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import House, Watched, listen, serious_flaws

OpenAs = Callable[..., Page]
PAGES = ["/", "/jobs", "/executions", "/workflows", "/tasks"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_a_serious_flaw(house: House, open_as: OpenAs, path: str, width: int, theme: str) -> None:
    house.job(name="Nightly report")
    page = open_as("ada", path, theme=theme, width=width)

    assert serious_flaws(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_visitor_logs_in_with_a_key_and_comes_to_where_they_wanted(
    house: House, open_as: OpenAs, watched: Watched
) -> None:
    watched.expect("EventSource")  # opened in the same moment as its session goes
    page = open_as("ada")
    page.context.clear_cookies()
    page.goto("/jobs?task_id=x")
    page.get_by_label("API key").fill(house.keys["viv"])
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"/jobs\?task_id=x$"))
    expect(page.locator(".menu summary")).to_have_text("viv")


def test_a_row_is_kept_up_to_date_where_it_stands(house: House, open_as: OpenAs) -> None:
    jobs = [house.job(name=f"kept {i}")["job_id"] for i in range(3)]
    page = open_as("viv", "/jobs")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    order = page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.id)")
    house.post(f"/jobs/{jobs[1]}/actions/pause", {"reason": "why"})

    expect(page.locator(f"#row-{jobs[1]}")).to_contain_text("Paused")
    assert page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.id)") == order


def test_new_rows_wait_until_they_are_asked_for(house: House, open_as: OpenAs) -> None:
    house.job(name="old")
    page = open_as("viv", "/jobs")
    first = page.locator("tbody tr").first.get_attribute("id")
    house.job(name="brand new")
    expect(page.locator("#news")).to_have_text("1 new")

    assert page.locator("tbody tr").first.get_attribute("id") == first
    page.locator("#news").click()
    expect(page.locator("tbody tr").first).to_contain_text("brand new")


def test_nothing_is_refreshed_under_somebody_who_is_busy(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="watched")["job_id"]
    page = open_as("ada", "/jobs")
    row = page.locator(f"#row-{job_id}")
    row.locator(".pick").check()
    until_told = listen(page)
    house.post(f"/jobs/{job_id}/actions/pause")
    until_told()

    expect(row).not_to_contain_text("Paused")
    expect(page.locator("#live")).to_have_text("Paused")
    row.locator(".pick").uncheck()
    expect(row).to_contain_text("Paused")
    expect(page.locator("#live")).to_have_text("Live")


def test_what_was_asked_for_before_a_menu_was_opened_does_not_close_it(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="its menu is open")["job_id"]
    page = open_as("ada", "/jobs?name=its menu")
    row, held = page.locator(f"#row-{job_id}"), list[Route]()
    page.route("**/jobs/rows*", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks functions
    with page.expect_request("**/jobs/rows*"):
        house.post(f"/jobs/{job_id}/actions/pause")
    row.get_by_label("More").click()
    with page.expect_response("**/jobs/rows*"):
        held[0].continue_()
    page.unroute("**/jobs/rows*")
    expect(row.get_by_role("link", name="Duplicate")).to_be_visible()
    expect(row).not_to_contain_text("Paused")
    page.get_by_role("heading", name="Jobs").click()

    expect(row).to_contain_text("Paused")


def test_live_updates_can_be_paused_and_say_so(open_as: OpenAs) -> None:
    page = open_as("ada", "/jobs")
    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_text("Paused")
    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_text("Live")


def test_a_page_that_loses_the_server_says_so_and_comes_back(open_as: OpenAs, watched: Watched) -> None:
    watched.expect("Failed to load resource|net::ERR|htmx")
    page = open_as("ada", "/jobs")
    expect(page.locator("#live")).to_have_text("Live")
    page.clock.install()
    page.context.set_offline(True)
    page.evaluate(
        "dispatchEvent(new Event('pagehide')); document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.clock.fast_forward(30_000)
    expect(page.locator("#live")).to_have_text(re.compile(r"Stale since \d\d:\d\d"))
    page.context.set_offline(False)
    page.clock.fast_forward(11_000)

    expect(page.locator("#live")).to_have_text("Live")


def test_an_action_happens_in_place_and_says_so(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="to run")["job_id"]
    page = open_as("ada", "/jobs")
    page.locator(f"#row-{job_id}").get_by_role("button", name="Run now").click()
    expect(page.locator("#toasts")).to_contain_text("Started.")
    page.locator("#toasts a").click()

    expect(page).to_have_url(re.compile("/executions/[0-9a-f-]{36}$"))
    expect(page.locator("#main")).to_contain_text("Completed")


def test_a_refused_action_says_why_and_leaves_the_page(
    house: House, open_as: OpenAs, watched: Watched
) -> None:
    watched.expect("403")
    job_id = house.job(name="refused")["job_id"]
    page = open_as("ada", "/jobs")
    page.keyboard.press("p")  # or a row that is refreshed brings its token back
    page.locator(f"#row-{job_id} form[action$=run] input[name=csrf]").evaluate("field => field.value = ''")
    page.evaluate("document.body.removeAttribute('hx-headers:inherited')")
    page.locator(f"#row-{job_id}").get_by_role("button", name="Run now").click()

    expect(page.locator("#toasts .toast-bad")).to_contain_text("load the page anew")
    expect(page.locator(f"#row-{job_id}")).to_contain_text("refused")


def test_pausing_asks_why_in_a_dialog(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="to pause")["job_id"]
    page = open_as("ada", "/jobs")
    row = page.locator(f"#row-{job_id}")
    row.get_by_role("link", name="Pause…").click()
    expect(page.get_by_label("Reason")).to_be_focused()
    assert serious_flaws(page) == []
    page.keyboard.type("the migration")
    page.keyboard.press("Enter")

    expect(row).to_contain_text("Paused")
    expect(page.locator("#dialog")).to_be_hidden()
    expect(row.locator(".next bdi")).to_have_text("the migration")


def test_without_scripts_pausing_is_a_page(house: House, open_as: OpenAs) -> None:
    job_id = house.job(name="by hand")["job_id"]
    page = open_as("ada", "/jobs", java_script_enabled=False)
    page.locator(f"#row-{job_id}").get_by_role("link", name="Pause…").click()
    page.get_by_label("Reason").fill("no scripts here")
    page.get_by_role("button", name="Pause").click()

    expect(page).to_have_url(re.compile(r"/jobs$"))
    expect(page.locator("#toasts")).to_contain_text("Paused.")
    expect(page.locator(f"#row-{job_id}")).to_contain_text("Paused")


def test_without_scripts_a_selection_is_a_form(house: House, open_as: OpenAs) -> None:
    jobs = [house.job(name=f"chosen {i}")["job_id"] for i in range(2)]
    page = open_as("ada", "/jobs", java_script_enabled=False)
    for job_id in jobs:
        page.locator(f"#row-{job_id} .pick").check()
    page.locator("#bulk").get_by_role("button", name="Pause…").click()
    expect(page.get_by_role("heading", name="Pause 2 jobs?")).to_be_visible()
    page.get_by_role("button", name="Pause 2 jobs").click()

    expect(page.locator("#toasts")).to_contain_text("2 jobs paused.")


def test_a_range_is_selected_with_shift_and_acted_on(house: House, open_as: OpenAs) -> None:
    jobs = [house.job(name=f"range {i}")["job_id"] for i in range(4)]
    page = open_as("ada", "/jobs")
    page.locator(f"#row-{jobs[3]} .pick").click()
    page.locator(f"#row-{jobs[0]} .pick").click(modifiers=["Shift"])
    expect(page.locator("#picked")).to_have_text("4 selected")
    page.locator("#bulk").get_by_role("button", name="Pause…").click()
    page.get_by_role("button", name="Pause 4 jobs").click()

    expect(page.locator("#toasts")).to_contain_text("4 jobs paused.")
    expect(page.locator("#bulk")).to_be_hidden()
    for job_id in jobs:
        expect(page.locator(f"#row-{job_id}")).to_contain_text("Paused")


def test_the_keyboard_reaches_everything(house: House, open_as: OpenAs) -> None:
    for name in ("first", "second"):
        house.job(name=name)
    page = open_as("ada")
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(r"/jobs$"))
    page.wait_for_load_state()  # or nobody listens yet
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("Shift+X")
    expect(page.locator("#picked")).to_have_text("2 selected")
    page.keyboard.press("Escape")
    expect(page.locator("#bulk")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type("gj?")  # in a field keys are letters
    expect(page.get_by_label("Name")).to_have_value("gj?")


def test_the_help_lists_the_keys_that_work_here(open_as: OpenAs) -> None:
    page = open_as("ada")
    page.keyboard.press("?")
    listed = {one.strip() for one in page.locator("#keys dt").all_inner_texts()}
    own = set(page.locator("[data-key]").evaluate_all("all => all.map(one => one.dataset.key)"))

    assert own | {"r", "c", "Esc"} <= listed
    assert "/" not in listed  # the overview has nothing to search
    assert serious_flaws(page) == []


def test_single_keys_can_be_turned_off(open_as: OpenAs) -> None:
    page = open_as("ada", "/jobs")
    page.keyboard.press("?")
    page.locator("#keys-on").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    page.keyboard.press("p")

    expect(page.locator("#live")).to_have_text("Live")


def test_the_theme_is_kept(open_as: OpenAs) -> None:
    page = open_as("ada", "/jobs")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.keyboard.press("t")
    dark = page.evaluate(ground)
    page.reload()

    assert light != dark == page.evaluate(ground)


def test_the_zone_goes_round_and_is_always_written(house: House, open_as: OpenAs) -> None:
    house.job(name="zoned")
    page = open_as("ada", "/jobs", timezone_id="Australia/Eucla")
    expect(page.locator("#zone")).to_have_text("UTC")
    page.keyboard.press("z")
    expect(page.locator("#zone")).to_have_text("Australia/Eucla +08:45")
    expect(page.locator("tbody time").first).to_have_attribute("title", re.compile(r" \+0845$"))
    page.keyboard.press("z")
    expect(page.locator("#zone")).to_have_text("UTC")


def test_relative_times_go_on(house: House, open_as: OpenAs) -> None:
    soon = {"type": "ONCE", "scheduled_time": time.time() + 50}
    house.job(name="ages", schedule=soon)
    page = open_as("ada", "/jobs?kind=once")
    upcoming = page.locator("tbody tr").first.locator(".next time")
    before = upcoming.inner_text()

    expect(upcoming).not_to_have_text(before)


def test_an_id_or_an_address_is_copied(open_as: OpenAs) -> None:
    page = open_as("ada", "/jobs", permissions=["clipboard-read", "clipboard-write"])
    page.keyboard.press("c")
    expect(page.locator("#toasts")).to_contain_text("Copied")

    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_a_viewer_sees_no_buttons_that_change_anything(house: House, open_as: OpenAs) -> None:
    house.job(name="looked at")
    page = open_as("viv", "/jobs")

    expect(page.locator("tbody tr").first).to_contain_text("looked at")
    assert page.locator("form[method=post]").count() == 1  # log out
