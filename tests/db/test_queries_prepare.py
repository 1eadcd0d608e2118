"""Every statement of the hot path fits the schema, and says what it is."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.db.pools import Pool
from app.db.queries import QUERIES_DIR, load

NAMES = sorted(path.stem for path in QUERIES_DIR.glob("*.sql"))


async def test_prepare_on_the_migrated_schema(pool: Pool, subtests: pytest.Subtests) -> None:
    async with pool.acquire() as connection:
        for name in NAMES:
            with subtests.test(name):
                await connection.prepare(load(name))


async def test_join_nothing_row_by_row_that_has_no_index(pool: Pool, subtests: pytest.Subtests) -> None:
    """A statement that was run often enough gets a generic plan, in which a CTE of 10,000 rows counts as one."""
    for name in NAMES:
        with subtests.test(name):
            plan = await _generic_plan(pool, load(name))
            assert not [node for node in _nodes(plan) if _joins_row_by_row(node)]


def _joins_row_by_row(node: dict[str, Any]) -> bool:
    if node["Node Type"] != "Nested Loop":
        return False
    children = {child["Parent Relationship"]: child for child in node["Plans"]}
    outer, inner = children["Outer"], children["Inner"]
    if inner["Node Type"] == "Materialize":
        (inner,) = inner["Plans"]
    is_one_row = outer["Node Type"] == "Aggregate" and outer["Strategy"] == "Plain"
    return not is_one_row and inner["Node Type"] in {"CTE Scan", "Function Scan"}


async def _generic_plan(pool: Pool, statement: str) -> dict[str, Any]:
    numbers = {int(number) for number in re.findall(r"\$(\d+)", statement)}
    arguments = f"({', '.join('NULL' for _ in numbers)})" if numbers else ""
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE generic AS {statement}")
        explained = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE generic{arguments}")
        await connection.execute("DEALLOCATE generic")
    plan: dict[str, Any] = json.loads(explained)[0]["Plan"]
    return plan


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


@pytest.mark.parametrize("name", NAMES)
def test_header_names_the_statement_and_every_parameter(name: str) -> None:
    text = load(name)
    header = "\n".join(line for line in text.splitlines() if line.startswith("--"))
    body = text.removeprefix(header)

    assert header.startswith(f"-- {name}: ")
    for parameter in set(re.findall(r"\$\d+", body)):
        assert re.search(re.escape(parameter) + r"\b", header), f"{parameter} is not explained"


@pytest.mark.parametrize("name", NAMES)
def test_is_used(name: str) -> None:
    sources = [path.read_text("utf-8") for path in QUERIES_DIR.parent.rglob("*.py")]

    assert sum(f'load("{name}")' in source for source in sources) == 1
