"""`Idempotency-Key`: a request sent again has no second effect and gets the first answer."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.api.conftest import IMMEDIATE, Site, pointers, problem

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


async def test_a_key_counts_for_one_user_and_one_address(site: Site) -> None:
    await site.task("repeated")
    key = str(uuid4())
    first = await send(site, key)
    assert (await send(site, key, user="ada")).json()["job_id"] != first.json()["job_id"]
    assert (await send(site, key, BATCH, path="/jobs/batch")).status_code == 201
    assert (await send(site, key)).json() == first.json()


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
