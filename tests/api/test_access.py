"""Who may do what: keys, roles, and other people's `user_id`."""

from datetime import timedelta

import pytest

from app.domain.access import hash_secret
from tests.api.conftest import IMMEDIATE, Site, key_of, pointers, problem
from tests.factories import now_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

TASK = {"execution_handler": "builtin:noop"}
JOB = {"task_id": "shared", "schedule": IMMEDIATE}


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer nobody-has-this-key",
        f"Basic {key_of('ada')}",
        key_of("ada"),
        f"Bearer {key_of('ada')} {key_of('ada')}",
        f"Bearer {key_of('ada')}x",
        f"Bearer {key_of('ADA')}",
        f"Token {key_of('ada')}",
        "Bearer \xff\xfe",
        "Bearer ' OR 1=1 --",
        "Bearer " + "x" * 10_000,
    ],
)
async def test_without_a_valid_key_nothing_is_served(site: Site, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization.encode("latin-1")}
    before = await site.counts()
    for method, path, body in (
        ("GET", "/jobs", None),
        ("GET", "/tasks/x", None),
        ("POST", "/tasks", TASK | {"task_id": "stolen"}),
        ("DELETE", "/tasks/x", None),
    ):
        answer = await site.request(method, path, user=None, json=body, headers=headers)
        problem(answer, status=401, code="unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert await site.counts() == before


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_may_be_written_in_any_case(site: Site, scheme: str) -> None:
    headers = {"Authorization": f"{scheme}  {key_of('vera')} "}
    assert (await site.request("GET", "/jobs", user=None, headers=headers)).status_code == 200


async def test_a_key_that_has_expired_is_as_good_as_none(site: Site) -> None:
    now = await now_of(site.pool)
    for name, expires_at in (("expired", now), ("valid", now + timedelta(hours=1))):
        await site.pool.execute(
            "INSERT INTO onthedot.api_keys (key_id, user_id, name, prefix, key_hash, expires_at)"
            " VALUES (gen_random_uuid(), 'vera', 'test', 'key', $1, $2)",
            hash_secret(name),
            expires_at,
        )

    async def status_of(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return (await site.request("GET", "/jobs", user=None, headers=headers)).status_code

    assert await status_of("expired") == 401
    assert await status_of("valid") == 200


async def test_a_viewer_reads_and_changes_nothing(site: Site) -> None:
    job = await site.job("shared")
    before = await site.counts()
    reads = ("/tasks", "/tasks/shared", "/jobs", f"/jobs/{job['job_id']}", f"/jobs/{job['job_id']}/executions",
             "/executions", f"/executions/{job['execution_id']}", f"/executions/{job['execution_id']}/attempts",
             f"/executions/{job['execution_id']}/logs")  # fmt: skip
    for path in reads:
        assert (await site.get(path, user="vera")).status_code == 200
    for method, path, body in (
        ("POST", "/tasks", TASK | {"task_id": "new"}),
        ("PUT", "/tasks/shared", TASK),
        ("PATCH", "/tasks/shared", TASK),
        ("DELETE", "/tasks/shared", None),
        ("POST", "/jobs", JOB),
        ("POST", "/jobs", JOB | {"user_id": "vera"}),
    ):
        document = problem(
            await site.request(method, path, json=body, user="vera"), status=403, code="forbidden"
        )
        assert "operator" in document["detail"]
    assert await site.counts() == before
    assert (await site.get("/tasks/shared")).json()["version"] == 1


@pytest.mark.parametrize("user", ["oscar", "ada"])
async def test_operators_and_admins_create_change_and_delete(site: Site, user: str) -> None:
    task_id = f"of-{user}"
    created = await site.post("/tasks", TASK | {"task_id": task_id}, user=user)
    assert created.status_code == 201
    assert created.json()["created_by"] == user
    assert (await site.request("PATCH", f"/tasks/{task_id}", json=TASK, user=user)).status_code == 200
    assert (await site.request("PUT", f"/tasks/{task_id}", json=TASK, user=user)).status_code == 200
    assert (await site.request("DELETE", f"/tasks/{task_id}", user=user)).status_code == 204


async def test_only_an_admin_makes_jobs_for_others(site: Site) -> None:
    await site.task("shared")
    for user, named, owner in (
        ("oscar", None, "oscar"),
        ("oscar", "oscar", "oscar"),
        ("ada", "vera", "vera"),
    ):
        answer = await site.post("/jobs", JOB | {"user_id": named}, user=user)
        assert answer.status_code == 201
        assert answer.json()["user_id"] == owner
        execution = await site.get(f"/executions/{answer.json()['execution_id']}")
        assert execution.json()["user_id"] == owner
    before = await site.counts()
    problem(await site.post("/jobs", JOB | {"user_id": "ada"}), status=403, code="forbidden")
    problem(await site.post("/jobs", JOB | {"user_id": "nobody"}), status=403, code="forbidden")
    for nobody in ("nobody", "", "Vera", "vera ", "x" * 100_000):
        document = problem(
            await site.post("/jobs", JOB | {"user_id": nobody}, user="ada"), status=400, code="unknown_user"
        )
        assert pointers(document) == ["/user_id"]
    assert await site.counts() == before
