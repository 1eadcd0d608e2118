"""Transactions that PostgreSQL aborts for the sake of others may succeed when they come again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.api.conftest import IMMEDIATE, Site

pytestmark = pytest.mark.asyncio(loop_scope="module")


@asynccontextmanager
async def aborting(site: Site, table: str, state: str) -> AsyncIterator[None]:
    """Have every insert into a table fail with an SQLSTATE."""
    await site.pool.execute(f"""
        CREATE FUNCTION abort() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '{state}'; END $$;
        CREATE TRIGGER abort BEFORE INSERT ON onthedot.{table} EXECUTE FUNCTION abort()""")
    yield
    await site.pool.execute(f"DROP TRIGGER abort ON onthedot.{table}; DROP FUNCTION abort()")


@pytest.mark.parametrize("state", ["40001", "40P01"], ids=["cannot be serialized", "a deadlock's victim"])
@pytest.mark.parametrize(
    ("table", "path", "body"),
    [
        ("jobs", "/jobs", {"task_id": "aborted", "schedule": IMMEDIATE}),
        ("tasks", "/tasks", {"task_id": "another", "execution_handler": "builtin:noop"}),
    ],
    ids=["job", "task"],
)
async def test_the_answer_is_to_try_again(
    site: Site, table: str, path: str, body: dict[str, object], state: str
) -> None:
    await site.task("aborted")

    async with aborting(site, table, state):
        answer = await site.post(path, body)

    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
