"""Users: what they are, who may know it, and who stays."""

import asyncio
from typing import Any

import pytest

from tests.api.conftest import IMMEDIATE, Site, add_user, key_of, pointers, problem
from tests.api.support import pages
from tests.factories import make_job

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CHANNELS = {
    "channels": ["email", "slack", "webhook"],
    "slack_url": "https://hooks.example.com/T0/B0",
    "webhook_url": "https://example.com/hook",
    "webhook_secret": SECRET,
}


async def create(site: Site, user_id: str, **fields: Any) -> dict[str, Any]:
    answer = await site.post("/users", {"user_id": user_id} | fields, user="ada")
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"/api/v1/users/{user_id}"
    found: dict[str, Any] = answer.json()
    return found


async def test_a_user_reads_back_as_it_was_made(site: Site) -> None:
    made = await create(
        site,
        "grace",
        name="Grace",
        email="grace@example.com",
        role="viewer",
        notification_preferences={"on_success": True, "channels": ["email"]},
        job_quotas={"max_concurrent_jobs": 3},
    )
    answer = await site.get("/users/grace", user="ada")

    assert answer.json() == made
    assert answer.headers["ETag"] == '"1"'
    assert made["role"] == "viewer"
    assert made["job_quotas"] == {"max_concurrent_jobs": 3, "max_jobs_per_hour": None, "rate_limit": None}
    assert made["notification_preferences"] == {
        "on_success": True,
        "on_failure": True,
        "on_retry": False,
        "channels": ["email"],
        "slack_url": None,
        "webhook_url": None,
        "webhook_secret": None,
    }


async def test_a_user_that_says_nothing_is_an_operator_without_limits(site: Site) -> None:
    made = await create(site, "plain")

    assert (made["name"], made["role"], made["email"]) == ("plain", "operator", None)
    assert made["job_quotas"] == {"max_concurrent_jobs": None, "max_jobs_per_hour": None, "rate_limit": None}


async def test_an_id_is_given_once(site: Site) -> None:
    await create(site, "twice")
    problem(await site.post("/users", {"user_id": "twice"}, user="ada"), status=409, code="conflict")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"user_id": "Big"}, "/user_id"),
        ({"user_id": "line\n"}, "/user_id"),
        ({"email": "nobody"}, "/email"),
        ({"role": "owner"}, "/role"),
        ({"is_active": True}, "/is_active"),
        ({"job_quotas": {"max_concurrent_jobs": 0}}, "/job_quotas/max_concurrent_jobs"),
        ({"job_quotas": {"max_jobs_per_hour": 2**31}}, "/job_quotas/max_jobs_per_hour"),
        ({"notification_preferences": {"on_success": "yes"}}, "/notification_preferences/on_success"),
        ({"notification_preferences": {"channels": ["pager"]}}, "/notification_preferences/channels/0"),
        ({"notification_preferences": {"channels": ["email"]}}, "/notification_preferences/channels"),
        ({"notification_preferences": {"channels": ["slack"]}}, "/notification_preferences/channels"),
        (
            {"email": "a@b", "notification_preferences": {"channels": ["email", "email"]}},
            "/notification_preferences/channels",
        ),
        ({"notification_preferences": {"slack_url": "file:///x"}}, "/notification_preferences/slack_url"),
        ({"notification_preferences": {"webhook_secret": "abc"}}, "/notification_preferences/webhook_secret"),
        (
            {"notification_preferences": {"webhook_secret": f"{SECRET}A"}},
            "/notification_preferences/webhook_secret",
        ),
    ],
)
async def test_what_does_not_fit_is_refused_where_it_stands(
    site: Site, fields: dict[str, Any], pointer: str
) -> None:
    answer = await site.post("/users", {"user_id": "never"} | fields, user="ada")

    assert pointers(problem(answer, status=400, code="invalid_input")) == [pointer]
    problem(await site.get("/users/never"), status=404, code="not_found")


async def test_a_secret_is_never_read_back(site: Site) -> None:
    made = await create(site, "hook", email="h@example.com", notification_preferences=CHANNELS)
    listed = await site.get("/users?limit=1000", user="ada")

    assert made["notification_preferences"] == CHANNELS | {
        "on_success": False,
        "on_failure": True,
        "on_retry": False,
        "webhook_secret": "********",
    }
    assert SECRET not in listed.text


async def test_addresses_are_shown_to_their_owner_and_to_admins_only(site: Site) -> None:
    await create(site, "addressee", email="h@example.com", notification_preferences=CHANNELS)
    key = (await site.post("/users/addressee/keys", {}, user="ada")).json()["key"]
    own = await site.get("/users/addressee", user=None, headers={"Authorization": f"Bearer {key}"})
    answers = {user: await site.get("/users/addressee", user=user) for user in ("ada", "oscar", "vera")}
    seen = {
        reader: answer.json()["notification_preferences"]
        for reader, answer in (answers | {"addressee": own}).items()
    }

    for name in ("slack_url", "webhook_url"):
        assert {reader: found[name] for reader, found in seen.items()} == {
            "ada": CHANNELS[name],
            "addressee": CHANNELS[name],
            "oscar": "********",
            "vera": "********",
        }


