"""Forms that other sites send are refused."""

from collections.abc import Mapping

import httpx
import pytest

from app.ui.sessions import COOKIE_NAME
from tests.ui.conftest import send

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWN, REFUSED = 303, 403

CASES = [
    ("a browser, from our page", {"Sec-Fetch-Site": "same-origin", "Origin": "http://onthedot.test"}, OWN),
    ("a browser, its user's doing", {"Sec-Fetch-Site": "none"}, OWN),
    ("another site", {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}, REFUSED),
    (
        "another port or subdomain",
        {"Sec-Fetch-Site": "same-site", "Origin": "http://a.onthedot.test"},
        REFUSED,
    ),
    ("a lying origin", {"Sec-Fetch-Site": "cross-site", "Origin": "http://onthedot.test"}, REFUSED),
    ("a word of the future", {"Sec-Fetch-Site": "nearby"}, REFUSED),
    ("no Sec-Fetch-Site: our page", {"Origin": "http://onthedot.test"}, OWN),
    ("behind a proxy with TLS", {"Origin": "https://onthedot.test"}, OWN),
    ("in capitals", {"Origin": "http://ONTHEDOT.test"}, OWN),
    ("no Sec-Fetch-Site: another site", {"Origin": "http://evil.example"}, REFUSED),
    ("no Sec-Fetch-Site: another port", {"Origin": "http://onthedot.test:81"}, REFUSED),
    ("a sandboxed frame", {"Origin": "null"}, REFUSED),
    ("a name that begins alike", {"Origin": "http://onthedot.test.evil.example"}, REFUSED),
    ("a user name", {"Origin": "http://onthedot.test@evil.example"}, REFUSED),
    ("garbage", {"Origin": "http://[::1"}, REFUSED),
    ("no browser", {}, OWN),
]


@pytest.mark.parametrize(("headers", "status"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_a_form_counts_only_from_our_own_pages(
    ada: httpx.AsyncClient, headers: Mapping[str, str], status: int
) -> None:
    session = ada.cookies[COOKIE_NAME]
    answer = await send(ada, "/logout", **headers)
    ada.cookies.set(COOKIE_NAME, session)
    still_in = (await ada.get("/")).status_code == 200

    assert answer.status_code == status
    assert still_in == (status == REFUSED)


async def test_a_refusal_is_a_page_that_says_what_to_do(ada: httpx.AsyncClient) -> None:
    answer = await send(ada, "/logout", **{"Sec-Fetch-Site": "cross-site"})

    assert "open the page here" in answer.text


async def test_links_from_other_sites_work(ada: httpx.AsyncClient) -> None:
    answer = await ada.get("/", headers={"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 200
