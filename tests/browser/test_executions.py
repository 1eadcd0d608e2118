"""Journeys over the list of executions and the page of one."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from playwright.sync_api import Page, expect

from app.domain.ids import shard_of
from tests.browser.conftest import House, Watched, serious_flaws

OpenAs = Callable[..., Page]
PATIENCE_SECONDS = 20


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_state_of_the_pages_has_a_serious_flaw(
    house: House, open_as: OpenAs, width: int, theme: str
) -> None:
    failed = _failed(house)
    running = _start(house, "builtin:sleep", {"seconds": 600})
    _print(house, running, ["one", "x" * 3000], level="ERROR")
    paths = [f"/executions/{failed}", f"/executions/{running}", "/executions?include=future&priority=2"]
    paths += [f"/executions/{running}/cancel", "/executions?user_id=nobody", "/executions?late=1"]
    for path in paths:
        page = open_as("ada", path, theme=theme, width=width)
        assert serious_flaws(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    house.post(f"/executions/{running}/actions/cancel")


def test_the_keyboard_leads_from_the_list_to_an_execution_and_its_cancelling(
    house: House, open_as: OpenAs
) -> None:
    execution_id = _start(house, "builtin:sleep", {"seconds": 600}, name="by keyboard")
    page = open_as("ada", f"/executions?status=RUNNING&job_id={_job_of(house, execution_id)}")
    expect(page.locator("tbody tr")).to_contain_text("Running")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/executions/{execution_id}$"))
    expect(page.locator("#now-title")).to_have_text("Running")
    page.locator("#now").get_by_role("link", name="Cancel…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("it goes wrong")
    page.keyboard.press("Enter")

    expect(page.locator("#now-title")).to_have_text("Cancelled")  # in place, when its worker has stopped it
    expect(page.locator("#now")).to_contain_text("cancelled by ada: it goes wrong")
    expect(page.locator("#now").get_by_role("button", name="Run again")).to_be_visible()


def test_an_execution_is_followed_from_waiting_to_its_end(house: House, open_as: OpenAs) -> None:
    at = (datetime.now(UTC) + timedelta(seconds=6)).isoformat()
    made = house.job(name="followed", schedule={"type": "ONCE", "scheduled_time": at})
    page = open_as("viv", f"/executions/{made['execution_id']}")
    expect(page.locator("#now-title")).to_have_text(re.compile("Pending|Scheduled"))
    expect(page.locator(".stop-here")).to_contain_text(re.compile("Planned|Claimed ahead"))

    expect(page.locator("#now-title")).to_have_text("Completed", timeout=PATIENCE_SECONDS * 1000)
    expect(page.locator(".stop").last).to_contain_text("Completed")
    expect(page.locator(".stop-next")).to_have_count(0)


def test_a_log_grows_in_place_and_what_is_there_stays(house: House, open_as: OpenAs) -> None:
    execution_id = _start(house, "builtin:sleep", {"seconds": 600}, name="talks")
    page = open_as("viv", f"/executions/{execution_id}")
    expect(page.locator(".log-none")).to_contain_text("No output yet (started")
    _print(house, execution_id, ["the first line"])
    expect(page.locator(".log")).to_contain_text("the first line")
    expect(page.locator(".log-none")).to_have_count(0)
    page.locator("#L1").evaluate("line => line.dataset.seen = 'yes'")
    _print(house, execution_id, ["the second line"], first=2)

    expect(page.locator("#L2")).to_contain_text("the second line")
    expect(page.locator("#L1")).to_have_attribute("data-seen", "yes")
    house.post(f"/executions/{execution_id}/actions/cancel")
    expect(page.locator("#log-tail")).to_have_count(0)


def test_earlier_lines_are_loaded_above(house: House, open_as: OpenAs) -> None:
    execution_id = _failed(house)
    _print(house, execution_id, [f"line {n}" for n in range(1, 701)])
    page = open_as("viv", f"/executions/{execution_id}")
    expect(page.locator("#L201")).to_be_attached()
    expect(page.locator("#L200")).to_have_count(0)
    page.get_by_role("link", name="Load earlier lines").click()

    expect(page.locator("#L1")).to_be_attached()
    assert page.locator(".log > li").evaluate_all("lines => lines.map(line => line.id)") == [
        f"L{n}" for n in range(1, 701)
    ]
    expect(page.get_by_role("link", name="Load earlier lines")).to_have_count(0)


def test_a_line_is_led_to_and_marked(house: House, open_as: OpenAs) -> None:
    execution_id = _failed(house)
    _print(house, execution_id, [f"line {n}" for n in range(1, 701)])
    page = open_as("viv", f"/executions/{execution_id}?attempt=1&line=120#L120")

    expect(page.locator("#L120")).to_be_in_viewport()
    assert page.evaluate("document.querySelector('.log li:target').id") == "L120"


def test_lines_wrap_or_not(house: House, open_as: OpenAs) -> None:
    execution_id = _failed(house)
    _print(house, execution_id, ["word " * 300])
    page = open_as("viv", f"/executions/{execution_id}")
    tall = page.locator("#L1").evaluate("line => line.offsetHeight")
    page.get_by_label("Wrap").uncheck()

    assert page.locator("#L1").evaluate("line => line.offsetHeight") < tall
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440


def test_without_scripts_everything_can_be_done(house: House, open_as: OpenAs) -> None:
    waiting = _later(house, name="waits without scripts")
    failed = _failed(house)
    page = open_as("ada", f"/executions/{waiting}", java_script_enabled=False)
    page.get_by_role("link", name="Cancel…").click()
    expect(page.get_by_text("It has not begun, and will never run.")).to_be_visible()
    page.get_by_label("Reason").fill("no scripts here")
    page.get_by_role("button", name="Cancel").click()
    expect(page).to_have_url(re.compile(f"/executions/{waiting}$"))
    expect(page.locator("#now-title")).to_have_text("Cancelled")
    expect(page.locator("#toasts")).to_contain_text("Cancelled: it will never run.")
    page.goto(f"/executions/{failed}")
    page.get_by_role("button", name="Run again").click()

    expect(page.locator("#toasts")).to_contain_text("this is the new execution")
    expect(page.get_by_text("Runs again", exact=True)).to_be_visible()
    page.goto("/executions")
    page.get_by_label("Task", exact=True).fill("no-such-task")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile(r"task_id=no-such-task"))


def test_selected_executions_are_cancelled_together(house: House, open_as: OpenAs) -> None:
    task_id = house.task()
    waiting = [_later(house, task_id=task_id, name=f"together {i}") for i in range(3)]
    page = open_as("ada", f"/executions?task_id={task_id}&include=future")
    page.locator(f"#row-{waiting[2]} .pick").click()
    page.locator(f"#row-{waiting[1]} .pick").click()
    expect(page.locator("#picked")).to_have_text("2 selected")
    page.locator("#bulk").get_by_role("button", name="Cancel…").click()
    expect(page.locator("#dialog")).to_contain_text("together 2")
    page.get_by_role("button", name="Cancel 2 executions").click()

    expect(page.locator("#toasts")).to_contain_text("2 executions cancelled.")
    for execution_id in waiting[1:]:
        expect(page.locator(f"#row-{execution_id}")).to_contain_text("Cancelled")
    expect(page.locator(f"#row-{waiting[0]}")).to_contain_text("Pending")


def test_a_refused_action_says_why(house: House, open_as: OpenAs, watched: Watched) -> None:
    watched.expect("409")
    execution_id = _later(house, name="gone meanwhile")
    page = open_as("ada", f"/executions/{execution_id}")
    page.keyboard.press("p")  # so that the page does not learn of it by itself
    house.post(f"/executions/{execution_id}/actions/cancel")
    page.get_by_role("link", name="Cancel…").click()

    expect(page.locator("#toasts .toast-bad")).to_contain_text("had ended already: CANCELLED")
    expect(page.locator("#dialog")).to_be_hidden()


def test_filters_stand_in_the_address(house: House, open_as: OpenAs) -> None:
    house.job(name="to be filtered")
    page = open_as("viv", "/executions?include=future")
    page.get_by_role("link", name="Failed").click()
    expect(page).to_have_url(re.compile(r"/executions\?status=FAILED&include=future$"))
    page.get_by_label("Scheduled").select_option("24h")
    expect(page).to_have_url(re.compile(r"status=FAILED.*range=24h"))
    page.get_by_title("Remove this filter").filter(has_text="last 24 hours").click()
    expect(page).to_have_url(re.compile(r"/executions\?status=FAILED&include=future$"))
    page.go_back()

    expect(page).to_have_url(re.compile(r"range=24h"))
    expect(page.get_by_label("Scheduled")).to_have_value("24h")


def _start(house: House, handler: str, parameters: dict[str, object], **columns: object) -> str:
    """Run something now and return its execution once it runs."""
    made = house.job(house.task(handler), schedule={"type": "IMMEDIATE"}, parameters=parameters, **columns)
    execution_id: str = made["execution_id"]
    _wait_for(house, execution_id, "RUNNING")
    return execution_id


def _failed(house: House) -> str:
    """Let something fail and return its execution once it has."""
    task_id = house.task("builtin:fail", resource_requirements={"max_retries": 0})
    made = house.job(task_id, schedule={"type": "IMMEDIATE"}, parameters={"message": "as it should"})
    execution_id: str = made["execution_id"]
    _wait_for(house, execution_id, "FAILED")
    return execution_id


def _later(house: House, task_id: str | None = None, **columns: object) -> str:
    at = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    made = house.job(task_id, schedule={"type": "ONCE", "scheduled_time": at}, **columns)
    execution_id: str = made["execution_id"]
    return execution_id


def _job_of(house: House, execution_id: str) -> str:
    job_id: str = house.api.get(f"/executions/{execution_id}").json()["job_id"]
    return job_id


def _wait_for(house: House, execution_id: str, status: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := house.api.get(f"/executions/{execution_id}").json()["status"]) != status:
        assert time.monotonic() < deadline, f"{execution_id} is {found}, not {status}"


def _print(
    house: House, execution_id: str, messages: list[str], *, first: int = 1, level: str = "INFO"
) -> None:
    """Let an execution have printed lines: as a worker would write them."""
    now = datetime.now(UTC)
    rows = [
        (
            shard_of(UUID(execution_id)),
            execution_id,
            first + i,
            now + timedelta(microseconds=i),
            level,
            message,
        )
        for i, message in enumerate(messages)
    ]
    with psycopg.connect(house.dsn) as connection:
        connection.cursor().executemany(
            "INSERT INTO onthedot.execution_logs"
            " (shard, execution_id, attempt_number, sequence, time, level, stream, message)"
            " VALUES (%s, %s, 1, %s, %s, %s, 'stdout', %s)",
            rows,
        )
