"""Bodies that are no JSON, or JSON that cannot be kept exactly: refused with the place named, and nothing stored."""

import json

import pytest

from tests.api.conftest import Site, pointers, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADDRESSES = (
    ("POST", "/tasks"),
    ("PUT", "/tasks/checked"),
    ("PATCH", "/tasks/checked"),
    ("POST", "/jobs"),
)


def holding(value: str) -> bytes:
    """Return a request whose parameters hold this JSON text in a list under `a`."""
    start = b'{"task_id": "checked", "schedule": {"type": "IMMEDIATE"}, "parameters": {"a": ['
    return start + value.encode() + b"]}}"


PLACE = "/parameters/a/0"

NOT_JSON = {
    "empty": b"",
    "blank": b" \n\t",
    "cut off": b'{"task_id": "checked"',
    "single quotes": b"{'task_id': 'checked'}",
    "trailing comma": b'{"task_id": "checked",}',
    "two documents": b'{"task_id": "checked"} {}',
    "a comment": b'{"task_id": "checked"} // yes',
    "a form": b"task_id=checked",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"task_id": "checked"}'.encode("utf-16"),
    "Latin-1": '{"task_id": "ü"}'.encode("latin-1"),
    "bytes": b"\x80\xff\x00",
    "raw NUL": b'{"task_id": "\x00"}',
    "raw surrogate": b'{"task_id": "\xed\xa0\x80"}',
    "overlong UTF-8": b'{"task_id": "\xc0\xaf"}',
    "raw newline": b'{"task_id": "a\nb"}',
    "100,000 brackets": b"[" * 100_000,
    "100,000 braces": b'{"a":' * 100_000,
    "a bad escape": b'{"task_id": "\\x41"}',
    "half an escape": b'{"task_id": "\\ud8"}',
    "leading zero": holding("01"),
    "hexadecimal": holding("0x10"),
    "undefined": holding("undefined"),
    "Python": holding("None"),
}

NOT_KEPT = {
    "NUL in a value": (holding(r'"x\u0000y"'), PLACE),
    "NUL in a key": (holding(r'{"x\u0000y": 1}'), PLACE),
    "half a surrogate pair": (holding(r'"\ud800"'), PLACE),
    "the other half": (holding(r'"\udfff"'), PLACE),
    "a pair in the wrong order": (holding(r'"\udc00\ud800"'), PLACE),
    "half a pair in a key": (holding(r'{"\ud83d": 1}'), PLACE),
    "NUL in a name": (rb'{"task_id": "checked", "name": "\u0000"}', "/name"),
    "NUL in an id": (rb'{"task_id": "\u0000"}', "/task_id"),
    "NaN": (holding("NaN"), PLACE),
    "Infinity": (holding("Infinity"), PLACE),
    "-Infinity": (holding("-Infinity"), PLACE),
    "1e400": (holding("1e400"), PLACE),
    "-1e400": (holding("-1e400"), PLACE),
    "1e999999999": (holding("1e999999999"), PLACE),
    "2**63": (holding(str(2**63)), PLACE),
    "-2**63 - 1": (holding(str(-(2**63) - 1)), PLACE),
    "5,000 digits": (holding("9" * 5_000), PLACE),
    "500,000 digits": (holding("9" * 500_000), PLACE),
    "a decimal of too many digits": (holding("12345678901234567890.10"), PLACE),
    "a fraction of too many digits": (holding("0.1234567890123456789"), PLACE),
    "a key twice": (b'{"task_id": "checked", "task_id": "checked"}', "/task_id"),
    "a key twice further in": (holding('{"x": 1, "y": 2, "x": 1}'), f"{PLACE}/x"),
    "a key twice by escapes": (holding(r'{"x": 1, "\u0078": 1}'), f"{PLACE}/x"),
    "65 levels": (holding("[" * 62 + "]" * 62), f"{PLACE}" + "/0" * 61),
    "a slash in the way": (holding(r'{"a/b~c": "\u0000"}'), f"{PLACE}/a~1b~0c"),
}

NO_OBJECT = {
    "null": b"null",
    "a list": b"[]",
    "a string": b'"x"',
    "a number": b"1",
    "true": b"true",
    "jobs": b"[{}]",
}


@pytest.mark.parametrize("name", NOT_JSON)
async def test_a_body_that_is_no_json_is_refused(site: Site, name: str) -> None:
    await site.task("checked")
    before = await site.counts()
    for method, path in ADDRESSES:
        answer = await site.request(method, path, content=NOT_JSON[name])
        document = problem(answer, status=400, code="invalid_body")
        assert pointers(document) == [""]
    assert await site.counts() == before


@pytest.mark.parametrize("name", NOT_KEPT)
async def test_json_that_cannot_be_kept_exactly_is_refused_where_it_is(site: Site, name: str) -> None:
    await site.task("checked")
    before = await site.counts()
    body, pointer = NOT_KEPT[name]
    for method, path in ADDRESSES:
        document = problem(await site.request(method, path, content=body), status=400, code="invalid_body")
        assert pointers(document) == [pointer]
    assert await site.counts() == before


@pytest.mark.parametrize("name", NO_OBJECT)
async def test_json_that_is_no_object_is_refused(site: Site, name: str) -> None:
    await site.task("checked")
    before = await site.counts()
    for method, path in ADDRESSES:
        answer = await site.request(method, path, content=NO_OBJECT[name])
        document = problem(answer, status=400, code="invalid_input")
        assert pointers(document) == [""]
        assert "object" in document["detail"]
    assert await site.counts() == before


async def test_what_only_looks_dangerous_is_kept_as_sent(site: Site) -> None:
    texts = [
        r"\u0000",
        r"\ud800",
        "NaN",
        "[" * 1000,
        "\u2400",
        "\ufffd",
        "😀",
        "'; DROP TABLE jobs; --",
        "{}",
        "\x7f",
    ]
    job = await site.job("checked", parameters={"a": texts, "deep": json.loads("[" * 61 + "]" * 61)})
    found = (await site.get(f"/jobs/{job['job_id']}")).json()
    assert found["parameters"]["a"] == texts


async def test_a_long_unknown_field_is_not_repeated_whole(site: Site) -> None:
    answer = await site.post("/jobs", {"x" * 500_000: 1})
    problem(answer, status=400, code="invalid_input")
    assert len(answer.content) < 2_000
