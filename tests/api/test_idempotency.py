"""`Idempotency-Key`: a request sent again has no second effect and gets the first answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.domain.idempotency import idempotent_request
from tests.api.conftest import IMMEDIATE, Site, pointers, problem
from tests.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

JOB: dict[str, Any] = {"task_id": "repeated", "schedule": IMMEDIATE, "parameters": {"n": 1}}
BATCH: dict[str, Any] = {"jobs": [JOB, JOB]}


async def send(
    site: Site, key: str, body: object = None, *, path: str = "/jobs", user: str = "oscar"
) -> httpx.Response:
    """Send a request under a key."""
    headers = {"Idempotency-Key": key.encode("latin-1")}
    return await site.post(path, JOB if body is None else body, user=user, headers=headers)


@pytest.mark.parametrize(("path", "body", "made"), [("/jobs", JOB, 1), ("/jobs/batch", BATCH, 2)])
async def test_fifty_at_once_under_one_key_are_one_request(
    site: Site, path: str, body: dict[str, Any], made: int
) -> None:
    await site.task("repeated")
    before, key = await site.counts(), str(uuid4())

    answers = await asyncio.gather(*(send(site, key, body, path=path) for _ in range(50)))

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    after = await site.counts()
    assert after["jobs"] - before["jobs"] == after["executions"] - before["executions"] == made
    later = await send(site, f'"{key}"', body, path=path)
    assert (later.status_code, later.text) == (201, answers[0].text)
    assert later.headers["Idempotency-Replayed"] == "true"
    assert later.headers["Content-Type"] == "application/json"


async def test_another_body_under_the_same_key_is_refused(site: Site) -> None:
    await site.task("repeated")
    key = str(uuid4())
    await send(site, key)
    before = await site.counts()

    for body in (JOB | {"parameters": {"n": 2}}, JOB | {"name": "x"}):
        answer = await send(site, key, body)
        problem(answer, status=422, code="idempotency_mismatch")
    assert await site.counts() == before


async def test_of_two_bodies_at_once_under_one_key_one_is_stored(site: Site) -> None:
    await site.task("repeated")
    before, key = await site.counts(), str(uuid4())
    bodies = [JOB | {"parameters": {"n": n % 2}} for n in range(20)]

    answers = await asyncio.gather(*(send(site, key, body) for body in bodies))

    assert [answer.status_code for answer in answers].count(201) == 10
    for answer in answers:
        if answer.status_code != 201:
            problem(answer, status=422, code="idempotency_mismatch")
    assert (await site.counts())["jobs"] == before["jobs"] + 1


async def test_a_key_counts_for_one_user_and_stands_for_one_request(site: Site) -> None:
    await site.task("repeated")
    key = str(uuid4())
    first = await send(site, key)
    assert (await send(site, key, user="ada")).json()["job_id"] != first.json()["job_id"]
    before = await site.counts()

    for path, body in (("/jobs/batch", BATCH), ("/jobs?x=1", JOB)):
        problem(await send(site, key, body, path=path), status=422, code="idempotency_mismatch")
    assert await site.counts() == before
    assert (await send(site, key)).json() == first.json()


async def test_a_repeat_gets_the_headers_of_the_first_answer(site: Site) -> None:
    await site.task("repeated")
    key = str(uuid4())
    first, second = await send(site, key), await send(site, key)

    assert first.headers["Location"] == f"/api/v1/jobs/{first.json()['job_id']}"
    for name in ("ETag", "Location", "Content-Type"):
        assert second.headers[name] == first.headers[name]
    assert second.headers["X-Request-Id"] != first.headers["X-Request-Id"]


async def test_a_repeat_that_waits_gets_the_execution_as_it_is_now(site: Site) -> None:
    await site.task("repeated")
    key = str(uuid4())
    first = (await send(site, key, path="/jobs?wait=0.01")).json()
    assert first["execution"]["status"] == "PENDING"
    cancelled = await site.request("POST", f"/executions/{first['execution_id']}/actions/cancel")
    assert cancelled.status_code == 200

    waited = await send(site, key, path="/jobs?wait=20")
    assert waited.status_code == 201
    assert waited.headers["Idempotency-Replayed"] == "true"
    assert waited.json()["execution"]["status"] == "CANCELLED"
    assert waited.json() | {"execution": None} == first | {"execution": None}
    assert (await send(site, key)).json() == first | {"execution": None}


async def test_a_request_whose_key_is_held_waits_and_holds_up_nobody(site: Site) -> None:
    """The key is remembered by a transaction that goes on, as another process's would."""
    await site.task("repeated")
    held = str(uuid4())
    async with holding(site, held):
        before = asyncio.gather(*(send(site, str(uuid4())) for _ in range(20)))
        waiting = [asyncio.create_task(send(site, held)) for _ in range(4)]
        after = asyncio.gather(*(send(site, str(uuid4())) for _ in range(20)))
        assert {answer.status_code for answer in await before + await after} == {201}
        await eventually(lambda: waits_for_a_lock(site))
        assert (await send(site, str(uuid4()))).status_code == 201
        assert not any(one.done() for one in waiting)

    answers = await asyncio.gather(*waiting)
    assert {answer.status_code for answer in answers} == {201}
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1


async def test_a_repeat_does_not_wait_for_ever(site: Site) -> None:
    await site.task("repeated")
    before, held = await site.counts(), str(uuid4())
    async with holding(site, held):
        answer = await send(site, held)
    problem(answer, status=409, code="request_underway")
    assert answer.headers["Retry-After"]
    assert await site.counts() == before


@asynccontextmanager
async def holding(site: Site, key: str) -> AsyncIterator[None]:
    """Remember a request of the operator's in a transaction that is rolled back at the end."""
    request = idempotent_request(key, user_id="oscar", method="POST", path="/api/v1/jobs", query="", body=b"")
    async with site.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            "INSERT INTO onthedot.idempotency_keys (key_hash, request_hash, status_code, answer)"
            " VALUES ($1, $2, 201, '')",
            request.key_hash,
            request.request_hash,
        )
        yield
        await transaction.rollback()


async def waits_for_a_lock(site: Site) -> bool:
    """Tell whether some session of the database waits for a lock."""
    return bool(
        await site.pool.fetchval(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
            " WHERE NOT granted AND datname = current_database()"
        )
    )


async def test_a_request_that_failed_may_be_sent_again_under_its_key(site: Site) -> None:
    key, task_id = str(uuid4()), f"late-{uuid4()}"
    problem(await send(site, key, JOB | {"task_id": task_id}), status=400, code="unknown_task")
    await site.task(task_id)
    answer = await send(site, key, JOB | {"task_id": task_id})
    assert answer.status_code == 201
    assert "Idempotency-Replayed" not in answer.headers


async def test_no_repeat_shows_what_its_sender_may_not_see(site: Site) -> None:
    await site.task("repeated")
    key = str(uuid4())
    assert (await send(site, key)).status_code == 201
    problem(await send(site, key, user="vera"), status=403, code="forbidden")


@pytest.mark.parametrize("key", ["", " ", '""', "x" * 256, "ü", "a\tb", "\x7f"])
async def test_a_key_that_is_none_is_refused(site: Site, key: str) -> None:
    await site.task("repeated")
    before = await site.counts()
    for path, body in (("/jobs", JOB), ("/jobs/batch", BATCH)):
        answer = await send(site, key, body, path=path)
        assert pointers(problem(answer, status=400, code="invalid_input")) == ["/Idempotency-Key"]
    assert await site.counts() == before
