"""Ways through the whole dashboard, in a house that is full; and what holds on every page that links lead to."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import House, Watched, house_on, serious_flaws
from tests.browser.crawl import crawl
from tests.databases import Databases
from tests.life.processes import DEADLINE_SECONDS, ROOT

OpenAs = Callable[..., Page]
KINDS = {
    *("/?", "/jobs?", "/jobs/ID?", "/jobs/new?", "/jobs/ID/edit?", "/jobs/ID/pause?", "/jobs/ID/changes?"),
    *("/executions?", "/executions?status", "/executions/ID?"),
    *(
        "/tasks?",
        "/tasks/NAME?",
        "/tasks/NAME/edit?",
        "/tasks/NAME/try?",
        "/tasks/NAME/delete?",
        "/tasks/-/new?",
    ),
    *(
        "/workflows?",
        "/workflows/ID?",
        "/workflows/ID/steps?",
        "/workflows/ID/changes?",
        "/workflows/ID/api?",
    ),
    *("/workflow-runs/ID?", "/workflow-runs/ID?show", "/workflow-runs/ID/retry?"),
    *(
        "/workflow-runs/ID/steps/NAME?",
        "/workflow-runs/ID/steps/NAME/retry?",
        "/workflow-runs/ID/steps/NAME/skip?",
    ),
}
"""Of addresses that must be among those found; there may be more."""
SEEDED = ("--jobs", "200", "--finished", "6000", "--days", "2")


@pytest.fixture(scope="module")
def house(databases: Databases) -> Iterator[House]:
    """Return a house with jobs, and with executions that have ended, some of them badly."""
    with house_on(databases, "journeys") as opened:
        command = [sys.executable, "-m", "benchmarks.seed", opened.dsn, *SEEDED]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        fails = opened.task("builtin:fail", name="Fails", parameter_schema={"type": "object"})
        _fail_a_run(opened, fails)
        opened.job(
            fails, schedule={"type": "IMMEDIATE"}, parameters={"message": "no such host"}, max_retries=0
        )
        opened.job(opened.task(), name="Waits for tomorrow", tags=["team-a"], parameters={"a": [1, 2]})
        yield opened


def _fail_a_run(house: House, fails: str) -> None:
    """Make a workflow, and let a run of it fail: a page of one under way changes while it is looked at."""
    steps = [
        {"key": "each", "task_id": house.task(), "map": [1, 2, 3]},
        {"key": "fails", "task_id": fails, "depends_on": ["each"], "max_retries": 0},
        {"key": "never", "task_id": house.task(), "depends_on": ["fails"]},
    ]
    body = {"name": "Nightly report", "schedule": {"type": "IMMEDIATE"}, "steps": steps}
    house.post("/workflows", body)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not house.api.get("/workflow-runs", params={"status": "FAILED"}).json()["items"]:
        assert time.monotonic() < deadline, "the run does not end"


@pytest.fixture(scope="module")
def pages(house: House) -> dict[str, str]:
    """Return an address of each kind of page, as an operator finds them by links."""
    with httpx.Client(base_url=house.url, timeout=30) as client:
        assert client.post("/login", data={"key": house.keys["ada"]}).status_code == 303
        return crawl(client)


def test_links_lead_to_every_page(pages: dict[str, str]) -> None:
    assert pages.keys() >= KINDS


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_serious_flaw(open_as: OpenAs, pages: dict[str, str], theme: str) -> None:
    page = open_as("ada", theme=theme)
    flaws = {}
    for address in pages.values():
        page.goto(address)
        if found := serious_flaws(page):
            flaws[address] = found

    assert flaws == {}


@pytest.mark.parametrize("width", [390, 320])
def test_no_page_is_wider_than_a_telephone(open_as: OpenAs, pages: dict[str, str], width: int) -> None:
    page = open_as("ada", width=width)
    wide = {}
    for address in pages.values():
        page.goto(address)
        if (needed := page.evaluate("document.documentElement.scrollWidth")) > width:
            wide[address] = needed

    assert wide == {}


@pytest.mark.parametrize("user", ["viv", "root"])
def test_every_page_opens_for_others_or_says_that_it_may_not_be_opened(
    house: House, pages: dict[str, str], user: str
) -> None:
    with httpx.Client(base_url=house.url, timeout=30, headers={"Accept": "text/html"}) as client:
        assert client.post("/login", data={"key": house.keys[user]}).status_code == 303
        answers = {address: client.get(address) for address in pages.values()}
    refused = {address for address, answer in answers.items() if answer.status_code == 403}

    assert {answer.status_code for answer in answers.values()} <= {200, 403}
    assert bool(refused) == (user == "viv")
    if user == "viv":
        for address in answers.keys() - refused:
            posts = re.findall(r'<form[^>]*method="post"[^>]*action="([^"]*)"', answers[address].text)
            assert set(posts) == {"/logout"}, address


def test_without_scripts_every_page_can_be_read(open_as: OpenAs, pages: dict[str, str]) -> None:
    page = open_as("ada", java_script_enabled=False)
    for address in _whole(pages):
        page.goto(address)
        expect(page.locator("main h1").first).to_be_visible()
        expect(page.locator(".reload")).to_be_visible()
        expect(page.locator(".script-only").locator("visible=true")).to_have_count(0)


def test_a_failed_execution_is_found_and_run_again_by_keyboard_alone(house: House, open_as: OpenAs) -> None:
    page = open_as("ada")
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page).to_have_url(re.compile(r"/executions$"))
    _tab_to(page, "Failed")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"status=FAILED"))
    page.wait_for_load_state()  # its scripts listen from then on
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/executions/[0-9a-f-]{36}$"))
    expect(page.locator("main")).to_contain_text("RuntimeError")
    first = page.url.rpartition("/")[2]
    _tab_to(page, "Run again")
    page.keyboard.press("Enter")

    _until_run_again(house, first)


def test_a_job_is_paused_with_a_reason_that_others_see_and_resumed(house: House, open_as: OpenAs) -> None:
    job = house.job(name="To be paused for a while")
    page, other = open_as("ada", f"/jobs/{job['job_id']}"), open_as("viv", f"/jobs/{job['job_id']}")
    expect(other.locator("#live")).to_have_attribute("data-state", "live")
    page.get_by_role("link", name="Pause").click()
    page.get_by_label("Reason").fill("the migration of the warehouse")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator("main")).to_contain_text("the migration of the warehouse")
    expect(other.locator("main")).to_contain_text("the migration of the warehouse")
    expect(other.locator("main")).to_contain_text("ada")
    page.get_by_role("button", name="Resume").first.click()

    expect(page.get_by_role("button", name="Resume")).to_have_count(0)
    expect(other.locator("main")).not_to_contain_text("Paused")
    assert house.api.get(f"/jobs/{job['job_id']}").json()["is_active"]


def test_what_a_viewer_sends_all_the_same_is_refused(house: House, open_as: OpenAs, watched: Watched) -> None:
    watched.expect("403")
    job = house.job(name="Not for viewers")
    page = open_as("viv", f"/jobs/{job['job_id']}")
    expect(page.get_by_role("heading", name="Not for viewers")).to_be_visible()
    for name in ("Run( |$)", "Pause", "Edit", "Delete"):
        expect(page.get_by_role("link", name=re.compile(f"^{name}"))).to_have_count(0)
        expect(page.get_by_role("button", name=re.compile(f"^{name}"))).to_have_count(0)
    token = page.locator("input[name=csrf]").first.get_attribute("value")
    answers = [
        page.request.post(
            f"/jobs/{job['job_id']}/{action}", form={"csrf": token or ""}, max_redirects=0
        ).status
        for action in ("run", "pause", "delete")
    ]

    assert answers == [403] * 3
    assert house.api.get(f"/jobs/{job['job_id']}").json()["is_active"]


def test_the_theme_that_was_chosen_holds_on_every_page(open_as: OpenAs, pages: dict[str, str]) -> None:
    page = open_as("ada", theme="light")
    light = _ground(page)
    page.keyboard.press("t")
    dark = _ground(page)
    assert dark != light
    for address in _whole(pages):
        page.goto(address)
        assert _ground(page) == dark, address


def test_without_scripts_a_list_is_filtered_and_a_job_is_run(house: House, open_as: OpenAs) -> None:
    job = house.job(name="Run without scripts")
    page = open_as("ada", "/jobs", java_script_enabled=False)
    page.get_by_placeholder("Name").fill("Run without")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator(f"#row-{job['job_id']}").get_by_role("button", name="Run now").click()
    expect(page.locator("#toasts")).to_contain_text("Started.")
    page.locator("#toasts a").click()

    expect(page.locator("main")).to_contain_text("Run without scripts")


def _whole(pages: dict[str, str]) -> list[str]:
    """Return the addresses of pages that are narrowed to nothing."""
    return [address for kind, address in pages.items() if kind.endswith("?")]


def _tab_to(page: Page, name: str) -> None:
    """Press Tab until a link or button whose words begin so has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        focused = page.evaluate("(e => (e.ariaLabel || e.innerText || '').trim())(document.activeElement)")
        if focused.startswith(name):
            return
    pytest.fail(f"the Tab key never comes to {name}")


def _until_run_again(house: House, first: str) -> None:
    """Wait until an execution was run again, and check that it names what it repeats."""
    job_id = house.api.get(f"/executions/{first}").json()["job_id"]
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        found = house.api.get(f"/jobs/{job_id}/executions").json()["items"]
        if any(one["retried_from"] == first for one in found):
            return
    pytest.fail("it was not run again")


def _ground(page: Page) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour
