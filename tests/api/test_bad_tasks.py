"""Tasks that could never run, or whose schema is none: refused by POST, PUT and PATCH alike, and nothing changes."""

import asyncio
from typing import Any

import pytest

from tests.api.conftest import IMMEDIATE, Site, pointers, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOOD: dict[str, Any] = {"execution_handler": "builtin:noop"}

PRIVATE = [
    "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "localhost", "localhost.", "LOCALHOST",
    "a.localhost", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "169.254.169.254", "10.0.0.1",
    "172.16.0.1", "192.168.1.1", "100.64.0.1", "0.0.0.1", "0", "[fe80::1]", "[fd00::1]", "[64:ff9b::7f00:1]",
    "127.0.0.1.",
]  # fmt: skip
HANDLERS = [
    "noop", "builtin", "builtin:", "builtin:nope", "builtin:noop ", "Builtin:noop", "builtin:noop\n",
    "python", "python:", "python:a b", "python:a.", "python:.a", "python:a..b", "python:os;", "python:a-b",
    "python:../x", "shell:ls", "shell:", "exec:ls", ":", " ", "http", "http:", "http:GET", "http:GET ",
    "http:FETCH http://example.com/", "http:get http://example.com/", "http://example.com/", "http:GET example.com",
    "http:GET ftp://example.com/", "http:GET file:///etc/passwd", "http:GET gopher://example.com/",
    "http:GET http://", "http:GET http:///x", "http:GET http://user:secret@example.com/", "http:GET http://[::1",
    "http:GET http://example.com:0/", "http:GET http://example.com:99999/", "http:GET http://example.com/a b",
    "http:GET http://example.com/\r\nX: y", "http:GET http://example.com\\@127.0.0.1/", "http:GET http://example.com/#x",
    *(f"http:POST http://{host}/x" for host in PRIVATE), "http:POST https://127.0.0.1:8443/x",
]  # fmt: skip
SCHEMAS: list[dict[str, Any]] = [
    {"type": "strin"}, {"type": 1}, {"type": ["string", 1]}, {"properties": []}, {"required": "x"}, {"enum": 1},
    {"minLength": -1}, {"multipleOf": 0}, {"pattern": "("}, {"pattern": "\\p{L}{900}"},
    {"patternProperties": {"(": {}}}, {"$ref": "#/nowhere"},
    {"$ref": "#/%ff"}, {"$ref": "other.json"}, {"$ref": "http://[::1"}, {"$ref": 1},
    {"$ref": "file:///etc/passwd"}, {"$ref": "https://example.com/schema.json"}, {"$id": "http://[::1"}, {"$id": 1},
    {"$schema": "https://example.com/my-own"}, {"$schema": "%%%"}, {"$schema": 1},
    {"properties": {"a": {"type": "x"}}}, {"$dynamicRef": "https://example.com/schema.json#x"}, {"allOf": []},
    {"items": 5},
]  # fmt: skip
IDS = [
    "",
    "../x",
    "a/b",
    "x" * 129,
    "x" * 200,
    "A",
    "a b",
    " a",
    "a\n",
    "ü",
    ".a",
    "-a",
    "_a",
    "a\\b",
    "a'b",
    "%00",
]

RATES: list[tuple[str, dict[str, Any]]] = [
    *(("per_second", {"per_second": value}) for value in (0, -1, None, "1", True, 1e308)),
    *(("burst", {"per_second": 1, "burst": value}) for value in (0, -1, 1.5, "1", True, 1_000_001)),
    ("per_second", {"burst": 1}), ("per_minute", {"per_second": 1, "per_minute": 60}),
]  # fmt: skip


def named(
    name: str, values: list[Any], *, code: str = "invalid_input"
) -> dict[str, tuple[dict[str, Any], str, str]]:
    """Return a case for each bad value of a field: the field, the code and the pointer."""
    return {f"{name} {value!r:.80}": ({name: value}, code, f"/{name}") for value in values}


def resources(name: str, values: list[Any]) -> dict[str, tuple[dict[str, Any], str, str]]:
    """Return a case for each bad value of a resource requirement."""
    pointer = f"/resource_requirements/{name}"
    return {
        f"{name} {value!r}": ({"resource_requirements": {name: value}}, "invalid_input", pointer)
        for value in values
    }


