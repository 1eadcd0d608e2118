"""`/jobs/batch`: many jobs in one transaction, all or none, or those that are right."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from app.api.batches import MAX_BATCH_BYTES
from tests.api.conftest import IMMEDIATE, Site, pointers, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

JOB: dict[str, Any] = {"task_id": "batched", "schedule": IMMEDIATE}
BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"schedule": IMMEDIATE}, "invalid_input", "/task_id"),
    (JOB | {"task_id": "nobody"}, "unknown_task", "/task_id"),
    (JOB | {"stauts": 1}, "invalid_input", "/stauts"),
    (JOB | {"priority": "1"}, "invalid_input", "/priority"),
    (JOB | {"tags": ["a", "b c"]}, "invalid_input", "/tags/1"),
    (
        JOB | {"schedule": {"type": "CRON", "expression": "61 * * * *"}},
        "invalid_cron",
        "/schedule/expression",
    ),
    (JOB | {"schedule": IMMEDIATE | {"timezone": "Mars"}}, "invalid_timezone", "/schedule/timezone"),
    (JOB | {"parameters": {"n": "x"}}, "invalid_parameters", "/parameters/n"),
]


async def make_task(site: Site) -> None:
    await site.task("batched", parameter_schema={"properties": {"n": {"type": "integer"}}})


async def test_a_batch_creates_its_jobs_in_their_order(site: Site) -> None:
    await make_task(site)
    jobs = [JOB | {"parameters": {"n": n}} for n in range(5)]
    jobs.append(JOB | {"schedule": {"type": "INTERVAL", "every": 60}})

    answer = await site.post("/jobs/batch", {"jobs": jobs})

    assert answer.status_code == 201
    batch = answer.json()
    assert batch.keys() == {"batch_id", "job_ids", "created"}
    assert batch["created"] == 6
    for number, job_id in enumerate(batch["job_ids"][:5]):
        job = (await site.get(f"/jobs/{job_id}")).json()
        assert (job["parameters"], job["batch_id"]) == ({"n": number}, batch["batch_id"])
    progress = (await site.get(f"/batches/{batch['batch_id']}", user="vera")).json()
    assert progress["total"] == 6
    assert progress["by_status"] == {"PENDING": 5}
    assert progress["completed_at"] is None


async def test_each_of_batches_that_come_together_counts_its_own(site: Site) -> None:
    await make_task(site)
    sizes = [1, 2, 3, 50, 4, 5]
    answers = await asyncio.gather(*(site.post("/jobs/batch", {"jobs": [JOB] * size}) for size in sizes))
    ids = [answer.json()["batch_id"] for answer in answers]
    counted = [(await site.get(f"/batches/{batch_id}")).json() for batch_id in ids]

    assert [(one["total"], one["by_status"]) for one in counted] == [(n, {"PENDING": n}) for n in sizes]


@pytest.mark.parametrize(("job", "code", "pointer"), BAD)
async def test_one_bad_job_keeps_a_whole_batch_out(
    site: Site, job: dict[str, Any], code: str, pointer: str
) -> None:
    await make_task(site)
    before = await site.counts()

    answer = await site.post("/jobs/batch", {"jobs": [JOB, JOB, job]})

    assert pointers(problem(answer, status=400, code=code)) == [f"/jobs/2{pointer}"]
    assert await site.counts() == before


async def test_a_partial_batch_stores_what_is_right_and_tells_what_is_not(site: Site) -> None:
    await make_task(site)
    before = await site.counts()

    answer = await site.post("/jobs/batch?partial=true", {"jobs": [JOB, *(job for job, _, _ in BAD), JOB]})

    assert answer.status_code == 207
    items = answer.json()["items"]
    assert [item["status"] for item in items] == [201, *[400] * len(BAD), 201]
    for item, (_, code, pointer) in zip(items[1:-1], BAD, strict=True):
        assert item["problem"]["code"] == code
        assert pointers(item["problem"]) == [pointer]
        assert item["problem"]["request_id"] == answer.headers["X-Request-Id"]
    for item in (items[0], items[-1]):
        job = (await site.get(f"/jobs/{item['job_id']}")).json()
        assert job["batch_id"] == answer.json()["batch_id"]
    assert (await site.counts())["jobs"] == before["jobs"] + 2


async def test_a_partial_batch_with_nothing_right_stores_nothing(site: Site) -> None:
    before = await site.counts()
    answer = await site.post("/jobs/batch?partial=true", {"jobs": [{}]})
    assert (answer.status_code, answer.json()["batch_id"]) == (207, None)
    assert await site.counts() == before


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/jobs"),
        ({"jobs": None}, "/jobs"),
        ({"jobs": {}}, "/jobs"),
        ({"jobs": []}, "/jobs"),
        ({"jobs": [JOB, 1]}, "/jobs/1"),
        ({"jobs": [None]}, "/jobs/0"),
        ({"jobs": [{}] * 10_001}, "/jobs"),
        ({"jobs": [JOB], "partial": True}, "/partial"),
    ],
)
async def test_a_batch_that_is_none_is_refused(site: Site, body: dict[str, Any], pointer: str) -> None:
    before = await site.counts()
    document = problem(await site.post("/jobs/batch", body), status=400, code="invalid_input")
    assert pointers(document) == [pointer]
    assert await site.counts() == before


async def test_a_viewer_makes_no_batch_and_an_operator_none_for_others(site: Site) -> None:
    await make_task(site)
    before = await site.counts()
    for query in ("", "?partial=true"):
        problem(
            await site.post(f"/jobs/batch{query}", {"jobs": [JOB]}, user="vera"), status=403, code="forbidden"
        )
        theirs = {"jobs": [JOB, JOB | {"user_id": "ada"}]}
        problem(await site.post(f"/jobs/batch{query}", theirs), status=403, code="forbidden")
    assert await site.counts() == before


async def test_a_batch_may_have_ten_thousand_jobs_and_sixteen_mebibytes(site: Site) -> None:
    await make_task(site)
    before = await site.counts()
    answer = await site.post("/jobs/batch", {"jobs": [JOB] * 10_000})
    assert (answer.status_code, answer.json()["created"]) == (201, 10_000)
    assert len(set(answer.json()["job_ids"])) == 10_000
    assert (await site.counts())["jobs"] == before["jobs"] + 10_000

    start, end = b'{"jobs": [{"task_id": "batched", "schedule": {"type": "IMMEDIATE"}, "name": "', b'"}]}'
    too_large = start + b"x" * (MAX_BATCH_BYTES - len(start) - len(end) + 1) + end
    document = problem(await site.post("/jobs/batch", too_large), status=413, code="payload_too_large")
    assert "16 MiB" in document["detail"]


async def test_a_batch_that_does_not_exist_is_not_found(site: Site) -> None:
    problem(await site.get(f"/batches/{uuid4()}"), status=404, code="not_found")
    problem(await site.get("/batches/x"), status=404, code="not_found")


@pytest.mark.parametrize(
    ("columns", "status"), [({}, 201), ({"queue": "nowhere"}, 400), ({"task_id": "nowhere"}, 400)]
)
async def test_ten_thousand_of_somebody_else_are_looked_up_once(
    site: Site, columns: dict[str, str], status: int
) -> None:
    """One by one each would cost a statement or three, and the answer would come too late for anybody."""
    answer = await site.post(
        "/jobs/batch", {"jobs": [JOB | {"user_id": "vera"} | columns] * 10_000}, user="ada"
    )

    assert answer.status_code == status
