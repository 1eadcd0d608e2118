"""Logging in and out."""

from collections.abc import Mapping
from http.cookies import Morsel, SimpleCookie

import httpx
import pytest
import pytest_asyncio

from app.db.pools import Pool
from app.db.stores.access import AccessStore
from app.ui.sessions import COOKIE_NAME
from tests.ui.conftest import ADA_KEY, BASE_URL, Site, browser, send
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = "a token that was printed"


@pytest_asyncio.fixture(loop_scope="module")
async def token(site: Site) -> str:
    """Return the token of a fresh one-time link for ada."""
    await AccessStore(site.engine).add_login_token(TOKEN, user_id="ada")
    return TOKEN


async def test_a_visitor_is_sent_to_log_in_and_comes_back_to_where_they_wanted(
    visitor: httpx.AsyncClient,
) -> None:
    asked = await visitor.get("/executions?status=FAILED")
    form = await visitor.get(asked.headers["location"])
    entered = await visitor.post("/login", data={"key": ADA_KEY, "next": _field(form, "next")})

    assert (asked.status_code, form.status_code, entered.status_code) == (303, 200, 303)
    assert entered.headers["location"] == "/executions?status=FAILED"
    assert (await visitor.get("/executions?status=FAILED")).status_code == 200


async def test_a_key_with_spaces_around_it_is_taken(visitor: httpx.AsyncClient) -> None:
    assert (await visitor.post("/login", data={"key": f"  {ADA_KEY}\n"})).status_code == 303


@pytest.mark.parametrize("key", ["", "wrong", "k" * 10_000, "\0", "ключ", "' OR 1=1 --"])
async def test_a_wrong_key_is_refused_with_the_form_again(visitor: httpx.AsyncClient, key: str) -> None:
    answer = await visitor.post("/login", data={"key": key, "next": "/executions?status=FAILED"})

    assert answer.status_code == 401
    assert COOKIE_NAME not in answer.cookies
    assert "unknown or has expired" in Html(answer.text).text
    assert _field(answer, "next") == "/executions?status=FAILED"


async def test_an_expired_key_is_refused(visitor: httpx.AsyncClient, pool: Pool) -> None:
    await pool.execute("UPDATE onthedot.api_keys SET expires_at = now() - interval '1 s'")

    assert (await visitor.post("/login", data={"key": ADA_KEY})).status_code == 401


async def test_a_form_without_a_key_is_a_bad_request_with_a_page(visitor: httpx.AsyncClient) -> None:
    answer = await visitor.post("/login", data={"next": "/"})

    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/html")


async def test_a_huge_form_is_refused(visitor: httpx.AsyncClient) -> None:
    assert (await visitor.post("/login", data={"key": "k" * 100_000})).status_code == 413


async def test_a_link_logs_in_once(site: Site, visitor: httpx.AsyncClient, token: str) -> None:
    first = await visitor.get(f"/login?token={token}")
    async with browser(site.application) as other:
        second = await other.get(f"/login?token={token}")

    assert (first.status_code, first.headers["location"]) == (303, "/")
    assert (await visitor.get("/")).status_code == 200
    assert second.status_code == 401
    assert "used before" in Html(second.text).text


async def test_a_link_that_is_too_old_is_refused(visitor: httpx.AsyncClient, token: str, pool: Pool) -> None:
    await pool.execute("UPDATE onthedot.login_tokens SET expires_at = now() - interval '1 s'")

    assert (await visitor.get(f"/login?token={token}")).status_code == 401


async def test_opening_a_used_link_again_in_the_same_browser_is_no_error(
    visitor: httpx.AsyncClient, token: str
) -> None:
    await visitor.get(f"/login?token={token}")

    assert (await visitor.get(f"/login?token={token}")).headers["location"] == "/"