def rules(
    rule: dict[str, Any], pointer: str, *, code: str = "invalid_input"
) -> dict[str, tuple[dict[str, Any], str, str]]:
    """Return a case for a bad failure rule."""
    return {f"failure_rules {rule}": ({"failure_rules": [rule]}, code, f"/failure_rules/0{pointer}")}


CASES = (
    named("execution_handler", HANDLERS, code="invalid_handler")
    | named("execution_handler", ["", "x" * 4001, 1, None, []])
    | named("parameter_schema", SCHEMAS, code="invalid_parameter_schema")
    | named("parameter_schema", [None, True, False, [], "x", 1])
    | named("name", ["", "x" * 201, 1, []])
    | named("description", ["x" * 10_001, 1, None])
    | named("queue", ["", "nobody", "General", "x" * 100_000], code="unknown_queue")
    | named("queue", [1, None])
    | named("priority", ["2", True, 2.5, -1, 4])
    | named("resource_requirements", [None, [], "x"])
    | named("failure_rules", [None, {}, "x", [{"match": {"type": "X"}, "retry": False}] * 51])
    | rules({"match": {}, "retry": False}, "/match", code="invalid_failure_rule")
    | rules({"match": {"type": "X"}}, "", code="invalid_failure_rule")
    | rules({"match": {"type": "X"}, "category": "poison"}, "/category", code="invalid_failure_rule")
    | rules({"match": {"type": "X"}, "category": "bad luck"}, "/category")
    | rules({"match": {"http_status": 600}, "retry": False}, "/match/http_status")
    | rules({"match": {"pattern": ".*"}, "retry": False}, "/match/pattern")
    | rules({"match": {"type": "X"}, "retry": 1}, "/retry")
    | rules({"retry": True}, "/match")
    | resources("cpu_cores", [-1, "1", True, None, 1025, 1e308])
    | resources("memory_mb", [-1, 1.5, "256", True, None, 2**62])
    | resources("timeout_seconds", [0, -1, "60", True, None, 1e308])
    | resources("retry_policy", ["never", "EXPONENTIAL", "", 1, None])
    | resources("max_retries", [-1, 1001, 0.5, "3", True])
    | resources("retry_delay_seconds", [-1, "1", True, None, 1e308])
    | resources("retry_max_delay_seconds", [-1, "1", True, None, 1e308])
    | resources("gpus", [1])
    | named("labels", [None, [], "gpu=a100", {"GPU": "a100"}, {"": "x"}, {str(n): "x" for n in range(21)}])
    | named("concurrency", [0, -1, 1.5, "3", True, 2**31])
    | named("concurrency_key", ["", "x" * 201, 1, "{{tenant}}", "{{parameters.a", "a\x1fb"])
    | named("concurrency_limit", [0, -1, 1.5, "3", True, 2**31])
    | named("rate_limit", [1, [], "1"])
    | {
        f"rate_limit {value}": ({"rate_limit": value}, "invalid_input", f"/rate_limit/{name}")
        for name, value in RATES
    }
    | named("task_idd", [1])
    | named("version", [2])
)


@pytest.mark.parametrize("name", CASES)
async def test_a_task_that_does_not_hold_together_is_refused(site: Site, name: str) -> None:
    kept = await site.task("kept")
    before = await site.counts()
    changes, code, pointer = CASES[name]

    for method, path, body in (
        ("POST", "/tasks", GOOD | {"task_id": "new"} | changes),
        ("PUT", "/tasks/kept", GOOD | changes),
        ("PATCH", "/tasks/kept", changes),
    ):
        document = problem(await site.request(method, path, json=body), status=400, code=code)
        assert pointers(document) == [pointer], method

    assert await site.counts() == before
    assert (await site.get("/tasks/kept")).json() == kept


@pytest.mark.parametrize("task_id", IDS)
async def test_an_id_that_could_not_stand_in_an_address_is_refused(site: Site, task_id: str) -> None:
    before = await site.counts()
    document = problem(
        await site.post("/tasks", GOOD | {"task_id": task_id}), status=400, code="invalid_input"
    )
    assert pointers(document) == ["/task_id"]
    assert await site.counts() == before


