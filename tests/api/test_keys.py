"""API keys: shown once, listed without themselves, gone within seconds."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.domain.access import hash_secret
from tests.api.conftest import Site, pointers, problem
from tests.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def create(site: Site, user_id: str, *, user: str = "ada", **fields: Any) -> dict[str, Any]:
    answer = await site.post(f"/users/{user_id}/keys", fields, user=user)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    found: dict[str, Any] = answer.json()
    return found


async def use(site: Site, key: str) -> httpx.Response:
    return await site.get("/users/oscar", user=None, headers={"Authorization": f"Bearer {key}"})


async def test_a_key_works_and_is_shown_once(site: Site) -> None:
    made = await create(site, "oscar", name="ci")
    listed = await site.get("/users/oscar/keys", user="ada")

    assert (await use(site, made["key"])).status_code == 200
    assert made["key"].startswith(made["prefix"])
    assert made["key"] not in listed.text
    [found] = [key for key in listed.json()["items"] if key["key_id"] == made["key_id"]]
    assert found | {"last_used_at": None} == {name: made[name] for name in made if name != "key"}
    stored = await site.pool.fetchrow(
        "SELECT * FROM onthedot.api_keys WHERE key_hash = $1", hash_secret(made["key"])
    )
    assert stored is not None
    assert made["key"] not in str(stored)


async def test_the_body_may_be_left_out(site: Site) -> None:
    answer = await site.request("POST", "/users/vera/keys", user="ada")

    assert answer.status_code == 201
    assert (answer.json()["name"], answer.json()["expires_at"]) == ("key", None)


async def test_the_list_tells_when_a_key_was_last_used(site: Site) -> None:
    made = await create(site, "oscar", name="used")

    async def last_used() -> str | None:
        keys = (await site.get("/users/oscar/keys?limit=1000", user="ada")).json()["items"]
        [found] = [key["last_used_at"] for key in keys if key["key_id"] == made["key_id"]]
        return str(found) if found else None

    assert await last_used() is None
    await use(site, made["key"])
    assert await last_used() is not None


async def test_keys_stop_working_when_they_are_deleted_or_expire(site: Site) -> None:
    expires_at = (site.clock.now() + timedelta(hours=1)).isoformat()
    deleted, expired = await create(site, "oscar"), await create(site, "oscar", expires_at=expires_at)
    assert [(await use(site, made["key"])).status_code for made in (deleted, expired)] == [200, 200]
    answer = await site.request("DELETE", f"/users/oscar/keys/{deleted['key_id']}", user="ada")
    assert answer.status_code == 204
    await site.pool.execute(
        "UPDATE onthedot.api_keys SET expires_at = now() WHERE key_hash = $1", hash_secret(expired["key"])
    )

    async def refused() -> bool:
        return [(await use(site, made["key"])).status_code for made in (deleted, expired)] == [401, 401]

    await eventually(refused)
    answer = await site.request("DELETE", f"/users/oscar/keys/{deleted['key_id']}", user="ada")
    problem(answer, status=404, code="not_found")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"expires_at": 0}, "/expires_at"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "tomorrow"}, "/expires_at"),
        ({"name": ""}, "/name"),
        ({"key": "my own"}, "/key"),
    ],
)
async def test_what_does_not_fit_makes_no_key(site: Site, fields: dict[str, Any], pointer: str) -> None:
    before = await site.pool.fetchval("SELECT count(*) FROM onthedot.api_keys")
    answer = await site.post("/users/oscar/keys", fields, user="ada")

    assert answer.status_code == 400, answer.text
    assert pointers(answer.json()) == [pointer]
    assert await site.pool.fetchval("SELECT count(*) FROM onthedot.api_keys") == before


async def test_operators_manage_their_own_keys_only(site: Site) -> None:
    made = await create(site, "oscar", user="oscar")
    others = await create(site, "vera")

    assert (await site.get("/users/oscar/keys", user="oscar")).status_code == 200
    assert (await site.request("DELETE", f"/users/oscar/keys/{made['key_id']}")).status_code == 204
    for method, path in (
        ("GET", "/users/vera/keys"),
        ("POST", "/users/ada/keys"),
        ("DELETE", f"/users/vera/keys/{others['key_id']}"),
    ):
        problem(await site.request(method, path, user="oscar"), status=403, code="forbidden")


async def test_a_key_is_not_deleted_under_another_name(site: Site) -> None:
    made = await create(site, "vera")
    answer = await site.request("DELETE", f"/users/oscar/keys/{made['key_id']}", user="oscar")

    problem(answer, status=404, code="not_found")
    assert (await use(site, made["key"])).status_code == 200


async def test_viewers_see_no_keys_not_even_their_own(site: Site) -> None:
    for method, path in (
        ("GET", "/users/vera/keys"),
        ("POST", "/users/vera/keys"),
        ("DELETE", f"/users/vera/keys/{uuid4()}"),
    ):
        problem(await site.request(method, path, user="vera"), status=403, code="forbidden")


async def test_there_is_no_key_without_a_user(site: Site) -> None:
    problem(await site.post("/users/nobody/keys", {}, user="ada"), status=404, code="not_found")
