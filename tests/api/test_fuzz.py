"""Whatever somebody sends as a job: never a fault of the server, and stored if and only if the answer is 201."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.conftest import Site, problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOOD: dict[str, Any] = {
    "task_id": "fuzzed",
    "schedule": {"type": "CRON", "expression": "0 2 * * TUE", "timezone": "Europe/Berlin", "starts_at": 0},
    "parameters": {"n": 1, "list": ["a", {"b": None}]},
    "name": "nightly",
    "tags": ["a", "b"],
    "queue": "bulk",
    "priority": 1,
    "max_retries": 2,
    "timeout_seconds": 1.5,
}
SCHEMA = {"properties": {"n": {"type": "integer"}}}

WORDS = st.sampled_from(
    ["", "\0", "\ud800", "IMMEDIATE", "ONCE", "INTERVAL", "RECURRING", "general", "fuzzed", "* * * * *", "@daily",
     "UTC", "PT1S", "2030-01-01T00:00:00Z", "run_all", "9" * 5000, "../x"]
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([0, -1, 2**63, 10**400, 1e308])
    | WORDS
    | st.text(max_size=20)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)
NAMES = st.sampled_from(
    ["expression", "scheduled_time", "every", "ends_at", "gap", "fold", "user_id", "overlap", "x"]
)
EDITS = st.lists(
    st.tuples(st.sampled_from(["replace", "remove", "add"]), st.integers(0, 30), NAMES, VALUES), max_size=3
)
LIMITED = settings(
    max_examples=150, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)


def edited(edits: list[tuple[str, int, str, Any]]) -> dict[str, Any]:
    """Return the good request after each edit at the n-th place of it."""
    body = json.loads(json.dumps(GOOD))
    for edit, number, name, value in edits:
        places = list(containers(body))
        container, key = places[number % len(places)]
        if edit == "replace":
            container[key] = value
        elif edit == "remove":
            del container[key]
        elif isinstance(container, dict):
            container[name] = value
        if not body:
            break
    return dict(body)


def containers(value: Any) -> list[tuple[Any, Any]]:
    """Return every place of a document: what holds it, and under which key or index."""
    if not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [place for key in keys for place in containers(value[key])]


async def check(site: Site, body: bytes) -> None:
    before = await site.counts()
    answer = await site.post("/jobs", body)
    after = await site.counts()
    if answer.status_code == 201:
        job = answer.json()
        assert after["jobs"] == before["jobs"] + 1
        assert after["executions"] == before["executions"] + (job["execution_id"] is not None)
        assert (await site.get(f"/jobs/{job['job_id']}")).status_code == 200
    else:
        assert answer.status_code in {400, 403}, answer.text
        problem(answer, status=answer.status_code, code=answer.json()["code"])
        assert after == before


@LIMITED
@given(edits=EDITS)
async def test_a_request_with_anything_in_any_place(
    site: Site, edits: list[tuple[str, int, str, Any]]
) -> None:
    await site.task("fuzzed", parameter_schema=SCHEMA)
    await check(site, json.dumps(edited(edits)).encode())


@LIMITED
@given(position=st.integers(0, 400), cut=st.integers(0, 5), inserted=st.binary(max_size=6))
async def test_a_request_with_any_bytes_in_any_place(
    site: Site, position: int, cut: int, inserted: bytes
) -> None:
    await site.task("fuzzed", parameter_schema=SCHEMA)
    body = json.dumps(GOOD).encode()
    await check(site, body[:position] + inserted + body[position + cut :])