async def test_a_longest_delay_below_the_first_is_refused(site: Site) -> None:
    delays = {"retry_delay_seconds": 10, "retry_max_delay_seconds": 9.5}
    answer = await site.post("/tasks", GOOD | {"task_id": "new", "resource_requirements": delays})
    document = problem(answer, status=400, code="invalid_input")
    assert pointers(document) == ["/resource_requirements/retry_max_delay_seconds"]


@pytest.mark.parametrize(("missing", "body"), [("task_id", GOOD), ("execution_handler", {"task_id": "new"})])
async def test_what_a_task_cannot_be_without_is_asked_for(
    site: Site, missing: str, body: dict[str, str]
) -> None:
    document = problem(await site.post("/tasks", body), status=400, code="invalid_input")
    assert pointers(document) == [f"/{missing}"]


async def test_a_reference_out_of_a_schema_is_not_followed(site: Site) -> None:
    """A server that fetched it would let anybody ask questions from inside the network."""
    visits: list[str] = []

    async def visited(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.append("visit")
        writer.close()

    server = await asyncio.start_server(visited, "127.0.0.1", 0)
    async with server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/schema.json"
        for schema in (
            {"$ref": address},
            {"$schema": address},
            {"properties": {"a": {"$ref": f"{address}#/a"}}},
            {"$id": address, "properties": {"a": {"$ref": "other.json"}}},
            {"$dynamicRef": address},
            {"allOf": [{"$ref": address}]},
        ):
            body = GOOD | {"task_id": "new", "parameter_schema": schema}
            answer = await site.post("/tasks", body)
            document = problem(answer, status=400, code="invalid_parameter_schema")
            assert pointers(document) == ["/parameter_schema"]
    assert visits == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 50_000 + "!"),
        ("^(?=(a+)+$)b", "a" * 50_000 + "!"),
        ("(x+x+)+y", "x" * 500_000),
        (r"(.*)\1(.*)\2(.*)\3$", "ab" * 10_000 + "!"),
        ("(?<=a)(b|b)*c", "a" + "b" * 500_000),
    ],
)
async def test_a_pattern_that_would_never_end_elsewhere_ends(site: Site, pattern: str, text: str) -> None:
    schema = {"properties": {"text": {"pattern": pattern}}}
    await site.task("pattern")
    await site.request("PATCH", "/tasks/pattern", json={"parameter_schema": schema})

    answer = await site.post(
        "/jobs", {"task_id": "pattern", "schedule": IMMEDIATE, "parameters": {"text": text}}
    )

    document = problem(answer, status=400, code="invalid_parameters")
    assert [(error["pointer"], error["code"]) for error in document["errors"]] == [
        ("/parameters/text", "pattern")
    ]
    assert len(answer.content) < 2_000


async def test_a_schema_that_refers_to_itself_is_a_schema(site: Site) -> None:
    tree = {"$defs": {"t": {"properties": {"c": {"items": {"$ref": "#/$defs/t"}}, "n": {"type": "integer"}}}},
            "$ref": "#/$defs/t"}  # fmt: skip
    for task_id, schema in (
        ("tree", tree),
        ("ring", {"$ref": "#"}),
        ("meta", {"$ref": "https://json-schema.org/draft/2020-12/schema"}),
    ):
        await site.task(task_id, parameter_schema=schema)

    async def wrong(task_id: str, parameters: dict[str, Any]) -> list[str]:
        answer = await site.post(
            "/jobs", {"task_id": task_id, "schedule": IMMEDIATE, "parameters": parameters}
        )
        return (
            []
            if answer.status_code == 201
            else pointers(problem(answer, status=400, code="invalid_parameters"))
        )

    assert await wrong("tree", {"c": [{"c": [{"n": 1}]}]}) == []
    assert await wrong("tree", {"c": [{"c": [{"n": "x"}]}]}) == ["/parameters/c/0/c/0/n"]
    assert await wrong("ring", {"any": "thing"}) == []
    assert await wrong("meta", {"type": 1}) == ["/parameters/type"]
