"""A form counts only with the token of its own session."""

from typing import Any

import httpx
import pytest

from app.ui.csrf import FIELD, HEADER, csrf_token
from app.ui.sessions import COOKIE_NAME
from tests.ui.conftest import KEYS, Site, browser, send
from tests.ui.parsed import Html

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_form_and_every_script_of_a_page_carries_the_token(ada: httpx.AsyncClient) -> None:
    html = Html((await ada.get("/jobs")).text)
    token = csrf_token(ada.cookies[COOKIE_NAME])

    assert len(html.all("form", method="post")) == len(html.all("input", name=FIELD, value=token)) > 0
    assert html.all("body")[0]["hx-headers:inherited"] == f'{{"{HEADER}": "{token}"}}'


async def test_the_token_passes_as_field_and_as_header(ada: httpx.AsyncClient) -> None:
    session = ada.cookies[COOKIE_NAME]
    by_field = await send(ada, "/logout")
    ada.cookies.set(COOKIE_NAME, session)
    by_header = await ada.post("/logout", headers={HEADER: csrf_token(session)})

    assert (by_field.status_code, by_header.status_code) == (303, 303)


WRONG: list[dict[str, Any]] = [
    {},
    {FIELD: ""},
    {FIELD: "0" * 64},
    {FIELD: csrf_token("another session")},
    {FIELD: "ключ"},
    {FIELD: ["0" * 64, "1" * 64]},
]


@pytest.mark.parametrize("fields", WRONG)
async def test_without_its_token_a_form_is_refused_and_does_nothing(
    ada: httpx.AsyncClient, fields: dict[str, Any]
) -> None:
    answer = await ada.post("/logout", data=fields)

    assert answer.status_code == 403
    assert "load the page anew" in answer.text
    assert (await ada.get("/jobs")).status_code == 200


async def test_the_token_of_another_user_does_not_pass(
    ada: httpx.AsyncClient, viv: httpx.AsyncClient
) -> None:
    token = csrf_token(viv.cookies[COOKIE_NAME])

    assert (await ada.post("/logout", data={FIELD: token})).status_code == 403


async def test_a_new_session_has_a_new_token(site: Site, ada: httpx.AsyncClient) -> None:
    async with browser(site.application) as again:
        await again.post("/login", data={"key": KEYS["ada"]})
        old, new = (csrf_token(one.cookies[COOKIE_NAME]) for one in (ada, again))

    assert old != new


async def test_who_is_not_logged_in_is_sent_to_log_in(visitor: httpx.AsyncClient) -> None:
    answer = await visitor.post("/jobs/actions/run", data={"ids": "x"})

    assert answer.status_code == 401
