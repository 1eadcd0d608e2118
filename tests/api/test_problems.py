"""Requests that lead nowhere: addresses, methods, media types and sizes; and the pages behind problem types."""

import pytest

from app.api.problems import TITLES
from app.api.router import MAX_BODY_BYTES
from tests.api.conftest import Site, key_of, pointers, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

JOB = b'{"task_id": "sized", "schedule": {"type": "IMMEDIATE"}, "parameters": {"text": "%s"}}'


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1", "/api/v1/", "/api/v1/nothing", "/api/v2/jobs", "/api/v1/jobs/x", "/api/v1/jobs/x/executions",
        "/api/v1/executions/x", "/api/v1/executions/x/logs", "/api/v1/jobs/x/y/z", "/api/v1/tasks/a/b",
        "/api/v1/tasks/..%2f..%2fetc%2fpasswd", "/api/v1/tasks/%2e%2e", "/api/v1/tasks/" + "x" * 200,
        "/api/v1/tasks/%ff", "/api/v1/tasks/%ED%A0%80", "/api/v1/jobs/%00", "/api/v1/jobs/" + "1" * 5000,
        "/api/v1/executions/00000000-0000-0000-0000-00000000000g", "/problems/nothing",
    ],
)  # fmt: skip
async def test_an_address_that_leads_nowhere_is_not_found(site: Site, path: str) -> None:
    for method in ("GET", "DELETE"):
        answer = await site.http.request(method, path, headers={"Authorization": f"Bearer {key_of('oscar')}"})
        if answer.status_code != 405:
            problem(answer, status=404, code="not_found")


async def test_a_path_with_nul_is_refused(site: Site) -> None:
    for method in ("GET", "DELETE"):
        problem(await site.request(method, "/tasks/%00"), status=400, code="invalid_input")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/jobs", {"GET", "POST"}),
        ("PUT", "/jobs", {"GET", "POST"}),
        ("PATCH", "/tasks", {"GET", "POST"}),
        ("POST", "/tasks/x", {"GET", "PUT", "PATCH", "DELETE"}),
        ("POST", "/executions", {"GET"}),
        ("DELETE", "/executions/01a2286f-8f81-7fe3-8426-ba3624ec9a73", {"GET"}),
        ("BREW", "/jobs", {"GET", "POST"}),
    ],
)
async def test_a_method_that_an_address_does_not_take_is_refused(
    site: Site, method: str, path: str, allowed: set[str]
) -> None:
    answer = await site.request(method, path)
    document = problem(answer, status=405, code="method_not_allowed")
    assert "Allow" in document["detail"]
    assert {name.strip() for name in answer.headers["Allow"].split(",")} - {"OPTIONS"} == allowed


async def test_every_answer_carries_a_request_id_of_its_own(site: Site) -> None:
    answers = [await site.get("/jobs"), await site.get("/jobs?limit=0"), await site.get("/x"),
               await site.get("/jobs", user=None), await site.http.get("/livez")]  # fmt: skip
    ids = [answer.headers["X-Request-Id"] for answer in answers]
    assert len(set(ids)) == len(ids)
    assert all(ids)


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml",
     "application/x-msgpack", "application/jsonx", "json", "garbage;;=/", "*/*", "text/html\xff"],
)  # fmt: skip
async def test_a_body_that_says_it_is_no_json_is_refused(site: Site, content_type: str) -> None:
    await site.task("sized")
    before = await site.counts()
    headers = {"Content-Type": content_type.encode("latin-1")}
    for path in ("/jobs", "/tasks"):
        answer = await site.request("POST", path, content=JOB % b"", headers=headers)
        document = problem(answer, status=415, code="unsupported_media_type")
        assert "Content-Type: application/json" in document["detail"]
    assert await site.counts() == before


@pytest.mark.parametrize(
    "content_type",
    [None, "", "application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"],
)
async def test_a_body_that_says_it_is_json_or_nothing_is_read(site: Site, content_type: str | None) -> None:
    await site.task("sized")
    headers = {} if content_type is None else {"Content-Type": content_type}
    answer = await site.request("POST", "/jobs", content=JOB % b"", headers=headers)
    assert answer.status_code == 201


