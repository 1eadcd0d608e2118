"""What a visitor's browser brings along: zone, theme, and the message of the last action."""

import base64
import json

import httpx
import pytest

from app.ui.flash import COOKIE_NAME as FLASH
from app.ui.visit import THEME_COOKIE, ZONE_COOKIE
from tests.ui.conftest import OpenPage
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")

ZONES = [
    ("", "UTC", "UTC"),
    ("Europe/Berlin", "Europe/Berlin", "Europe/Berlin +0"),
    ("Asia/Kathmandu", "Asia/Kathmandu", "Asia/Kathmandu +05:45"),
    ("Mars/Olympus", "UTC", "UTC"),
    ('"><script>', "UTC", "UTC"),
]


@pytest.mark.parametrize(("chosen", "zone", "label"), ZONES)
async def test_all_times_are_in_the_zone_that_is_written_above_them(
    ada: httpx.AsyncClient, chosen: str, zone: str, label: str
) -> None:
    ada.cookies.set(ZONE_COOKIE, chosen)
    html = Html((await ada.get("/jobs")).text)

    assert html.all("html")[0]["data-zone"] == zone
    assert [text for text in html.texts if text.startswith(label)]


async def test_an_address_can_name_its_zone(ada: httpx.AsyncClient) -> None:
    ada.cookies.set(ZONE_COOKIE, "Europe/Berlin")
    html = Html((await ada.get("/jobs?zone=America/New_York")).text)

    assert html.all("html")[0]["data-zone"] == "America/New_York"


@pytest.mark.parametrize(("chosen", "theme"), [("dark", "dark"), ("light", "light"), ("", ""), ("<b>", "")])
@pytest.mark.parametrize("path", ["/jobs", "/nowhere", "/login?token=wrong"])
async def test_the_theme_comes_with_the_page(
    ada: httpx.AsyncClient, visitor: httpx.AsyncClient, path: str, chosen: str, theme: str
) -> None:
    client = visitor if path.startswith("/login") else ada
    client.cookies.set(THEME_COOKIE, chosen)

    assert Html((await client.get(path)).text).all("html")[0]["data-theme"] == theme


FORGED = [
    "garbage",
    base64.urlsafe_b64encode(b"[]").decode(),
    base64.urlsafe_b64encode(json.dumps({"text": "look", "link": "https://evil.example"}).encode()).decode(),
    base64.urlsafe_b64encode(json.dumps({"text": "look", "link": "//evil.example"}).encode()).decode(),
    base64.urlsafe_b64encode(json.dumps({"text": "look", "link": "javascript:alert(1)"}).encode()).decode(),
]


@pytest.mark.parametrize("value", FORGED)
async def test_a_message_that_is_none_of_ours_is_not_shown(ada: httpx.AsyncClient, value: str) -> None:
    ada.cookies.set(FLASH, value)
    html = Html((await ada.get("/jobs")).text)

    assert "look" not in html.texts
    assert not [link for link in html.references() if "evil" in link or "javascript" in link]


async def test_a_message_is_text(ada: httpx.AsyncClient) -> None:
    value = base64.urlsafe_b64encode(json.dumps({"text": "<img src=x onerror=alert(1)>"}).encode()).decode()
    ada.cookies.set(FLASH, value)
    html = Html((await ada.get("/jobs")).text)

    assert "<img src=x onerror=alert(1)>" in html.texts
    assert html.inline_code() == []


async def test_the_page_says_when_it_was_made_for_those_without_scripts(page: OpenPage) -> None:
    text = (await page("/jobs?task_id=x")).text

    assert " · Reload" in text
    assert "As of " in text
