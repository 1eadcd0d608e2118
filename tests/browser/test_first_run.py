"""The first minutes: from an empty house to an execution that is seen to run, by the pages alone."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import House, house_on, serious_flaws
from tests.databases import Databases

OpenAs = Callable[..., Page]


@pytest.fixture
def house(databases: Databases) -> Iterator[House]:
    """Return an empty house."""
    with house_on(databases, "first_run") as opened:
        yield opened


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_from_nothing_to_an_execution_that_ran(open_as: OpenAs, scripts: bool) -> None:  # noqa: FBT001
    page = open_as("ada", java_script_enabled=scripts)
    expect(page.locator("#first-steps")).to_contain_text("A task says what to run")
    for address in ("/jobs", "/executions", "/tasks"):
        page.goto(address)
        expect(page.locator("main h1")).to_be_visible()
        if scripts:
            assert serious_flaws(page) == []

    page.get_by_role("link", name="Try a built-in one").click()
    page.get_by_label("Id").fill("hello")
    page.get_by_role("button", name="Create the task").click()
    expect(page.get_by_role("heading", name="hello", exact=True)).to_be_visible()
    page.get_by_role("link", name="New job").click()
    expect(page.get_by_label("Task", exact=True)).to_have_value("hello")
    page.get_by_label("Name").fill("The first job")
    page.get_by_label("Now", exact=True).check()
    page.locator("#job-form").get_by_role("button", name=re.compile("^(Create|Save)")).last.click()
    expect(page.get_by_role("heading", name="The first job")).to_be_visible()

    page.goto("/executions")
    page.locator("tbody tr a[data-open]").first.click()
    _reload_until(page, "Completed", by_itself=scripts)
    page.goto("/")
    expect(page.locator("#first-steps")).to_have_count(0)  # all is done


def _reload_until(page: Page, text: str, *, by_itself: bool) -> None:
    """Wait for words; with scripts the page shows them by itself, without somebody reloads it."""
    main = page.locator("main")
    for _ in range(0 if by_itself else 200):
        if text in main.inner_text():
            break
        page.reload()
    expect(main).to_contain_text(text)
