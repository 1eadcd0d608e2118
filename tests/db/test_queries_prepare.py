"""Every statement of the hot path fits the schema, and says what it is."""

import re

import pytest

from app.db.pools import Pool
from app.db.queries import QUERIES_DIR, load

NAMES = sorted(path.stem for path in QUERIES_DIR.glob("*.sql"))


@pytest.mark.parametrize("name", NAMES)
async def test_prepares_on_the_migrated_schema(pool: Pool, name: str) -> None:
    async with pool.acquire() as connection:
        await connection.prepare(load(name))


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