@pytest.mark.parametrize("ahead", [{"Sec-Purpose": "prefetch;prerender"}, {"Purpose": "prefetch"}])
async def test_what_loads_pages_ahead_of_its_user_does_not_use_a_link_up(
    visitor: httpx.AsyncClient, token: str, ahead: Mapping[str, str]
) -> None:
    fetched = await visitor.get(f"/login?token={token}", headers=ahead)
    looked_at = await visitor.head(f"/login?token={token}")
    opened = await visitor.get(f"/login?token={token}")

    assert (fetched.status_code, looked_at.status_code, opened.status_code) == (503, 200, 303)


async def test_logging_out_ends_the_session_and_not_just_the_cookie(
    site: Site, ada: httpx.AsyncClient
) -> None:
    session = ada.cookies[COOKIE_NAME]
    left = await send(ada, "/logout")
    async with browser(site.application) as other:
        other.cookies.set(COOKIE_NAME, session)
        replayed = await other.get("/")

    assert (left.status_code, left.headers["location"]) == (303, "/login")
    assert _cookie(left)["max-age"] == "0"
    assert replayed.headers["location"].startswith("/login")


async def test_logging_out_twice_is_no_error(visitor: httpx.AsyncClient) -> None:
    assert (await visitor.post("/logout")).status_code == 303


async def test_a_session_that_has_ended_leads_to_the_login(ada: httpx.AsyncClient, pool: Pool) -> None:
    await pool.execute("UPDATE onthedot.sessions SET expires_at = now() - interval '1 s'")

    assert (await ada.get("/")).headers["location"] == "/login?next=%2F"


async def test_who_is_logged_in_needs_no_form(ada: httpx.AsyncClient) -> None:
    assert (await ada.get("/login?next=/schema")).headers["location"] == "/schema"


SCHEMES = [
    ("here without TLS", BASE_URL, {}, False),
    ("here with TLS", "https://onthedot.test", {}, True),
    ("TLS ends at a proxy", BASE_URL, {"X-Forwarded-Proto": "https"}, True),
    ("TLS ends at the first of two proxies", BASE_URL, {"X-Forwarded-Proto": "https, http"}, True),
    ("a proxy without TLS", BASE_URL, {"X-Forwarded-Proto": "http"}, False),
]


@pytest.mark.parametrize(
    ("base_url", "headers", "secure"), [one[1:] for one in SCHEMES], ids=[one[0] for one in SCHEMES]
)
async def test_the_cookie_is_kept_from_scripts_and_other_sites(
    site: Site, base_url: str, headers: Mapping[str, str], secure: object
) -> None:
    async with browser(site.application, base_url) as client:
        cookie = _cookie(await client.post("/login", data={"key": ADA_KEY}, headers=headers))

    assert cookie["httponly"] is True
    assert cookie["samesite"] == "lax"
    assert cookie["path"] == "/"
    assert cookie["domain"] == ""
    assert cookie["max-age"] == str(12 * 3600)
    assert bool(cookie["secure"]) is secure


async def test_only_hashes_of_secrets_are_stored(ada: httpx.AsyncClient, pool: Pool) -> None:
    stored = await pool.fetchval("SELECT string_agg(s::text, ' ') FROM onthedot.sessions AS s")

    assert ada.cookies[COOKIE_NAME].encode().hex() not in stored
    assert ada.cookies[COOKIE_NAME] not in stored


ELSEWHERE = [
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\r\nX-Header: evil",
    "https://evil.example",
    "javascript:alert(1)",
    "evil.example",
    " /",
    "",
]


@pytest.mark.parametrize("destination", ELSEWHERE)
async def test_next_leads_to_no_other_site(visitor: httpx.AsyncClient, destination: str) -> None:
    entered = await visitor.post("/login", data={"key": ADA_KEY, "next": destination})
    again = await visitor.get("/login", params={"next": destination})

    assert entered.headers["location"] == again.headers["location"] == "/"


def _field(answer: httpx.Response, name: str) -> str:
    return Html(answer.text).all("input", name=name)[0]["value"]


def _cookie(answer: httpx.Response) -> Morsel[str]:
    return SimpleCookie(answer.headers["set-cookie"])[COOKIE_NAME]