async def test_a_body_may_have_a_mebibyte_and_no_byte_more(site: Site) -> None:
    await site.task("sized")
    room = MAX_BODY_BYTES - len(JOB % b"")
    answer = await site.post("/jobs", JOB % (b"x" * room))
    assert answer.status_code == 201
    read = await site.get(f"/executions/{answer.json()['execution_id']}")
    assert len(read.json()["parameters"]["text"]) == room

    before = await site.counts()
    too_large = JOB % (b"x" * (room + 1))

    async def in_pieces() -> object:
        for start in range(0, len(too_large), 100_000):
            yield too_large[start : start + 100_000]

    for method, path in (
        ("POST", "/jobs"),
        ("POST", "/tasks"),
        ("PUT", "/tasks/sized"),
        ("PATCH", "/tasks/sized"),
    ):
        for content in (too_large, in_pieces()):
            answer = await site.request(method, path, content=content)
            document = problem(answer, status=413, code="payload_too_large")
            assert "1 MiB" in document["detail"]
    assert await site.counts() == before


@pytest.mark.parametrize("code", sorted(TITLES))
async def test_the_type_of_a_problem_leads_to_its_explanation(site: Site, code: str) -> None:
    answer = await site.http.get(f"/problems/{code}")
    assert answer.status_code == 200
    assert answer.json() == {"code": code, "status": TITLES[code][0], "title": TITLES[code][1]}


async def test_the_server_tells_that_it_lives_and_is_ready(site: Site) -> None:
    for path, status in (("/livez", "live"), ("/readyz", "ready")):
        answer = await site.http.get(path)
        assert (answer.status_code, answer.json()["status"]) == (200, status)


FILTERS = [
    ("/jobs", "user_id"), ("/jobs", "task_type"), ("/executions", "user_id"), ("/executions", "task_id"),
    ("/executions", "queue"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "name"), FILTERS)
async def test_a_filter_matches_nothing_or_is_refused_but_never_breaks(
    site: Site, path: str, name: str
) -> None:
    document = problem(await site.get(f"{path}?{name}=a%00b"), status=400, code="invalid_input")
    assert pointers(document) == [f"/{name}"]
    for text in ("%ff", "%ED%A0%80", "'", "%27%3B--", "%25", "a%0Ab", "x" * 60_000, ""):
        answer = await site.get(f"{path}?{name}={text}")
        assert (answer.status_code, answer.json()["items"]) == (200, []), text


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("/executions?status=running", "/status"),
        ("/executions?status=", "/status"),
        ("/executions?status=%00", "/status"),
        ("/executions?status=DONE", "/status"),
        ("/executions?include=past", "/include"),
        ("/executions?include=future%0A", "/include"),
        ("/jobs/01a2286f-8f81-7fe3-8426-ba3624ec9a73/executions?status=x", "/status"),
        ("/jobs/01a2286f-8f81-7fe3-8426-ba3624ec9a73/executions?include=", "/include"),
        ("/jobs?created_after=yesterday", "/created_after"),
        ("/jobs?created_after=", "/created_after"),
        ("/jobs?created_after=-1", "/created_after"),
        ("/jobs?created_after=NaN", "/created_after"),
        ("/jobs?created_after=1e400", "/created_after"),
        ("/jobs?created_after=99999999999999999999", "/created_after"),
        ("/jobs?created_after=1893456000000", "/created_after"),
        ("/jobs?created_after=2026-02-30T00:00:00Z", "/created_after"),
        ("/jobs?created_after=0001-01-01T00:00:00%2B14:00", "/created_after"),
        ("/jobs?created_after=9999-12-31T23:59:59-14:00", "/created_after"),
        ("/jobs?created_after=%00", "/created_after"),
        ("/jobs?created_after=" + "9" * 5000, "/created_after"),
    ],
)
async def test_a_query_parameter_that_does_not_fit_is_named(site: Site, query: str, pointer: str) -> None:
    document = problem(await site.get(query), status=400, code="invalid_input")
    assert pointers(document) == [pointer]
    assert document["detail"].startswith(pointer[1:] + ":")