async def test_a_patch_changes_what_it_names(site: Site) -> None:
    await create(site, "pat", email="p@example.com", notification_preferences=CHANNELS)
    changed = await site.request(
        "PATCH",
        "/users/pat",
        user="ada",
        json={
            "name": "Pat",
            "job_quotas": {"max_jobs_per_hour": 10},
            "notification_preferences": {"on_retry": True},
        },
    )

    assert changed.status_code == 200, changed.text
    assert changed.headers["ETag"] == '"2"'
    found = changed.json()
    assert (found["name"], found["email"], found["role"]) == ("Pat", "p@example.com", "operator")
    assert found["job_quotas"] == {"max_concurrent_jobs": None, "max_jobs_per_hour": 10, "rate_limit": None}
    assert found["notification_preferences"]["on_retry"] is True
    assert found["notification_preferences"]["channels"] == CHANNELS["channels"]


async def test_what_was_read_may_be_written_back_without_losing_the_secret(site: Site) -> None:
    made = await create(site, "back", email="b@example.com", notification_preferences=CHANNELS)
    body = {"notification_preferences": made["notification_preferences"]}
    assert (await site.request("PATCH", "/users/back", user="ada", json=body)).status_code == 200

    kept = await site.pool.fetchval(
        "SELECT notification_preferences->>'webhook_secret' FROM onthedot.users WHERE user_id = 'back'"
    )
    assert kept == SECRET


async def test_a_channel_keeps_its_address(site: Site) -> None:
    await create(site, "keep", email="k@example.com", notification_preferences={"channels": ["email"]})
    answer = await site.request("PATCH", "/users/keep", user="ada", json={"email": None})

    assert pointers(problem(answer, status=400, code="invalid_input")) == [
        "/notification_preferences/channels"
    ]


async def test_a_stale_change_is_refused(site: Site) -> None:
    await create(site, "stale")
    first, second = [
        await site.request(
            "PATCH", "/users/stale", user="ada", json={"name": name}, headers={"If-Match": '"1"'}
        )
        for name in ("first", "second")
    ]

    assert first.status_code == 200
    problem(second, status=412, code="precondition_failed")
    assert (await site.get("/users/stale")).json()["name"] == "first"


async def test_only_admins_change_users(site: Site) -> None:
    await create(site, "target")
    for reader in ("oscar", "vera"):
        for method, path, body in (
            ("POST", "/users", {"user_id": "by-oscar"}),
            ("PATCH", "/users/target", {"role": "admin"}),
            ("PATCH", f"/users/{reader}", {"role": "admin"}),
            ("DELETE", "/users/target", None),
        ):
            problem(await site.request(method, path, user=reader, json=body), status=403, code="forbidden")
        assert (await site.get("/users/target", user=reader)).status_code == 200
    assert (await site.get("/users/target")).json()["role"] == "operator"


async def test_a_user_who_owns_jobs_stays(site: Site) -> None:
    await create(site, "owner")
    job_id = await make_job(site.pool, user_id="owner")
    problem(await site.request("DELETE", "/users/owner", user="ada"), status=409, code="conflict")
    await site.pool.execute("DELETE FROM onthedot.jobs WHERE job_id = $1", job_id)

    assert (await site.request("DELETE", "/users/owner", user="ada")).status_code == 204
    problem(await site.get("/users/owner"), status=404, code="not_found")
    problem(await site.request("DELETE", "/users/owner", user="ada"), status=404, code="not_found")


async def test_the_last_admin_stays_one(site: Site) -> None:
    for method, body in (("DELETE", None), ("PATCH", {"role": "operator"})):
        answer = await site.request(method, "/users/ada", user="ada", json=body)
        problem(answer, status=409, code="conflict")
    assert (await site.get("/users/ada")).json()["role"] == "admin"


async def test_of_two_admins_who_demote_each_other_one_stays(site: Site) -> None:
    await add_user(site.pool, "eve", role="admin")
    for _ in range(5):
        answers = await asyncio.gather(
            *(
                site.request("PATCH", f"/users/{name}", user="ada", json={"role": "operator"})
                for name in ("ada", "eve")
            )
        )
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        await site.pool.execute("UPDATE onthedot.users SET role = 'admin' WHERE user_id IN ('ada', 'eve')")
    await site.pool.execute("DELETE FROM onthedot.users WHERE user_id = 'eve'")


async def test_users_are_listed_page_by_page(site: Site) -> None:
    for name in ("page-1", "page-2", "page-3"):
        await create(site, name)
    seen = [user["user_id"] for user in await pages(site, "/users")]

    assert seen == sorted(seen)
    assert {"ada", "oscar", "vera", "page-1", "page-2", "page-3"} <= set(seen)


async def test_a_job_may_belong_to_a_user_made_here(site: Site) -> None:
    await create(site, "fresh")
    job = await site.job("fresh-task", user="ada", user_id="fresh", schedule=IMMEDIATE)

    assert job["user_id"] == "fresh"
    assert key_of("fresh") not in str(job)
